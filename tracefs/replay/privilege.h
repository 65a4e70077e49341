// Rights that a trace may ask for and that outlive a replay: the author of the
// trace chose them. None is granted unless the user of this program has asked
// for that kind; what is left out is counted and reported.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs::replay {

enum class Privilege : uint8_t {
  kSetId,          // set-user-ID and set-group-ID bits
  kOwner,          // files of other users, and ACLs that name some
  kSecurityXattr,  // security.*: file capabilities, labels
  kTrustedXattr,   // trusted.*, and all that is neither user.* nor an ACL
  kDevice,         // device nodes, and whiteouts
};
inline constexpr size_t kPrivilegeCount = 5;
inline constexpr mode_t kSetIdBits = 06000;

struct PrivilegeInfo {
  std::string_view key;     // for JSON
  std::string_view text;    // what it is, in the plural
  std::string_view option;  // that asks for it
};
const PrivilegeInfo& Info(Privilege privilege);

// Those that were asked for.
class Grants {
 public:
  void Add(Privilege privilege) {
    bits_ |= 1u << static_cast<unsigned>(privilege);
  }
  bool Has(Privilege privilege) const {
    return (bits_ >> static_cast<unsigned>(privilege) & 1) != 0;
  }

 private:
  uint32_t bits_ = 0;
};

using PrivilegeCounts = std::array<uint64_t, kPrivilegeCount>;

// Any thread.
class LeftOut {
 public:
  void Add(Privilege privilege) {
    counts_[static_cast<size_t>(privilege)].fetch_add(
        1, std::memory_order_relaxed);
  }
  PrivilegeCounts Counts() const;

 private:
  std::array<std::atomic<uint64_t>, kPrivilegeCount> counts_{};
};

// What setting this extended attribute takes; nothing: any user may set it.
// Without a value (it is removed) an ACL names no user.
std::optional<Privilege> PrivilegeOfXattr(std::string_view name,
                                          ByteSpan value);

// Gives up the capabilities of this thread by which the kernel would do, or
// keep, what was not asked for: writing to a program that is there leaves its
// set-id bits with CAP_FSETID.
void GiveUpCapabilities(const Grants& grants);

// Whoever this thread is to the file system, it may read, write and give away
// all that it could as root: for what is known to have been allowed.
void ReachEverything();

}  // namespace tracefs::replay
