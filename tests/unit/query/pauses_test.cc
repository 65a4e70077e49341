// Pauses between operations, and of each process, against a model.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "tests/unit/query/told_operations.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kWidth = 10;

// Rows of a width: how many pauses each has, by where it begins.
std::map<uint64_t, uint64_t> RowsOf(const Table& table) {
  std::map<uint64_t, uint64_t> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (const uint64_t count = NumberAt(table, i, "count")) {
      rows[NumberAt(table, i, table.columns[0].name)] = count;
    }
  }
  return rows;
}

std::vector<Table> Ask(const std::vector<ToldOperation>& all) {
  return AskOf(MakePauses({.histogram_width = kWidth}).get(), all);
}

TEST(PausesTest, AreCountedBetweenAllAndOfEachProcess) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<ToldOperation> all;
    uint64_t now = 0;
    for (int i = 0; i < 60; ++i) {
      now += random() % 50;
      all.push_back({.since_ns = now,
                     .ns = random() % 60,
                     .pid = static_cast<uint32_t>(1 + random() % 3),
                     .trace = random() % 2,
                     .inferred = random() % 9 == 0,
                     .timed = random() % 9 != 0});
    }
    std::map<uint64_t, uint64_t> gaps;
    std::map<uint64_t, uint64_t> thinks;
    std::map<std::pair<size_t, uint32_t>, uint64_t> ends;
    for (size_t i = 0; i < all.size(); ++i) {
      const ToldOperation& told = all[i];
      if (i != 0)
        ++gaps[(told.since_ns - all[i - 1].since_ns) / kWidth * kWidth];
      if (told.inferred || !told.timed) continue;
      const std::pair process{told.trace, told.pid};
      const uint64_t end = told.since_ns + told.ns;
      if (const auto at = ends.find(process); at == ends.end()) {
        ends[process] = end;
      } else {
        if (told.since_ns >= at->second) {
          ++thinks[(told.since_ns - at->second) / kWidth * kWidth];
        }
        at->second = std::max(at->second, end);
      }
    }
    const std::vector<Table> answer = Ask(all);
    EXPECT_EQ(RowsOf(answer[0]), gaps);
    EXPECT_EQ(RowsOf(answer[1]), thinks);
  }
}

// An operation that never ends leaves no pause after it.
TEST(PausesTest, DurationsThatAreLiesEndAtTheTop) {
  const std::vector<Table> answer =
      Ask({{.since_ns = 0, .ns = UINT64_MAX}, {.since_ns = 100, .ns = 1}});
  EXPECT_EQ(RowsOf(answer[1]), (std::map<uint64_t, uint64_t>()));
  EXPECT_EQ(answer[1].notes.size(), 1u);
}

}  // namespace
}  // namespace tracefs::query
