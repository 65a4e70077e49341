// What a stage opens when it is made. A client that asks a running mount for a
// tracer opens it in place of the daemon, which in its sandbox can open
// nothing, and sends it along (docs/control-protocol.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Each kind, what the control protocol calls it, and what `path` is: the page
// has a row for each, and tracefs-ctl a case.
#define TRACEFS_WISH_KINDS(X)                                                  \
  X(kNew, "new")             /* a new file, to write */                        \
  X(kNewMap, "map")          /* a new file, to read and write */               \
  X(kFolder, "folder")       /* the directory that holds `path` */             \
  X(kDevice, "device")       /* an existing block device */                    \
  X(kRead, "read")           /* an existing file, to read */                   \
  X(kSecret, "secret")       /* what a key source that is no file says */      \
  X(kAppend, "append")       /* a file, made if missing, to append to */       \
  X(kDirectory, "directory") /* the directory, to read, make and sync files */ \
  X(kLog, "log")             /* a datagram socket, connected to that log */    \
  X(kDialer, "dialer")       /* a process that connects to that address */     \
  X(kCourier, "courier")     /* one that speaks to the broker it describes */

struct Wish {
#define X(kind, name) kind,
  enum class Kind : uint8_t { TRACEFS_WISH_KINDS(X) };
#undef X
  std::string path;
  bool sync = false;  // O_DSYNC
  Kind kind = Kind::kNew;
};

// What the control protocol calls it.
inline std::string_view WishKindName(Wish::Kind kind) {
#define X(kind, name) name,
  static constexpr std::string_view kNames[] = {TRACEFS_WISH_KINDS(X)};
#undef X
  return kNames[static_cast<size_t>(kind)];
}

// What was opened for one stage, in the order of its wishes.
class Given {
 public:
  Given() = default;  // nothing: the stage opens it itself
  // `again`: what an earlier daemon has had, and used (tracefs/survive).
  explicit Given(std::span<UniqueFd> files, bool again = false)
      : files_(files), again_(again) {}

  bool any() const { return !files_.empty(); }
  bool again() const { return again_; }
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
  bool again_ = false;
};

}  // namespace tracefs
