// The throttling filter, on a clock that the test moves.
#include "filters/output/throttle.h"

#include <gtest/gtest.h>

#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/base/clock.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

class ThrottleTest : public testing::Test {
 protected:
  std::unique_ptr<OutputFilter> Make(const ThrottleOptions& options) {
    auto filter = MakeThrottle(options, std::make_unique<ChainEnd>(&log_),
                               {[this] { return now_ns_; },
                                [this](uint64_t ns) {
                                  now_ns_ += ns;
                                  slept_ns_ += ns;
                                }});
    EXPECT_TRUE(filter->Initialize(TestIdentity()).ok());
    return filter;
  }
  static Status Put(OutputFilter& filter, uint64_t events, size_t bytes = 10,
                    bool last = false) {
    return filter.Write(AsBytes(std::string(bytes, 'b')),
                        {.events = events, .last = last});
  }

  uint64_t now_ns_ = 1000 * kNsPerSecond;
  uint64_t slept_ns_ = 0;
  ChainLog log_;
};

TEST_F(ThrottleTest, WaitingHoldsTheRateOnAverage) {
  const auto filter = Make({.ops_per_second = 1000});
  const uint64_t begin = now_ns_;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Put(*filter, 100).ok());
  // 100,000 operations: 100 seconds, but for the second that comes at once and
  // the last block, for which nobody waits.
  EXPECT_NEAR(static_cast<double>(now_ns_ - begin), 98.9e9, 0.2e9);
  EXPECT_EQ(log_.written.size(), 1000u);
}

TEST_F(ThrottleTest, BytesAreBoundedAsWell) {
  const auto filter = Make({.bytes_per_second = 1e6});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(*filter, 1, 100000).ok());
  EXPECT_NEAR(static_cast<double>(slept_ns_), 8.9e9, 0.2e9);
}

TEST_F(ThrottleTest, BelowTheRateNobodyWaits) {
  const auto filter = Make({.ops_per_second = 1000, .bytes_per_second = 1e6});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Put(*filter, 100).ok());
    now_ns_ += kNsPerSecond / 10;
  }
  EXPECT_EQ(slept_ns_, 0u);
}

TEST_F(ThrottleTest, AnIdleHourSavesUpOneSecond) {
  const auto filter = Make({.ops_per_second = 1000});
  ASSERT_TRUE(Put(*filter, 1).ok());
  now_ns_ += 3600 * kNsPerSecond;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_EQ(slept_ns_, 0u);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_GE(slept_ns_, kNsPerSecond * 8 / 10);
}

// A daemon that is killed again and again must not let more through.
TEST_F(ThrottleTest, AnotherProcessBeginsWithNothingSavedUp) {
  const auto filter = Make({.ops_per_second = 1000});
  TraceIdentity identity = TestIdentity();
  identity.resumes = true;
  ASSERT_TRUE(filter->Initialize(identity).ok());
  ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_EQ(slept_ns_, 0u);
  ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_NEAR(static_cast<double>(slept_ns_), 0.1e9, 0.001e9);
}

TEST_F(ThrottleTest, DropKeepsTheRateWithoutWaiting) {
  const auto filter =
      Make({.ops_per_second = 1000, .when_full = {.block = false}});
  uint64_t kept = 0;
  for (int i = 0; i < 10000; ++i) {
    const Status status = Put(*filter, 10);
    if (status.ok()) {
      kept += 10;
    } else {
      EXPECT_EQ(LossReasonOf(status), LossReason::kThrottled);
    }
    now_ns_ += kNsPerSecond / 1000;  // ten times too fast for ten seconds
  }
  EXPECT_EQ(slept_ns_, 0u);
  EXPECT_NEAR(static_cast<double>(kept), 11000, 30);
}

TEST_F(ThrottleTest, TheDeadlineBoundsEachWait) {
  const auto filter =
      Make({.ops_per_second = 1,
            .when_full = {.deadline = std::chrono::seconds(2)}});
  ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_EQ(LossReasonOf(Put(*filter, 1)), LossReason::kThrottled);
  EXPECT_EQ(slept_ns_, 2 * kNsPerSecond);
}

