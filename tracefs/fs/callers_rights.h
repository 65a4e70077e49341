// Calls that change names and files, made with the rights of their caller.
//
// The kernel has checked the caller against what it remembers of directory and
// file. Below, the name may by now mean another file, the directory may have
// been closed, the file given away: so the backing kernel decides once more, in
// the very call and not before it. The call is made with the caller's ids and
// without the daemon's overrides (credentials.h), which costs no extra system
// call while one caller's requests follow one another on a thread.
//
// Only if that is refused are the caller's other rights looked up:
// supplementary groups (a directory that a group shares) and capabilities over
// the files in question (root of a user namespace). Then the call is made again
// with these. What was read about a task is reused for a moment, unless it is
// not enough.
//
// This is the complete list of where the daemon acts with more rights than its
// caller. The page docs/security.md has the same table, with the test of each
// row.
//
// + look-up, stat, lists, reading attributes, opening to read
//   with: CAP_DAC_READ_SEARCH
//   decided by: the kernel, by attributes as old as the visibility allows
// + reading, writing and the like on an open file
//   with: the descriptor; CAP_FSETID where the kernel says that the caller has
//     it, and where it does not say (fallocate, copies) if he is root with it
//   decided by: the open
// + writes that the kernel makes by itself (passthrough), write-back of pages
//   with: the id of some caller or of nobody, no CAP_FSETID
//   decided by: the open
// + opening by a handle (open_by_handle_at)
//   with: CAP_DAC_READ_SEARCH
//   decided by: the handle is of a file that was looked up
// + making, removing, moving, linking names
//   with: nothing; if that is refused, the caller's groups and what he has over
//     the directory and the file; root of a user namespace acts as the
//     directory's owner
//   decided by: the directory below, in the call
// + chmod, times, ACLs, flags of inodes, truncate, opening to write, user.
//   attributes
//   with: nothing; if that is refused, the caller's groups and what he has over
//     the file; root of a user namespace acts as the file's owner
//   decided by: the file below, in the call
// + keeping a set-gid bit (chmod, creation, ACLs)
//   with: the caller's groups; CAP_FSETID only where he has it over everything;
//     root of a user namespace counts as one of that one group
//   decided by: the file or directory below, in the call
// + chown to another user
//   with: CAP_CHOWN, where the caller has it over the file
//   decided by: the daemon, just before the call
// + what a write or a chown clears
//   with: the caller's rights, as of a chown(-1, -1) of his own
//   decided by: the file below, in the call
// + trusted. and security. attributes, flags +a and +i, device nodes
//   with: CAP_SYS_ADMIN, CAP_LINUX_IMMUTABLE, CAP_MKNOD
//   decided by: the kernel: these depend on what the caller is, not on the file
//
//  - A capability that he has by a namespace is lent as it is, after a look at
//    the owners, only where the owner will not do: a file is made (it would be
//    the owner's), the mode refuses it to him, there are two of them.
//  - Without the groups of its caller a call may also pass where just one of
//    his groups is shut out (mode 0707): the kernel has already refused it by
//    then, if its view of the directory is current.
//  - Nothing can be found out about a caller in a PID namespace that we do not
//    see: the kernel's word stands for what root does, and for whether others
//    may write; for others' files in sticky directories there is none, and
//    set-gid bits of groups that are not his own are not kept.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
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

// Whether a set-gid bit is kept depends on groups and CAP_FSETID, and no error
// says so: where a call may keep one, the thread gets the caller's beforehand.
enum class SetGid { kIsNotKept, kMayBeKept };

// The step after a refusal with `error` (above): true if the thread has been
// given more of the caller's rights, and the call is worth another try. Undone
// by the destructor.
class MoreRights {
 public:
  // For a change of names.
  MoreRights(OpScope& op, std::span<const TouchedName> touched)
      : op_(op), touched_(touched) {}
  // For a change of the file itself.
  MoreRights(OpScope& op, Inode& file) : op_(op), file_(&file) {}
  ~MoreRights();
  MoreRights(const MoreRights&) = delete;
  MoreRights& operator=(const MoreRights&) = delete;

  // Up to four times: as the owner and with capabilities, each by what is
  // remembered and by what is read afresh.
  bool Give();
  // What decides on set-gid bits.
  void GiveGroups();

 private:
  bool SetGroups(const struct TaskPowers& powers);
  bool GiveCapabilities(const TaskPowers& powers);
  bool BecomeOwner(uid_t owner);
  std::optional<uint64_t> OverFile(const TaskPowers& powers, bool owner_first);
  std::optional<uint64_t> OverNames(const TaskPowers& powers, bool owner_first);
  std::optional<uid_t> OwnerOfNames(const TaskPowers& powers);
  BackingFd Deciding();

  OpScope& op_;
  const std::span<const TouchedName> touched_;
  Inode* const file_ = nullptr;
  std::optional<gid_t> joined_;
  int tries_ = 0;
  bool was_owner_ = false;
  bool given_ = false;
  bool has_groups_ = false;
};

// Makes this thread the caller of `op` with no rights but his. 0 or an errno.
int BecomeCaller(OpScope& op);

// Whether he is user 0 and has these capabilities over everything. Asked where
// the kernel does not say so: user 0 alone means nothing.
bool IsRootWith(OpScope& op, uint64_t capabilities);

// Runs `call`, which returns a value below 0 and sets errno on failure, as
// described above. 0 or an errno. `what`: the names or the file (an Inode) that
// it changes.
template <typename What, typename Call>
int WithCallersRights(OpScope& op, What&& what, Call&& call,
                      SetGid set_gid = SetGid::kIsNotKept) {
  if (const int error = BecomeCaller(op); error != 0) return error;
  MoreRights more(op, what);
  if (set_gid == SetGid::kMayBeKept) more.GiveGroups();
  if (call() >= 0) return 0;
  int error = errno;
  while ((error == EACCES || error == EPERM) && more.Give()) {
    if (call() >= 0) return 0;
    error = errno;
  }
  return error;
}

// What writing and chown(2) clear: set-id bits and file capabilities. The
// kernel asks for it by a SETATTR that names nothing and by removing
// security.capability, without saying why. So it is done by a chown(-1, -1) as
// the caller, and the backing kernel decides what that clears. It may be for a
// write, which must not fail; but no write happens to a file that is not open
// for writing, and the write itself clears them below. 0 or an errno.
int ClearPrivileges(OpScope& op, Inode& inode);

}  // namespace tracefs
