#include "tracefs/fs/callers_rights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tracefs/base/clock.h"
#include "tracefs/process/task_powers.h"

namespace tracefs {
namespace {

// What this thread was last told of a task.
struct Known {
  static constexpr uint64_t kForNs = 50'000'000;

  uint32_t tid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t until_ns = 0;
  TaskPowers powers;

  bool Is(const fuse_ctx& caller) const {
    return tid == static_cast<uint32_t>(caller.pid) && uid == caller.uid &&
           gid == caller.gid && MonotonicNs() < until_ns;
  }
};

Known& LastKnown() {
  thread_local Known known;
  return known;
}

bool Read(FileSystem& fs, const fuse_ctx& caller, Known* known) {
  std::optional<TaskPowers> powers =
      ReadPowers(fs.proc(), static_cast<uint32_t>(caller.pid), caller.uid,
                 caller.gid, kOverrides);
  known->tid = 0;
  if (!powers) return false;
  known->tid = static_cast<uint32_t>(caller.pid);
  known->uid = caller.uid;
  known->gid = caller.gid;
  known->until_ns = MonotonicNs() + Known::kForNs;
  known->powers = *std::move(powers);
  return true;
}

// Whether this thread may, by what it has.
bool MayChange(int directory) {
  return ::faccessat(directory, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) ==
         0;
}

}  // namespace

int BecomeCaller(OpScope& op) {
  const fuse_ctx* caller = ContextOf(op.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (const int e = thread.Become(caller->uid, caller->gid); e != 0) return e;
  thread.AllowOverrides(caller->uid == 0 ? kOverrides : 0);
  return 0;
}

MoreRights::~MoreRights() {
  if (!given_) return;
  const fuse_ctx* caller = ContextOf(op_.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  thread.SetGroups({});
  thread.Become(caller->uid, caller->gid);
  thread.AllowOverrides(0);
}

bool MoreRights::Give() {
  const fuse_ctx& caller = *ContextOf(op_.req());
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (caller.uid == 0 || !thread.switches_ids() || tries_ == 2) return false;
  if (caller.pid == 0) {
    tries_ = 2;
    given_ = true;
    thread.AllowOverrides(kDacOverride);
    return true;
  }
  Known& known = LastKnown();
  const bool remembered = tries_++ == 0 && known.Is(caller);
  if (!remembered) {
    tries_ = 2;
    if (!Read(op_.fs(), caller, &known)) return false;
  }
  const TaskPowers& powers = known.powers;
  if (powers.groups.empty() && (powers.capabilities & kOverrides) == 0) {
    return !remembered ? false : Give();
  }
  given_ = true;
  return thread.SetGroups(powers.groups) == 0 && GiveCapabilities(powers);
}

// False on failure.
bool MoreRights::GiveCapabilities(const TaskPowers& powers) {
  ThreadCredentials& thread = ThreadCredentials::Current();
  const fuse_ctx& caller = *ContextOf(op_.req());
  uint64_t allowed = powers.capabilities & kOverrides;
  if (allowed == 0 || (powers.uids.ContainAll() && powers.gids.ContainAll())) {
    thread.AllowOverrides(allowed);
    return true;
  }
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
    // As the owner, and not as whoever may do it with anybody's file: should
    // the name come to mean another file in this moment, the directory decides.
    allowed &= ~kFowner;
    if (thread.Become(*owner, caller.gid) != 0) return false;
  }
  thread.AllowOverrides(allowed);
  return true;
}

}  // namespace tracefs