TEST_F(ThrottleTest, BlocksWithoutOperationsAndTheLastPass) {
  const auto filter =
      Make({.ops_per_second = 1, .when_full = {.block = false}});
  ASSERT_TRUE(Put(*filter, 100).ok());
  EXPECT_FALSE(Put(*filter, 1).ok());
  EXPECT_TRUE(Put(*filter, 0).ok());
  EXPECT_TRUE(Put(*filter, 1, 10, /*last=*/true).ok());
}

TEST_F(ThrottleTest, WhatTheOutputRefusesIsNotCounted) {
  const auto filter = Make({.ops_per_second = 1000});
  log_.fail_writes = 100;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Put(*filter, 1000).ok());
  EXPECT_TRUE(Put(*filter, 1).ok());
  EXPECT_EQ(slept_ns_, 0u);
}

TEST(RateTest, Parses) {
  EXPECT_EQ(ParseRate("1000/s"), 1000);
  EXPECT_EQ(ParseRate("10M/s"), 10.0 * 1024 * 1024);
  EXPECT_EQ(ParseRate("60/m"), 1);
  EXPECT_EQ(ParseRate("7200/h"), 2);
  for (const char* bad : {"", "/", "5", "5/", "/s", "0/s", "-1/s", "5/x",
                          "5 /s", "5/s/s", "1.5/s", "99999999999999999999/s"}) {
    EXPECT_FALSE(ParseRate(bad)) << bad;
  }
}

// 2^64 operations at one an hour: longer than a clock can count. Nothing wraps
// to a time that has passed.
TEST_F(ThrottleTest, ATinyRateThatIsOverdrawnStaysSoForACentury) {
  const auto rate = ParseRate("1/h");
  ASSERT_TRUE(rate);
  const auto filter = Make({.ops_per_second = *rate,
                            .bytes_per_second = *rate,
                            .when_full = {.block = false}});
  constexpr uint64_t kYearNs = 365 * 24 * 3600 * kNsPerSecond;
  ASSERT_TRUE(Put(*filter, ~uint64_t{0}).ok());
  for (int year = 0; year < 90; ++year) {
    EXPECT_EQ(LossReasonOf(Put(*filter, 1)), LossReason::kThrottled) << year;
    now_ns_ += kYearNs;
  }
  now_ns_ += 10 * kYearNs;
  EXPECT_TRUE(Put(*filter, 1).ok());
  // And is overdrawn once more.
  EXPECT_FALSE(Put(*filter, 1).ok());
}

// The highest rate that can be written, 2^64 in a second: it saves up one
// second as any other, and then holds.
TEST_F(ThrottleTest, TheHighestRateHoldsAsAnyOther) {
  const auto rate = ParseRate("16777215T/s");
  ASSERT_TRUE(rate);
  const auto filter =
      Make({.ops_per_second = *rate,
            .when_full = {.deadline = std::chrono::seconds(10)}});
  ASSERT_TRUE(Put(*filter, ~uint64_t{0}).ok());
  ASSERT_TRUE(Put(*filter, ~uint64_t{0}).ok());
  EXPECT_LT(slept_ns_, kNsPerSecond / 10);
  ASSERT_TRUE(Put(*filter, ~uint64_t{0}).ok());
  EXPECT_NEAR(static_cast<double>(slept_ns_), 1e9, 1e7);
  ASSERT_TRUE(Put(*filter, 1).ok());
  EXPECT_NEAR(static_cast<double>(slept_ns_), 2e9, 1e7);
  EXPECT_EQ(log_.written.size(), 4u);
}

TEST(RateTest, ImpossibleOptionsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"throttle", "ops = N/s or bytes = N/s"},
      {"throttle ops = 5", "1000/s"},
      {"throttle bytes = fast", "1000/s"},
  };
  for (const auto& [filter, expected] : cases) {
    ChainLog log;
    const auto tracer = ParseOutput(std::string(filter) + "; file = x");
    ASSERT_TRUE(tracer.ok()) << tracer.status().message();
    const auto made = MakeFilters(*tracer, &log);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find(expected), std::string::npos);
  }
}

}  // namespace
}  // namespace tracefs
