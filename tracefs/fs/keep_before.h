// KeepBefore: what one operation is about to destroy, kept first (STR_KEEP).
//
//   KeepBefore keep(op);
//   if (const int error = keep.Range(inode, begin, end)) …  // fails with that
//   … the call below …
//   keep.Settle(done);                                      // before the reply
//
// Between the ChangesFile of the operation and its end: nobody else changes the
// file through the mount then, so that what is kept is what is destroyed. The
// thread is the daemon afterwards (AsDaemon): calls that take the caller's ids
// say so.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>

#include "tracefs/fs/op_scope.h"
#include "tracefs/keep/kept_folder.h"

namespace tracefs {

// What a mount keeps. Threads: any.
struct Keeping {
  keep::KeptFolder* folder = nullptr;
  // Whether it is wanted of an operation that is about to be done on a file
  // with these attributes; null: of all.
  std::function<bool(const Event& event, const struct stat& st)> wants;
  // An operation fails, and does nothing, if that cannot be kept.
  bool must = false;
};

// Threads: that of the operation.
class KeepBefore {
 public:
  explicit KeepBefore(OpScope& op);
  // What was not settled was not destroyed.
  ~KeepBefore() { Settle(false); }
  KeepBefore(const KeepBefore&) = delete;
  KeepBefore& operator=(const KeepBefore&) = delete;

  // Whether anything is kept of the operation.
  explicit operator bool() const { return keeping_ != nullptr; }
  // The bytes [begin, end) of a regular file are about to become others; of any
  // other file there are none. 0, or what the operation has to fail with.
  int Range(Inode& inode, uint64_t begin, uint64_t end);
  // The file with that name, unless it is `number`, is about to lose it, and
  // with its last name all that it holds. Likewise.
  int Name(int dir, const char* name, uint64_t number = 0);
  // Whether the operation was done. Says in its event what was kept.
  void Settle(bool done);

 private:
  template <typename OpenFile>
  int Keep(const struct stat& st, uint64_t begin, uint64_t end,
           OpenFile&& open);

  OpScope& op_;
  const Keeping* const keeping_;  // null: nothing is kept of it
  bool is_open_ = false;          // not settled
  keep::KeptPart part_;
  uint64_t offset_ = 0;
  uint64_t mtime_ns_ = 0;
  int error_ = 0;
};

}  // namespace tracefs
