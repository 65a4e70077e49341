// Per-thread ids, umask and capabilities (credentials.h).
#include "tracefs/fs/credentials.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tracefs/base/own_rights.h"

namespace tracefs {
namespace {

constexpr uint32_t kNoId = 0xffffffff;

constexpr uint64_t CapabilityBit(int capability) {
  return uint64_t{1} << capability;
}

// Both return the id in force before the call, whether or not they change it;
// with an invalid id they only return it.
uint32_t SetFsUid(uint32_t uid) {
  return static_cast<uint32_t>(::syscall(SYS_setfsuid, uid));
}
uint32_t SetFsGid(uint32_t gid) {
  return static_cast<uint32_t>(::syscall(SYS_setfsgid, gid));
}

struct Capabilities {
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
};

Capabilities GetCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  Capabilities result;
  if (::syscall(SYS_capget, &header, data) != 0) return result;
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    result.effective |= uint64_t{data[i].effective} << (32 * i);
    result.permitted |= uint64_t{data[i].permitted} << (32 * i);
    result.inheritable |= uint64_t{data[i].inheritable} << (32 * i);
  }
  return result;
}

// Without it the kernel drops the file capabilities of a thread whose fsuid
// leaves 0. Securebits are inherited by threads made later, never shared.
bool KeepCapabilitiesAcrossFsuid() {
  const int bits = ::prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
  if (bits < 0) return false;
  if ((bits & SECBIT_NO_SETUID_FIXUP) != 0) return true;
  return ::prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) ==
         0;
}

}  // namespace

ThreadCredentials& ThreadCredentials::Current() {
  thread_local ThreadCredentials credentials;
  return credentials;
}

ThreadCredentials::ThreadCredentials() {
  private_umask_ = ::unshare(CLONE_FS) == 0;
  // Where it is shared, it becomes 0 for good: CreationMode() masks.
  const mode_t inherited_umask = ::umask(0);
  umask_ = 0;
  if (private_umask_) SwitchUmask(inherited_umask);

  // libfuse starts workers from workers, which act for some caller.
  static const mode_t first_umask = inherited_umask;
  daemon_umask_ = first_umask;
  daemon_uid_ = ::geteuid();
  daemon_gid_ = ::getegid();
  uid_ = SetFsUid(kNoId);
  gid_ = SetFsGid(kNoId);

  const Capabilities capabilities = GetCapabilities();
  // The thread that made this one may have been without some of them.
  overrides_ = capabilities.effective & kOverrides;
  fsetid_ = (capabilities.effective & CapabilityBit(CAP_FSETID)) != 0;
  take_back_own_rights = overrides_ == kOverrides ? nullptr : TakeBack;
  take_back_inherited.store(TakeBack, std::memory_order_release);
  effective_ =
      capabilities.effective |
      (capabilities.permitted & (kOverrides | CapabilityBit(CAP_FSETID)));
  permitted_ = capabilities.permitted;
  inheritable_ = capabilities.inheritable;
  constexpr uint64_t kSwitching =
      CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_SETGID);
  switches_ids_ = (effective_ & kSwitching) == kSwitching;
  if (switches_ids_) restores_capabilities_ = !KeepCapabilitiesAcrossFsuid();
}

int ThreadCredentials::SwitchIds(uint32_t uid, uint32_t gid) {
  if (!switches_ids_) return 0;
  if (uid == kNoId || gid == kNoId) return EOVERFLOW;
  // The kernel does not say when it could not (no memory, no such id in this
  // user namespace), so ask: the one thing that must not happen is a file
  // created as somebody else. uid_ and gid_ always tell the truth.
  if (gid != gid_) {
    SetFsGid(gid);
    gid_ = SetFsGid(kNoId);
    if (gid_ != gid) return ENOMEM;
  }
  if (uid != uid_) {
    SetFsUid(uid);
    uid_ = SetFsUid(kNoId);
    if (uid_ != uid) return ENOMEM;
    if (restores_capabilities_) return ApplyEffective();
  }
  return 0;
}

void ThreadCredentials::LeaveRoot() {
  if (!switches_ids_) return;
  SetFsUid(kNobody);
  uid_ = kNoId;  // unless that failed: not to be relied on
  if (restores_capabilities_) ApplyEffective();
}

void ThreadCredentials::SwitchUmask(mode_t mask) {
  umask_ = mask & 0777;
  if (private_umask_) ::umask(umask_);
}

void ThreadCredentials::TakeBack() { Current().AllowOverrides(kOverrides); }

void ThreadCredentials::SwitchOverrides(uint64_t wanted) {
  if (!switches_ids_) return;
  overrides_ = wanted;
  take_back_own_rights = wanted == kOverrides ? nullptr : TakeBack;
  const int saved = errno;
  ApplyEffective();
  errno = saved;
}

void ThreadCredentials::SwitchFsetid(bool allow) {
  fsetid_ = allow;
  if ((effective_ & CapabilityBit(CAP_FSETID)) == 0) return;
  const int saved = errno;
  ApplyEffective();
  errno = saved;
}

int ThreadCredentials::SetGroups(std::span<const gid_t> groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0 ? 0
                                                                     : errno;
}

int ThreadCredentials::BecomeDaemon() {
  AllowOverrides(kOverrides);
  AllowFsetid(true);
  SetUmask(daemon_umask_);
  return Become(daemon_uid_, daemon_gid_);
}

int ThreadCredentials::ApplyEffective() {
  uint64_t effective = effective_ & ~(kOverrides & ~overrides_);
  if (!fsetid_) effective &= ~CapabilityBit(CAP_FSETID);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    data[i].effective = static_cast<uint32_t>(effective >> (32 * i));
    data[i].permitted = static_cast<uint32_t>(permitted_ >> (32 * i));
    data[i].inheritable = static_cast<uint32_t>(inheritable_ >> (32 * i));
  }
  return ::syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

}  // namespace tracefs
