#include "tracefs/report/access_pattern.h"

#include <algorithm>
#include <bit>

#include "tracefs/tally/sums.h"

namespace tracefs::report {

void AccessSums::Take(const Event& event, size_t mount, uint64_t real_ns,
                      const Bins& coarse) {
  open_.Take(
      event, mount,
      [&](const tally::Transfer& transfer, uint64_t offset,
          tally::AccessStep step) {
        Count(event, {transfer, offset, step, real_ns}, coarse);
      },
      [](const auto&) {});
}

void AccessSums::Count(const Event& event, const Step& it, const Bins& coarse) {
  OneWay& way = ways_[static_cast<size_t>(it.transfer.way)];
  const auto step = static_cast<size_t>(it.step);
  Moved& sum = way.by_step[step];
  ++sum.count;
  sum.bytes = tally::AddTo(sum.bytes, it.transfer.bytes);
  const uint64_t asked =
      event.Has(Field::kLength) ? event.Get(Field::kLength) : it.transfer.bytes;
  const auto size = static_cast<size_t>(std::bit_width(asked));
  ++way.by_size[size];
  const bool unaligned = ((it.offset | asked) & 4095) != 0;
  if (unaligned) ++way.unaligned;
  if (it.real_ns != 0) {
    ++way.bins.count_by_step[step].At(coarse, it.real_ns);
    uint64_t& bytes = way.bins.bytes_by_step[step].At(coarse, it.real_ns);
    bytes = tally::AddTo(bytes, it.transfer.bytes);
    ++way.bins.by_size[size].At(coarse, it.real_ns);
    if (unaligned) ++way.bins.unaligned.At(coarse, it.real_ns);
  }
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
