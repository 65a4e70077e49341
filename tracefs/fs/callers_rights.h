// Calls that change what names mean, made with the rights of their caller.
//
// The kernel has checked the caller against what it remembers of directory and
// file. Below, the name may stand for another file by now, and the directory
// may have been shut: so the backing kernel decides once more, in the very call
// and not before it. The call is made with the caller's ids and without
// CAP_DAC_OVERRIDE and CAP_FOWNER, which costs no system call of its own where
// one caller's requests follow one another on a thread.
//
// Only if that is refused is it asked what else the caller has: supplementary
// groups (a directory that a group shares) and capabilities over the files in
// question (root of a user namespace). Then the call is made again with these.
// What was read of a task serves it for a moment, unless that is not enough.
//
//  - uid 0 keeps all of the daemon's rights: the kernel has judged it.
//  - Without the groups of its caller a call may also pass where just one of
//    his groups is shut out (mode 0707): by then the kernel has refused it, if
//    it knew the directory as it is.
//  - Of a caller in a PID namespace that we do not see nothing can be asked:
//  the
//    kernel's word stands for directories, and for others' files in sticky ones
//    there is none.
#pragma once

#include <cerrno>
#include <span>

#include "tracefs/fs/credentials.h"
#include "tracefs/fs/op_scope.h"

namespace tracefs {

// What a call touches: `name` in `directory`. Null: no file loses that name, a
// new one is made. Empty: the file `directory` itself gets another name.
struct TouchedName {
  int directory;
  const char* name = nullptr;
};

// The step after a refusal with `error` (above): true if the thread has been
// given more of the caller's rights, and the call is worth another try. Undone
// by the destructor.
class MoreRights {
 public:
  MoreRights(OpScope& op, std::span<const TouchedName> touched)
      : op_(op), touched_(touched) {}
  ~MoreRights();
  MoreRights(const MoreRights&) = delete;
  MoreRights& operator=(const MoreRights&) = delete;

  // At most twice: the second time what was remembered is read anew.
  bool Give();

 private:
  bool GiveCapabilities(const struct TaskPowers& powers);

  OpScope& op_;
  const std::span<const TouchedName> touched_;
  int tries_ = 0;
  bool given_ = false;
};

// Makes this thread the caller of `op` with no rights but his. 0 or an errno.
int BecomeCaller(OpScope& op);

// Runs `call`, which is below 0 and sets errno where it fails, as said above. 0
// or an errno.
template <typename Call>
int WithCallersRights(OpScope& op, std::span<const TouchedName> touched,
                      Call&& call) {
  if (const int error = BecomeCaller(op); error != 0) return error;
  if (call() >= 0) return 0;
  MoreRights more(op, touched);
  int error = errno;
  while ((error == EACCES || error == EPERM) && more.Give()) {
    if (call() >= 0) return 0;
    error = errno;
  }
  return error;
}

}  // namespace tracefs
