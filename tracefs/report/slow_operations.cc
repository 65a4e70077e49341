#include "tracefs/report/slow_operations.h"

#include <algorithm>
#include <utility>

namespace tracefs::report {
namespace {

bool IsSlower(const SlowOperation& a, const SlowOperation& b) {
  if (a.time_ns != b.time_ns) return a.time_ns > b.time_ns;
  if (a.real_ns != b.real_ns) return a.real_ns < b.real_ns;
  return a.pid < b.pid;
}

// What of so many at most comes in front of, or takes the place of, the last.
bool HasRoom(const std::vector<SlowOperation>& sorted,
             const SlowOperation& slow) {
  return sorted.size() < SlowOperations::kOfBin ||
         IsSlower(slow, sorted.back());
}

void Insert(SlowOperation slow, std::vector<SlowOperation>* sorted) {
  const auto at =
      std::upper_bound(sorted->begin(), sorted->end(), slow, IsSlower);
  sorted->insert(at, std::move(slow));
  if (sorted->size() > SlowOperations::kOfBin) sorted->pop_back();
}

}  // namespace

std::vector<SlowOperation>& SlowOperations::Bin(uint64_t real_ns,
                                                const Bins& coarse) {
  if (shift_ != coarse.shift) {
    const int wider = coarse.shift - shift_;
    std::map<uint64_t, std::vector<SlowOperation>> now;
    for (auto& [bin, sorted] : bins_) {
      std::vector<SlowOperation>& into = now[bin >> wider];
      for (SlowOperation& slow : sorted) {
        if (HasRoom(into, slow)) Insert(std::move(slow), &into);
      }
    }
    bins_ = std::move(now);
    shift_ = coarse.shift;
    last_bin_ = nullptr;
  }
  const uint64_t bin = real_ns >> shift_;
  if (last_bin_ == nullptr || last_ != bin) last_bin_ = &bins_[bin];
  last_ = bin;
  return *last_bin_;
}

bool SlowOperations::Wants(const SlowOperation& slow, const Bins& coarse) {
  return all_.size() < kMost || IsSlower(slow, all_.front()) ||
         (slow.real_ns != 0 && HasRoom(Bin(slow.real_ns, coarse), slow));
}

void SlowOperations::Add(const SlowOperation& slow, const Bins& coarse) {
  if (slow.real_ns != 0) {
    std::vector<SlowOperation>& bin = Bin(slow.real_ns, coarse);
    if (HasRoom(bin, slow)) Insert(slow, &bin);
  }
  if (all_.size() >= kMost) {
    if (!IsSlower(slow, all_.front())) return;
    std::pop_heap(all_.begin(), all_.end(), IsSlower);
    all_.pop_back();
  }
  all_.push_back(slow);
  std::push_heap(all_.begin(), all_.end(), IsSlower);
}

std::vector<SlowOperation> SlowOperations::OfAll() const {
  std::vector<SlowOperation> sorted = all_;
  std::sort(sorted.begin(), sorted.end(), IsSlower);
  return sorted;
}

std::vector<SlowOperation> SlowOperations::OfBins() const {
  std::vector<SlowOperation> others;
  if (all_.size() < kMost) return others;  // there all are
  for (const auto& [bin, sorted] : bins_) {
    for (const SlowOperation& slow : sorted) {
      // Whatever is slower than the least slow of them is one of them.
      if (IsSlower(all_.front(), slow)) others.push_back(slow);
    }
  }
  std::sort(others.begin(), others.end(), IsSlower);
  return others;
}

}  // namespace tracefs::report
