#include "tracefs/base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace tracefs {

uint64_t RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised = {
      std::min<rlim_t>(limit.rlim_max,
                       std::max<rlim_t>(limit.rlim_cur, wanted)),
      limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur
                                                  : limit.rlim_cur;
}

}  // namespace tracefs
