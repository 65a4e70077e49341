// The slowest operations of any row of bins, against sorting all of them.
#include "tracefs/report/slow_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tracefs::report {
namespace {

class SlowOperationsTest : public testing::Test {
 protected:
  void Add(uint64_t real_ns, uint64_t time_ns) {
    grid_.Reach(real_ns);
    all_.push_back({.real_ns = real_ns, .time_ns = time_ns});
    if (slow_.Wants(all_.back(), grid_.coarse())) {
      slow_.Add(all_.back(), grid_.coarse());
    }
  }
  static std::vector<uint64_t> TimesOf(std::vector<SlowOperation> operations,
                                       uint64_t from_ns, uint64_t to_ns,
                                       size_t most) {
    std::erase_if(operations, [=](const SlowOperation& it) {
      return it.real_ns < from_ns || it.real_ns >= to_ns;
    });
    std::vector<uint64_t> times;
    for (const SlowOperation& it : operations) times.push_back(it.time_ns);
    std::ranges::sort(times, std::greater());
    if (times.size() > most) times.resize(most);
    return times;
  }

  TimeGrid grid_;
  SlowOperations slow_;
  std::vector<SlowOperation> all_;
};

TEST_F(SlowOperationsTest, TheFirstFiveOfAnyRowOfBinsAreCertain) {
  std::mt19937_64 random(7);
  // Bins become wider a thousand times over while they come.
  for (uint64_t i = 0; i < 20'000; ++i) {
    Add(1'000'000'000 + i * i / 3, random() % 1'000'000);
  }
  const std::vector<SlowOperation> of_all = slow_.OfAll();
  EXPECT_EQ(of_all.size(), SlowOperations::kMost);
  EXPECT_EQ(TimesOf(of_all, 0, UINT64_MAX, SlowOperations::kMost),
            TimesOf(all_, 0, UINT64_MAX, SlowOperations::kMost));
  std::vector<SlowOperation> kept = slow_.OfBins();
  EXPECT_LE(kept.size(), 256 * SlowOperations::kOfBin);
  kept.insert(kept.end(), of_all.begin(), of_all.end());
  const Bins coarse = grid_.coarse();
  for (size_t first = 0; first < coarse.size; first += 13) {
    for (const size_t size : {1, 7, 60}) {
      const uint64_t from = coarse.begin_ns() + first * coarse.width_ns();
      const uint64_t to = from + size * coarse.width_ns();
      EXPECT_EQ(TimesOf(kept, from, to, SlowOperations::kOfBin),
                TimesOf(all_, from, to, SlowOperations::kOfBin))
          << first << "+" << size;
    }
  }
}

TEST_F(SlowOperationsTest, ThoseWithoutATimeAreOfNoBin) {
  slow_.Add({.real_ns = 0, .time_ns = 9}, grid_.coarse());
  Add(5'000, 7);
  EXPECT_EQ(slow_.OfAll().size(), 2u);
  EXPECT_EQ(slow_.OfAll()[0].time_ns, 9u);
  EXPECT_TRUE(slow_.OfBins().empty());
}

}  // namespace
}  // namespace tracefs::report
