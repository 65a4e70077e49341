#include "tracefs/pipeline/degraded_counts.h"

#include <algorithm>

#include "tracefs/format/constants.h"

namespace tracefs {
namespace {

template <typename Counts>
std::vector<format::OpTotal> NonZero(const Counts& counts) {
  std::vector<format::OpTotal> totals;
  for (size_t phase = 0; phase < counts.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      if (counts[phase][op] == 0) continue;
      totals.push_back(
          {format::OperationMessage(static_cast<Op>(op), phase != 0),
           counts[phase][op]});
    }
  }
  return totals;
}

}  // namespace

void DegradedCounts::Sent(uint64_t sequence, const ByOp& by_op) {
  std::vector<format::OpTotal> totals = NonZero(by_op);
  if (totals.empty()) return;
  std::lock_guard lock(mu_);
  if (on_the_way_.size() == kRemembered) on_the_way_.pop_front();
  on_the_way_.emplace_back(sequence, std::move(totals));
}

bool DegradedCounts::Lost(uint64_t sequence) {
  std::vector<format::OpTotal> totals;
  {
    std::lock_guard lock(mu_);
    const auto found = std::lower_bound(
        on_the_way_.begin(), on_the_way_.end(), sequence,
        [](const auto& block, uint64_t n) { return block.first < n; });
    if (found == on_the_way_.end() || found->first != sequence) return false;
    totals = std::move(found->second);
    on_the_way_.erase(found);
  }
  Return(totals);
  return true;
}

std::vector<format::OpTotal> DegradedCounts::Take() {
  std::lock_guard lock(mu_);
  std::vector<format::OpTotal> totals = NonZero(lost_);
  lost_ = {};
  return totals;
}

void DegradedCounts::Return(const std::vector<format::OpTotal>& totals) {
  std::lock_guard lock(mu_);
  for (const format::OpTotal& total : totals) {
    bool before = false;
    const auto op = format::OperationOf(total.msg_id, &before);
    if (op) lost_[before ? 1 : 0][Index(*op)] += total.count;
  }
}

}  // namespace tracefs
