// TraceOrigins: tells which traces that are read together are of one machine,
// and which of one mount on it.
//
// A machine is what one boot of a host of that name is; a mount, what its path
// and the directory below it are on a host of that name, whatever the boot. A
// trace that says neither, as those of other programs, is one of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tracefs/format/record.h"

namespace tracefs::reader {

// Used by one thread.
class TraceOrigins {
 public:
  // Numbers from 1. To be asked once for each trace, when its header is known.
  format::TraceOrigin Of(const format::TraceHeader& header);

 private:
  uint32_t NumberOf(std::map<std::string, uint32_t>* known,
                    const std::string& name);

  uint32_t last_ = 0;
  std::map<std::string, uint32_t> machines_;
  std::map<std::string, uint32_t> mounts_;
};

}  // namespace tracefs::reader
