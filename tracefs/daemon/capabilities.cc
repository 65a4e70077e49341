// Raw capget, capset and prctl (capabilities.h); libcap would add a dependency
// for four calls.
#include "tracefs/daemon/capabilities.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tracefs/base/join.h"

namespace tracefs {
namespace {

using Data = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

uint64_t Joined(const Data& data, uint32_t __user_cap_data_struct::*set) {
  return data[0].*set | uint64_t{data[1].*set} << 32;
}

void Limit(Data& data, uint32_t __user_cap_data_struct::*set, uint64_t keep) {
  data[0].*set &= static_cast<uint32_t>(keep);
  data[1].*set &= static_cast<uint32_t>(keep >> 32);
}

bool Get(Data* data) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, data->data()) == 0;
}

constexpr std::array kNames = {"chown",
                               "dac_override",
                               "dac_read_search",
                               "fowner",
                               "fsetid",
                               "kill",
                               "setgid",
                               "setuid",
                               "setpcap",
                               "linux_immutable",
                               "net_bind_service",
                               "net_broadcast",
                               "net_admin",
                               "net_raw",
                               "ipc_lock",
                               "ipc_owner",
                               "sys_module",
                               "sys_rawio",
                               "sys_chroot",
                               "sys_ptrace",
                               "sys_pacct",
                               "sys_admin",
                               "sys_boot",
                               "sys_nice",
                               "sys_resource",
                               "sys_time",
                               "sys_tty_config",
                               "mknod",
                               "lease",
                               "audit_write",
                               "audit_control",
                               "setfcap",
                               "mac_override",
                               "mac_admin",
                               "syslog",
                               "wake_alarm",
                               "block_suspend",
                               "audit_read",
                               "perfmon",
                               "bpf",
                               "checkpoint_restore"};

}  // namespace

uint64_t EffectiveCapabilities() {
  Data data{};
  return Get(&data) ? Joined(data, &__user_cap_data_struct::effective) : 0;
}

Status LimitCapabilities(uint64_t keep) {
  Data data{};
  if (!Get(&data)) return Status::System(errno, "capget");
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Up to the last one this kernel knows.
  for (unsigned long capability = 0; capability < 64; ++capability) {
    const int has = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (has < 0) break;
    if (has == 0 || (keep >> capability & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return Status::System(errno, "drop capabilities");
    }
  }
  Limit(data, &__user_cap_data_struct::effective, keep);
  Limit(data, &__user_cap_data_struct::permitted, keep);
  Limit(data, &__user_cap_data_struct::inheritable, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, data.data()) != 0) {
    return Status::System(errno, "capset");
  }
  return Status::Ok();
}

std::string CapabilityNames(uint64_t capabilities) {
  std::string text;
  for (size_t i = 0; i < 64; ++i) {
    if ((capabilities >> i & 1) == 0) continue;
    AppendWord(i < kNames.size() ? kNames[i] : std::to_string(i), " ", &text);
  }
  return text;
}

}  // namespace tracefs
