#include "tracefs/headline/covered_time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace tracefs {
namespace {

TEST(CoveredTimeTest, IsThatOfASlowModelWhateverTheOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    CoveredTime covered;
    std::vector<bool> model(2000);
    const int spans = 1 + static_cast<int>(random() % 120);
    for (int i = 0; i < spans; ++i) {
      const size_t begin = random() % 1900;
      const size_t length = random() % (round % 2 == 0 ? 100 : 5);
      covered.Add(begin, length);
      for (size_t at = begin; at < begin + length; ++at) model[at] = true;
      uint64_t want = 0;
      for (const bool one : model) want += one ? 1 : 0;
      ASSERT_EQ(covered.ns(), want) << "round " << round << ", span " << i;
    }
  }
}

TEST(CoveredTimeTest, StaysSmallAndNeverTellsTooMuch) {
  CoveredTime covered;
  const uint64_t many = 4 * CoveredTime::kMost;
  for (uint64_t i = 0; i < many; ++i) covered.Add(1000 + 10 * i, 3);
  EXPECT_EQ(covered.ns(), 3 * many);
  covered.Add(0, 500);  // long ago
  EXPECT_EQ(covered.ns(), 3 * many);
}

TEST(CoveredTimeTest, Malicious_DurationsPastTheEndOfTimeStopThere) {
  CoveredTime covered;
  covered.Add(UINT64_MAX - 10, UINT64_MAX);
  EXPECT_EQ(covered.ns(), 10u);
  covered.Add(0, UINT64_MAX);
  EXPECT_EQ(covered.ns(), UINT64_MAX);
}

}  // namespace
}  // namespace tracefs
