#include "tracefs/report/access_pattern.h"

#include <algorithm>
#include <bit>

#include "tracefs/tally/sums.h"

namespace tracefs::report {
namespace {

// Handles are numbers within their trace; files without one are known by inode.
uint64_t KeyOf(const Event& event, tally::End end, size_t trace) {
  const Field handle = tally::HandleField(end);
  const Field inode = tally::InodeField(end);
  const bool has_fh = event.Has(handle);
  const uint64_t number = has_fh             ? event.Get(handle)
                          : event.Has(inode) ? event.Get(inode)
                                             : 0;
  return (number << 1 | (has_fh ? 1 : 0)) + (uint64_t{trace} << 48);
}

}  // namespace

void AccessPattern::Take(const Event& event, size_t trace) {
  if (event.op == Op::release_) {
    open_.erase(KeyOf(event, tally::End::kFile, trace));
    return;
  }
  if (!event.Has(Field::kResult)) return;
  for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
    TakeTransfer(event, transfer, trace);
  }
}

void AccessPattern::TakeTransfer(const Event& event,
                                 const tally::Transfer& transfer,
                                 size_t trace) {
  const Field position = tally::OffsetField(transfer.end);
  if (!event.Has(position)) return;
  const uint64_t moved = transfer.bytes;
  const uint64_t offset = event.Get(position);
  const uint64_t asked =
      event.Has(Field::kLength) ? event.Get(Field::kLength) : moved;
  if (open_.size() >= kMaxOpen) {
    open_.clear();
    ++forgotten_;
  }
  const Direction direction = transfer.reads() ? kRead : kWrite;
  uint64_t& next = open_[KeyOf(event, transfer.end, trace)].next[direction];
  const Class found = next == kNowhere ? Class::kFirst
                      : offset == next ? Class::kConsecutive
                      : offset > next  ? Class::kForward
                                       : Class::kBackward;
  next = tally::AddTo(offset, moved);
  OneWay& way = ways_[direction];
  Moved& sum = way.by_class[static_cast<size_t>(found)];
  ++sum.count;
  sum.bytes = tally::AddTo(sum.bytes, moved);
  ++way.by_size[static_cast<size_t>(std::bit_width(asked))];
  if (((offset | asked) & 4095) != 0) ++way.unaligned;
  const auto exact = way.exact.find(asked);
  if (exact != way.exact.end()) {
    ++exact->second;
  } else if (way.exact.size() < kMaxExact) {
    way.exact.emplace(asked, 1);
  } else {
    ++way.other_sizes;
  }
}

std::vector<std::pair<uint64_t, uint64_t>> AccessPattern::CommonSizes(
    Direction direction, size_t most) const {
  const auto& exact = ways_[direction].exact;
  std::vector<std::pair<uint64_t, uint64_t>> sizes(exact.begin(), exact.end());
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (sizes.size() > most) sizes.resize(most);
  return sizes;
}

}  // namespace tracefs::report
