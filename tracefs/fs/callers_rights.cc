#include "tracefs/fs/callers_rights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/process/task_powers.h"

namespace tracefs {
namespace {

// What this thread last learnt about a task.
struct Known {
  static constexpr uint64_t kForNs = 50'000'000;

  uint32_t tid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t until_ns = 0;
  TaskPowers powers;

  bool Is(const OpScope& op) const {
    const fuse_ctx& caller = *ContextOf(op.req());
    return tid != 0 && tid == static_cast<uint32_t>(caller.pid) &&
           uid == caller.uid && gid == caller.gid && op.begin_ns() < until_ns;
  }
};

Known& LastKnown() {
  thread_local Known known;
  return known;
}

bool Read(OpScope& op, Known* known) {
  const fuse_ctx& caller = *ContextOf(op.req());
  std::optional<TaskPowers> powers =
      ReadPowers(op.fs().proc(), static_cast<uint32_t>(caller.pid), caller.uid,
                 caller.gid, kOverrides | kFsetid | kSysAdmin);
  known->tid = 0;
  if (!powers) return false;
  known->tid = static_cast<uint32_t>(caller.pid);
  known->uid = caller.uid;
  known->gid = caller.gid;
  known->until_ns = op.begin_ns() + Known::kForNs;
  known->powers = *std::move(powers);
  return true;
}

// Whether he has `capabilities` over everything.
bool HasEverywhere(const TaskPowers& powers, uint64_t capabilities) {
  return (powers.capabilities & capabilities) == capabilities &&
         powers.uids.ContainAll() && powers.gids.ContainAll();
}

// Whether this thread's own rights suffice.
bool MayChange(int directory) {
  return ::faccessat(directory, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) ==
         0;
}

bool IsOpenForWriting(FileSystem& fs, const Inode& inode) {
  bool found = false;
  fs.handles().ForEach([&](const Handle& handle) {
    found |= &handle.inode == &inode && (handle.flags & O_ACCMODE) != O_RDONLY;
  });
  return found;
}

// Root with all of its capabilities, as it was a moment ago.
bool IsWholeRoot(const OpScope& op) {
  const Known& known = LastKnown();
  return known.uid == 0 && known.Is(op) &&
         HasEverywhere(known.powers, kOverrides);
}

}  // namespace

int BecomeCaller(OpScope& op) {
  const fuse_ctx* caller = ContextOf(op.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (const int e = thread.Become(caller->uid, caller->gid); e != 0) return e;
  thread.AllowOverrides(IsWholeRoot(op) ? kOverrides : 0);
  return 0;
}

bool IsRootWith(OpScope& op, uint64_t capabilities) {
  if (ContextOf(op.req())->uid != 0) return false;
  Known& known = LastKnown();
  return (known.Is(op) || Read(op, &known)) &&
         HasEverywhere(known.powers, capabilities);
}

MoreRights::~MoreRights() {
  if (!given_) return;
  const fuse_ctx* caller = ContextOf(op_.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (has_groups_) thread.SetGroups({});
  thread.Become(caller->uid, caller->gid);
  if (!IsWholeRoot(op_)) thread.AllowOverrides(0);
}

bool MoreRights::Give() {
  const fuse_ctx& caller = *ContextOf(op_.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (!thread.switches_ids() || thread.has_overrides()) return false;
  Known& known = LastKnown();
  // It was refused to the owner: maybe because it now belongs to another.
  if (was_owner_) return GiveCapabilities(known.powers);
  if (tries_ == 2) return false;
  const bool remembered = tries_++ == 0 && known.Is(op_);
  if (!remembered) {
    tries_ = 2;
    if (!Read(op_, &known)) {
      if (caller.pid != 0 && caller.uid != 0) return false;
      given_ = true;
      thread.AllowOverrides(caller.uid == 0 ? kOverrides : kDacOverride);
      return true;
    }
  }
  const TaskPowers& powers = known.powers;
  if (powers.groups.empty() && (powers.capabilities & kOverrides) == 0) {
    return !remembered ? false : Give();
  }
  return SetGroups(powers) && GiveCapabilities(powers);
}

// False on failure.
bool MoreRights::SetGroups(const TaskPowers& powers) {
  given_ = true;
  if (powers.groups.empty() && !joined_ && !has_groups_) return true;
  has_groups_ = true;
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (!joined_) return thread.SetGroups(powers.groups) == 0;
  std::vector<gid_t> groups = powers.groups;
  groups.push_back(*joined_);
  return thread.SetGroups(groups) == 0;
}

void MoreRights::GiveGroups() {
  ThreadCredentials& thread = ThreadCredentials::Current();
  thread.AllowFsetid(false);
  Known& known = LastKnown();
  if (!thread.switches_ids() || !Read(op_, &known)) return;
  const TaskPowers& powers = known.powers;
  given_ = true;
  if (HasEverywhere(powers, kFsetid)) {
    thread.AllowFsetid(true);
  } else if (SetGroups(powers) && (powers.capabilities & kFsetid) != 0) {
    // Over what his namespace maps. The capability would count for any group;
    // he is made a member of this group instead, in case it is another by the
    // time of the call.
    const BackingFd decides = Deciding();
    struct stat st;
    const bool may_change = file_ != nullptr ||
                            (powers.capabilities & kDacOverride) != 0 ||
                            MayChange(decides.get());
    if (may_change && ::fstatat(decides.get(), "", &st, AT_EMPTY_PATH) == 0 &&
        powers.Over(st.st_uid, st.st_gid)) {
      joined_ = st.st_gid;
      SetGroups(powers);
    }
  }
}

// What determines the group of a file that keeps a set-gid bit: the file, or
// the directory it is made in.
BackingFd MoreRights::Deciding() {
  return file_ != nullptr ? op_.fs().FdOf(*file_)
                          : BackingFd(touched_.front().directory);
}

// False on failure.
bool MoreRights::GiveCapabilities(const TaskPowers& powers) {
  const uint64_t held = powers.capabilities & kOverrides;
  uint64_t allowed = held;
  if (held != 0 && !HasEverywhere(powers, held)) {
    if (BecomeCaller(op_) != 0) return false;
    const bool owner_first =
        !was_owner_ && (held & kDacOverride) != 0 && (held & kFowner) != 0;
    was_owner_ = false;
    const std::optional<uint64_t> over = file_ != nullptr
                                             ? OverFile(powers, owner_first)
                                             : OverNames(powers, owner_first);
    if (!over) return false;
    allowed = *over;
  }
  ThreadCredentials::Current().AllowOverrides(allowed);
  return true;
}

// Makes this thread the owner of the file to be changed, without any
// capability: if it is given away at this moment, access is denied. Callers who
// may do by capability everything the owner may are tried as the owner first.
bool MoreRights::BecomeOwner(uid_t owner) {
  was_owner_ = true;
  return ThreadCredentials::Current().Become(owner,
                                             ContextOf(op_.req())->gid) == 0;
}

// Those that he has over the file. A caller who may do what the owner may does
// it as the owner: if it has been given away at this moment, it is refused.
std::optional<uint64_t> MoreRights::OverFile(const TaskPowers& powers,
                                             bool owner_first) {
  struct stat st;
  if (::fstatat(op_.fs().FdOf(*file_).get(), "", &st, AT_EMPTY_PATH) != 0 ||
      !powers.uids.Contains(st.st_uid)) {
    return 0;
  }
  if (owner_first) {
    return BecomeOwner(st.st_uid) ? std::optional<uint64_t>(0) : std::nullopt;
  }
  uint64_t allowed = powers.capabilities & kOverrides;
  // For this one the group need not be his (inode_owner_or_capable).
  if (!powers.gids.Contains(st.st_gid)) allowed &= kFowner;
  if ((allowed & kFowner) == 0) return allowed;
  const gid_t group = ContextOf(op_.req())->gid;
  if (ThreadCredentials::Current().Become(st.st_uid, group) != 0) {
    return std::nullopt;
  }
  return allowed & ~kFowner;
}

// The single owner of everything that the caller has capabilities over, if the
// owner may do what the caller may. None where a file is made: it would be his.
std::optional<uid_t> MoreRights::OwnerOfNames(const TaskPowers& powers) {
  const bool makes = touched_.size() == 1 && touched_.front().name == nullptr;
  if (makes) return std::nullopt;
  std::optional<uid_t> owner;
  const auto is_owners = [&](const struct stat& st) {
    const bool is = powers.Over(st.st_uid, st.st_gid) &&
                    owner.value_or(st.st_uid) == st.st_uid;
    if (is) owner = st.st_uid;
    return is;
  };
  for (const TouchedName& touched : touched_) {
    const char* name = touched.name;
    struct stat st;
    bool decides = name != nullptr && *name == '\0';  // the file, not a name
    if (!decides) {
      if (::fstatat(touched.directory, "", &st, AT_EMPTY_PATH) != 0) {
        return std::nullopt;
      }
      decides = name != nullptr && (st.st_mode & S_ISVTX) != 0;
      // The caller needs no further rights to a directory that is open to him.
      if (!is_owners(st) && (decides || powers.Over(st.st_uid, st.st_gid) ||
                             !MayChange(touched.directory))) {
        return std::nullopt;
      }
    }
    if (decides &&
        ::fstatat(touched.directory, name, &st,
                  AT_SYMLINK_NOFOLLOW | (*name == '\0' ? AT_EMPTY_PATH : 0)) ==
            0 &&
        !is_owners(st)) {
      return std::nullopt;
    }
  }
  return owner;
}

// Those that he has over each directory and file.
std::optional<uint64_t> MoreRights::OverNames(const TaskPowers& powers,
                                              bool owner_first) {
  if (owner_first) {
    if (const std::optional<uid_t> owner = OwnerOfNames(powers)) {
      return BecomeOwner(*owner) ? std::optional<uint64_t>(0) : std::nullopt;
    }
  }
  ThreadCredentials& thread = ThreadCredentials::Current();
  uint64_t allowed = powers.capabilities & (kDacOverride | kFowner);
  std::optional<uid_t> owner;
  bool one_owner = true;
  bool fixed = false;  // the file cannot be another by the time of the call
  for (const TouchedName& touched : touched_) {
    struct stat st;
    if (touched.name == nullptr || *touched.name != '\0') {
      if (::fstatat(touched.directory, "", &st, AT_EMPTY_PATH) != 0 ||
          (!powers.Over(st.st_uid, st.st_gid) &&
           !MayChange(touched.directory))) {
        allowed &= ~kDacOverride;
      }
    }
    if (touched.name == nullptr) continue;
    fixed = *touched.name == '\0';
    const int flags = fixed ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
    if (::fstatat(touched.directory, touched.name, &st, flags) != 0) continue;
    if (!powers.Over(st.st_uid, st.st_gid)) {
      allowed &= ~kFowner;
    } else {
      one_owner = one_owner && owner.value_or(st.st_uid) == st.st_uid;
      owner = st.st_uid;
    }
  }
  if ((allowed & kFowner) != 0 && owner && one_owner && !fixed) {
    // As the owner, and not with a capability over anybody's file: if the name
    // comes to mean another file at this moment, the directory decides.
    allowed &= ~kFowner;
    const gid_t group = ContextOf(op_.req())->gid;
    if (thread.Become(*owner, group) != 0) return std::nullopt;
  }
  return allowed;
}

int ClearPrivileges(OpScope& op, Inode& inode) {
  constexpr auto kAsItIs = static_cast<uid_t>(-1);
  const BackingFd fd = op.fs().FdOf(inode);
  const int error = WithCallersRights(
      op, inode,
      [&] { return ::fchownat(fd.get(), "", kAsItIs, kAsItIs, AT_EMPTY_PATH); },
      // Without group-exec it stays for members of the group.
      SetGid::kMayBeKept);
  return error == EPERM && IsOpenForWriting(op.fs(), inode) ? 0 : error;
}

}  // namespace tracefs
