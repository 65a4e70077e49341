#include "tracefs/event/system_call_names.h"

#include <algorithm>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"

namespace tracefs {
namespace {

// clang-format off
constexpr SystemCallName kOfHeaders[] = {
#include "system_call_rows.inc"
};

// Since Linux 5.1 a new call has the same number on every machine.
constexpr SystemCallName kNewer[] = {
    {424, "pidfd_send_signal"}, {425, "io_uring_setup"},
    {426, "io_uring_enter"}, {427, "io_uring_register"}, {428, "open_tree"},
    {429, "move_mount"}, {430, "fsopen"}, {431, "fsconfig"}, {432, "fsmount"},
    {433, "fspick"}, {434, "pidfd_open"}, {435, "clone3"},
    {436, "close_range"}, {437, "openat2"}, {438, "pidfd_getfd"},
    {439, "faccessat2"}, {440, "process_madvise"}, {441, "epoll_pwait2"},
    {442, "mount_setattr"}, {443, "quotactl_fd"},
    {444, "landlock_create_ruleset"}, {445, "landlock_add_rule"},
    {446, "landlock_restrict_self"}, {447, "memfd_secret"},
    {448, "process_mrelease"}, {449, "futex_waitv"},
    {450, "set_mempolicy_home_node"}, {451, "cachestat"}, {452, "fchmodat2"},
    {453, "map_shadow_stack"}, {454, "futex_wake"}, {455, "futex_wait"},
    {456, "futex_requeue"}, {457, "statmount"}, {458, "listmount"},
    {459, "lsm_get_self_attr"}, {460, "lsm_set_self_attr"},
    {461, "lsm_list_modules"}, {462, "mseal"}, {463, "setxattrat"},
    {464, "getxattrat"}, {465, "listxattrat"}, {466, "removexattrat"},
    {467, "open_tree_attr"}, {468, "file_getattr"}, {469, "file_setattr"},
};
// clang-format on

std::vector<SystemCallName> MakeNames() {
  std::vector<SystemCallName> names(std::begin(kOfHeaders),
                                    std::end(kOfHeaders));
  names.insert(names.end(), std::begin(kNewer), std::end(kNewer));
  std::stable_sort(names.begin(), names.end(),
                   [](const SystemCallName& a, const SystemCallName& b) {
                     return a.number < b.number;
                   });
  names.erase(std::unique(names.begin(), names.end(),
                          [](const SystemCallName& a, const SystemCallName& b) {
                            return a.number == b.number;
                          }),
              names.end());
  return names;
}

}  // namespace

std::span<const SystemCallName> SystemCallNames() {
  static const std::vector<SystemCallName> names = MakeNames();
  return names;
}

std::string_view SystemCallNameOf(uint32_t number) {
  const auto names = SystemCallNames();
  const auto found = std::lower_bound(
      names.begin(), names.end(), number,
      [](const SystemCallName& name, uint32_t n) { return name.number < n; });
  return found != names.end() && found->number == number ? found->name
                                                         : std::string_view();
}

std::optional<uint32_t> SystemCallNumber(std::string_view name) {
  for (const SystemCallName& call : SystemCallNames()) {
    if (SameButForCase(call.name, name)) return call.number;
  }
  return std::nullopt;
}

std::string SystemCallTable() {
  return JoinWords(SystemCallNames(), "\n", [](const SystemCallName& call) {
    return std::to_string(call.number) + ' ' + std::string(call.name);
  });
}

}  // namespace tracefs
