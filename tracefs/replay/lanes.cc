#include "tracefs/replay/lanes.h"

#include <algorithm>
#include <cstddef>

#include "tracefs/base/clock.h"

namespace tracefs::replay {
namespace {

// A thread that has done nothing for so long may have ended.
constexpr uint64_t kQuietNs = kNsPerSecond;
constexpr size_t kMostThreads = 65536;

}  // namespace

uint32_t Lanes::Of(uint32_t tid, uint64_t begin_ns, uint64_t end_ns) {
  auto [at, is_new] = threads_.try_emplace(tid);
  if (is_new) at->second.lane = Choose(begin_ns);
  Thread& thread = at->second;
  const uint32_t lane = thread.lane;
  thread.last_ns = end_ns;
  busy_until_[lane] = std::max(busy_until_[lane], end_ns);
  if (threads_.size() > kMostThreads) ForgetOld();
  return lane;
}

uint32_t Lanes::Choose(uint64_t begin_ns) {
  const auto idle = std::min_element(busy_until_.begin(), busy_until_.end());
  const bool free = idle != busy_until_.end() && *idle + kQuietNs < begin_ns;
  if (!free && busy_until_.size() < most_) {
    busy_until_.push_back(0);
    return static_cast<uint32_t>(busy_until_.size() - 1);
  }
  return static_cast<uint32_t>(idle - busy_until_.begin());
}

void Lanes::ForgetOld() {
  std::vector<uint64_t> times;
  for (const auto& [tid, thread] : threads_) times.push_back(thread.last_ns);
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(threads_, [limit = *middle](const auto& entry) {
    return entry.second.last_ns <= limit;
  });
}

}  // namespace tracefs::replay
