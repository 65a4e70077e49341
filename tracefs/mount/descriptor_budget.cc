#include "tracefs/mount/descriptor_budget.h"

#include <sys/resource.h>

#include <algorithm>

#include "tracefs/base/descriptor_limit.h"
#include "tracefs/fs/inode_table.h"

namespace tracefs {

namespace {

// As far as this process may: beyond the hard limit with CAP_SYS_RESOURCE only.
void Raise(__rlimit_resource resource) {
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit limit;
  if (::setrlimit(resource, &unlimited) != 0 &&
      ::getrlimit(resource, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(resource, &limit);
  }
}

}  // namespace

DescriptorBudget RaiseLimits() {
  // The caller's own limit of that was checked by the kernel.
  Raise(RLIMIT_FSIZE);
  // They are of whoever started this, for what he runs: a mount lives longer,
  // and needs more the more others use it.
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_CPU}) {
    Raise(resource);
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
