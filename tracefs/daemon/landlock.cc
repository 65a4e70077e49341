#include "tracefs/daemon/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// linux/landlock.h, of which the system's may be older than the kernel; the
// numbers are the same on every machine.
constexpr long kCreateRuleset = 444;
constexpr long kRestrictSelf = 446;
constexpr unsigned kVersion = 1;
struct RulesetAttributes {
  uint64_t files = 0;
  uint64_t net = 0;
  uint64_t scoped = 0;
};
constexpr uint64_t kTcp = 1 << 0 | 1 << 1;      // bind, connect
constexpr uint64_t kOutside = 1 << 0 | 1 << 1;  // abstract sockets, signals
constexpr long kNetVersion = 4;
constexpr long kScopeVersion = 6;

std::string No(const std::string& why) { return "no landlock: " + why; }

}  // namespace

std::string EnterLandlockDomain() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kVersion);
  if (version < 0) return No(std::generic_category().message(errno));
  if (version < kNetVersion) {
    // Before, every domain restricts files, and with them renaming between
    // directories.
    return No("version " + std::to_string(version) + " of 4 (Linux 6.7)");
  }
  RulesetAttributes attributes{.net = kTcp};
  size_t size = offsetof(RulesetAttributes, scoped);
  if (version >= kScopeVersion) {
    attributes.scoped = kOutside;
    size = sizeof attributes;
  }
  const UniqueFd ruleset(
      static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0)));
  if (!ruleset || ::syscall(kRestrictSelf, ruleset.get(), 0) != 0) {
    return No(std::generic_category().message(errno));
  }
  return "landlock " + std::to_string(version);
}

}  // namespace tracefs
