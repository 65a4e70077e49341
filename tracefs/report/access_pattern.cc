#include "tracefs/report/access_pattern.h"

#include <algorithm>
#include <bit>

#include "tracefs/tally/sums.h"

namespace tracefs::report {

void AccessSums::Take(const Event& event, size_t trace) {
  open_.Take(
      event, trace,
      [&](const tally::Transfer& transfer, uint64_t offset,
          tally::AccessStep step) { Count(event, transfer, offset, step); },
      [](const auto&) {});
}

void AccessSums::Count(const Event& event, const tally::Transfer& transfer,
                       uint64_t offset, tally::AccessStep step) {
  OneWay& way = ways_[static_cast<size_t>(transfer.way)];
  Moved& sum = way.by_step[static_cast<size_t>(step)];
  ++sum.count;
  sum.bytes = tally::AddTo(sum.bytes, transfer.bytes);
  const uint64_t asked =
      event.Has(Field::kLength) ? event.Get(Field::kLength) : transfer.bytes;
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

std::vector<std::pair<uint64_t, uint64_t>> AccessSums::CommonSizes(
    tally::Way way, size_t most) const {
  const auto& exact = ways_[static_cast<size_t>(way)].exact;
  std::vector<std::pair<uint64_t, uint64_t>> sizes(exact.begin(), exact.end());
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (sizes.size() > most) sizes.resize(most);
  return sizes;
}

}  // namespace tracefs::report
