#include "tracefs/fs/wait_rule.h"

#include <algorithm>

namespace tracefs {
namespace {

// Requests are handed over when the score passes this; each one that does not
// wait reduces it by 1.
constexpr uint32_t kTooMuch = 16;
// A lock held elsewhere for a moment looks like a wait for the store, so one
// wait is not enough unless it was very long.
uint32_t Weight(uint64_t took_ns) {
  if (took_ns >= 20'000'000) return 24;
  return took_ns >= 2'000'000 ? 12 : 8;
}
constexpr uint32_t kFewest = 16;
constexpr uint32_t kMost = 4096;
// If it has to be handed over again so soon, it came back too early.
constexpr uint64_t kSoonNs = 1'000'000'000;

}  // namespace

void WaitRule::NoteLongest(uint64_t took_ns) {
  if (took_ns > Get(longest_ns_)) {
    longest_ns_.store(took_ns, std::memory_order_relaxed);
  }
}

void WaitRule::Waited(uint64_t now_ns, uint64_t took_ns, uint64_t bytes) {
  if (took_ns < WaitNs(bytes)) return;
  waited_here_.fetch_add(1, std::memory_order_relaxed);
  NoteLongest(took_ns);
  const uint32_t score =
      score_.load(std::memory_order_relaxed) + Weight(took_ns);
  score_.store(std::min(score, 2 * kTooMuch), std::memory_order_relaxed);
  if (score <= kTooMuch || hands_over()) return;
  const bool soon = now_ns < Get(came_back_ns_) + kSoonNs;
  const uint32_t enough = enough_.load(std::memory_order_relaxed);
  enough_.store(
      soon && Get(came_back_ns_) != 0 ? std::min(enough * 2, kMost) : kFewest,
      std::memory_order_relaxed);
  run_.store(0, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_relaxed);
  aside_.store(true, std::memory_order_relaxed);
}

void WaitRule::NoteAside(uint64_t now_ns, uint64_t took_ns, uint64_t bytes) {
  handed_over_.fetch_add(1, std::memory_order_relaxed);
  NoteLongest(took_ns);
  if (for_good_) return;
  if (took_ns >= WaitNs(bytes)) {
    run_.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t run = run_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (run < enough_.load(std::memory_order_relaxed) || !hands_over()) return;
  score_.store(0, std::memory_order_relaxed);
  came_back_ns_.store(now_ns, std::memory_order_relaxed);
  aside_.store(false, std::memory_order_relaxed);
}

void WaitRules::SetUp(bool may_hang) {
  for (WaitRule& rule : rules_) {
    rule.SetBegin(may_hang ? WaitRule::Begin::kAlwaysAside
                           : WaitRule::Begin::kHere);
  }
  if (may_hang) return;
  for (const Op op :
       {Op::fsync_, Op::fsyncdir_, Op::fallocate_, Op::copy_file_range_}) {
    Of(op).SetBegin(WaitRule::Begin::kAside);
  }
  for (const Op op : {Op::read_, Op::write_}) {
    Of(op, /*to_disk=*/true).SetBegin(WaitRule::Begin::kAside);
  }
}

}  // namespace tracefs
