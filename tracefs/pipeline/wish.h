// What a stage opens when it is made. A client that asks a running mount for a
// tracer opens it in place of the daemon, which in its sandbox can open
// nothing, and sends it along (docs/control-protocol.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

struct Wish {
  enum class Kind : uint8_t {
    kNew,        // a new file, to write
    kNewMap,     // a new file, to read and write
    kFolder,     // the directory that holds `path`
    kDevice,     // an existing block device
    kRead,       // an existing file, to read
    kSecret,     // the contents of a key source that is not a file, as one
    kAppend,     // a file, made if missing, to append to
    kDirectory,  // the directory `path`, to read, make and sync files in
    kLog,        // a datagram socket that is connected to the log at `path`
    kDialer,     // a process that connects to the address `path`
    kCourier,    // one that speaks to the broker that `path` describes
  };
  std::string path;
  bool sync = false;  // O_DSYNC
  Kind kind = Kind::kNew;
};

// What the control protocol calls it: "new", "map", "folder", "device", "read",
// "secret", "append", "directory", "log", "dialer",
// "courier".
std::string_view WishKindName(Wish::Kind kind);

// What was opened for one stage, in the order of its wishes.
class Given {
 public:
  Given() = default;  // nothing: the stage opens it itself
  explicit Given(std::span<UniqueFd> files) : files_(files) {}

  bool any() const { return !files_.empty(); }
  // What was not taken yet.
  std::span<UniqueFd> rest() const { return files_; }
  // The next one; none where nothing was given.
  UniqueFd Take() {
    if (files_.empty()) return UniqueFd();
    UniqueFd file = std::move(files_.front());
    files_ = files_.subspan(1);
    return file;
  }

 private:
  std::span<UniqueFd> files_;
};

}  // namespace tracefs
