// Anchors: short lines that fix a trace up to a block, kept where who gets hold
// of the trace does not reach.
//
//   tracefs-anchor serial=… block=17 last=0 hash=…
//
// The hash is that of the block's tag (FORMAT.md, section 11.2), which covers
// all blocks before it as well.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/format/constants.h"

namespace tracefs {

struct Anchor {
  format::Serial serial{};
  uint64_t block = 0;
  bool last = false;
  Digest hash{};
};

// Without an end of line.
std::string AnchorText(const Anchor& anchor);
// Finds an anchor in a line, whatever a log has put around it.
std::optional<Anchor> ParseAnchor(std::string_view line);

class AnchorSink {
 public:
  virtual ~AnchorSink() = default;
  // A failure is reported once, on standard error, and costs the anchor only.
  virtual void Put(const Anchor& anchor) = 0;
};

// Appends to a file, created with mode 0600; opened at once, before a mount
// may cover it. One that is there must be ours (tracefs/base/ownership.h), and
// no link.
// `given`: the file, where somebody else has opened it so.
Result<std::unique_ptr<AnchorSink>> MakeFileAnchors(const std::string& path,
                                                    UniqueFd given = {});
// What MakeFileAnchors would be refused for as things are now; makes nothing.
Status ProbeFileAnchors(const std::string& path);
// syslogd(8), facility daemon, priority notice. Connected at once, before a
// sandbox closes in; an error if nobody listens. `given`: the socket, where
// somebody else has connected it to kSyslogSocket.
Result<std::unique_ptr<AnchorSink>> MakeSyslogAnchors(UniqueFd given = {});

}  // namespace tracefs
