#include "tracefs/mount/descriptor_budget.h"

#include <sys/resource.h>

#include <algorithm>

#include "tracefs/base/descriptor_limit.h"
#include "tracefs/fs/inode_table.h"

namespace tracefs {

DescriptorBudget RaiseLimits() {
  // The caller's own limit was checked by the kernel (RLIMIT_FSIZE).
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit limit;
  if (::setrlimit(RLIMIT_FSIZE, &unlimited) != 0 &&
      ::getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;  // that needs CAP_SYS_RESOURCE
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  DescriptorBudget budget;
  const uint64_t descriptors = RaiseDescriptorLimit();
  if (descriptors == 0) return budget;
  const auto all = static_cast<int>(std::min<uint64_t>(descriptors, 1 << 30));
  budget.inodes = std::clamp(all / 2, kMinInodeFds, kMaxInodeFds);
  constexpr int kMostMomentary = 1024;
  const int momentary = std::min(all / 8, kMostMomentary);
  budget.open_files = std::max(
      all - budget.inodes - InodeTable::FdsBeyond(budget.inodes) - momentary,
      64);
  budget.open_files_for_root = budget.open_files / 8;
  return budget;
}

}  // namespace tracefs
