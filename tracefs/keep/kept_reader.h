// KeptReader: what a mount has kept, for who wants it back. The folder may have
// been changed, moved or given to others since: each part is looked at before
// it is used.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/keep/kept_part.h"

namespace tracefs::keep {

// Used by one thread.
class KeptReader {
 public:
  // `path`: the trace's folder. Nothing is opened before it is needed.
  explicit KeptReader(std::string path) : path_(std::move(path)) {}

  // Opens the object that holds the part, and looks whether it is what the
  // trace says. The descriptor is good until the next call. The error says why
  // not, for people.
  Result<int> Open(const KeptPart& part);

 private:
  Status OpenFolder();

  const std::string path_;
  bool tried_ = false;
  Status folder_status_;
  UniqueFd folder_;
  uint64_t number_ = 0;  // of what is open
  UniqueFd object_;
};

}  // namespace tracefs::keep
