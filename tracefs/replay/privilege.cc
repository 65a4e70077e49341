#include "tracefs/replay/privilege.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracefs/replay/acl.h"

namespace tracefs::replay {
namespace {

constexpr std::array<PrivilegeInfo, kPrivilegeCount> kInfos = {{
    {"set_id", "set-user-ID and set-group-ID bits", "--set-id"},
    {"owners", "owners, and ACLs that name users or groups",
     "--users recorded"},
    {"security_xattrs", "security.* attributes", "--security-xattrs"},
    {"trusted_xattrs", "trusted.* and other attributes of root",
     "--trusted-xattrs"},
    {"devices", "device nodes", "--devices"},
}};

}  // namespace

const PrivilegeInfo& Info(Privilege privilege) {
  return kInfos[static_cast<size_t>(privilege)];
}

PrivilegeCounts LeftOut::Counts() const {
  PrivilegeCounts counts{};
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  return counts;
}

std::optional<Privilege> PrivilegeOfXattr(std::string_view name,
                                          ByteSpan value) {
  if (name.starts_with("user.")) return std::nullopt;
  if (IsAcl(name)) {
    return NamesSomebody(value) ? std::optional(Privilege::kOwner)
                                : std::nullopt;
  }
  return name.starts_with("security.") ? Privilege::kSecurityXattr
                                       : Privilege::kTrustedXattr;
}

namespace {

class CapabilitySets {
 public:
  CapabilitySets() {
    header_.version = _LINUX_CAPABILITY_VERSION_3;
    known_ = ::syscall(SYS_capget, &header_, sets_.data()) == 0;
  }
  void GiveUp(unsigned capability) {
    auto& set = sets_[capability / 32];
    const uint32_t keep = ~(1u << capability % 32);
    set.effective &= keep;
    set.permitted &= keep;
    set.inheritable &= keep;
  }
  void Raise(unsigned capability) {
    auto& set = sets_[capability / 32];
    set.effective |= set.permitted & (1u << capability % 32);
  }
  // No more than was permitted: it is always allowed.
  void Set() {
    if (known_) (void)::syscall(SYS_capset, &header_, sets_.data());
  }

 private:
  __user_cap_header_struct header_{};
  std::array<__user_cap_data_struct, 2> sets_{};
  bool known_ = false;
};

}  // namespace

void GiveUpCapabilities(const Grants& grants) {
  struct Held {
    Privilege privilege;
    unsigned capability;
  };
  constexpr Held kHeld[] = {{Privilege::kSetId, CAP_FSETID},
                            {Privilege::kSecurityXattr, CAP_SETFCAP},
                            {Privilege::kTrustedXattr, CAP_SYS_ADMIN},
                            {Privilege::kDevice, CAP_MKNOD}};
  CapabilitySets sets;
  for (const auto& [privilege, capability] : kHeld) {
    if (!grants.Has(privilege)) sets.GiveUp(capability);
  }
  sets.Set();
}

void ReachEverything() {
  CapabilitySets sets;
  for (const unsigned capability :
       {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_CHOWN}) {
    sets.Raise(capability);
  }
  sets.Set();
}

}  // namespace tracefs::replay
