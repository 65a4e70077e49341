#include "tracefs/fs/page_order.h"

#include <algorithm>

namespace tracefs {

void PageOrder::Note(const Entry& entry) {
  std::lock_guard lock(mu_);
  entries_[noted_++ % kKept] = entry;
}

bool PageOrder::IsNewer(uint64_t at, uint64_t end, uint64_t now_ns,
                        uint64_t* next) const {
  // One page at a time: pages may have come in one by one.
  *next = std::min(end, at / kPageBytes * kPageBytes + kPageBytes);
  std::lock_guard lock(mu_);
  const size_t kept = std::min(noted_, kKept);
  for (size_t i = 1; i <= kept; ++i) {  // the newest first
    const Entry& entry = entries_[(noted_ - i) % kKept];
    if (entry.begin > at) *next = std::min(*next, entry.begin);
    if (at < entry.begin || at >= entry.end) continue;
    *next = std::min(*next, entry.end);
    if (!entry.written) return false;
    if (now_ns < entry.time_ns + kLastsNs) return true;
  }
  return false;
}

}  // namespace tracefs
