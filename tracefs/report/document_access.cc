// Part of the document: where in their files reads and writes go.
#include <optional>

#include "tracefs/report/document_parts.h"

namespace tracefs::report {
namespace {

// Flat: bin, `place` if there is one, number, where that is not 0; and so on.
void AppendRow(BinRow& row, const Bins& coarse, std::optional<size_t> place,
               Json* flat) {
  const auto& numbers = row.Numbers(coarse);
  for (size_t bin = 0; bin < numbers.size(); ++bin) {
    if (numbers[bin] == 0) continue;
    flat->push_back(bin);
    if (place) flat->push_back(*place);
    flat->push_back(numbers[bin]);
  }
}

Json BinsAsJson(AccessSums::OneWay& way, const Bins& coarse) {
  Json classes = Json::array();
  for (size_t step = 0; step < tally::kAccessSteps; ++step) {
    const auto& counts = way.bins.count_by_step[step].Numbers(coarse);
    const auto& bytes = way.bins.bytes_by_step[step].Numbers(coarse);
    for (size_t bin = 0; bin < counts.size(); ++bin) {
      if (counts[bin] == 0) continue;
      for (const uint64_t number : {bin, step, counts[bin], bytes[bin]}) {
        classes.push_back(number);
      }
    }
  }
  Json sizes = Json::array();
  size_t place = 0;  // in the list of sizes, which has those that came
  for (size_t bits = 0; bits < way.by_size.size(); ++bits) {
    if (way.by_size[bits] == 0) continue;
    AppendRow(way.bins.by_size[bits], coarse, place++, &sizes);
  }
  Json unaligned = Json::array();
  AppendRow(way.bins.unaligned, coarse, std::nullopt, &unaligned);
  return {{"classes", std::move(classes)},
          {"sizes", std::move(sizes)},
          {"unaligned", std::move(unaligned)}};
}

}  // namespace

Json AccessAsJson(Collector& collector) {
  AccessSums& access = collector.access();
  const Bins coarse = collector.grid().coarse();
  Json result = {{"forgotten", access.not_followed()}};
  for (const auto& [name, direction] :
       {std::pair{"read", tally::Way::kRead},
        std::pair{"write", tally::Way::kWrite}}) {
    AccessSums::OneWay& way = access.way(direction);
    Json classes = Json::array();
    for (size_t i = 0; i < tally::kAccessSteps; ++i) {
      classes.push_back({tally::kAccessStepNames[i], way.by_step[i].count,
                         way.by_step[i].bytes});
    }
    // Size from which on, count: powers of two.
    Json sizes = Json::array();
    for (size_t bits = 0; bits < way.by_size.size(); ++bits) {
      if (way.by_size[bits] == 0) continue;
      sizes.push_back(
          {bits == 0 ? 0 : uint64_t{1} << (bits - 1), way.by_size[bits]});
    }
    Json common = Json::array();
    for (const auto& [size, count] : access.CommonSizes(direction, 8)) {
      common.push_back({size, count});
    }
    result[name] = {
        {"classes", std::move(classes)},  {"sizes", std::move(sizes)},
        {"common", std::move(common)},    {"unaligned", way.unaligned},
        {"other_sizes", way.other_sizes}, {"bins", BinsAsJson(way, coarse)}};
  }
  return result;
}

}  // namespace tracefs::report
