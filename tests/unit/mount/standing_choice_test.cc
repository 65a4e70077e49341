// How queue threads stand beside others that want the processors: what was
// served, when it is tried what serves more, and what comes of it.
#include "tracefs/mount/standing_choice.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum QueueStanding;

bool IsSet(const EventFd& event) {
  pollfd p = {event.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// Requests of a queue of its own, which `callers` make in turns.
void Serve(ServedRequests* queues, uint32_t callers, uint32_t requests,
           uint32_t each_at_a_time = 1) {
  std::thread([=] {
    for (uint32_t i = 0; i < requests; ++i) {
      queues->Note(1000 + i / each_at_a_time % callers);
    }
  }).join();
}

TEST(ServedRequestsTest, AreCountedWithTheChangesOfCaller) {
  ServedRequests queues;
  Serve(&queues, 1, 6400);
  EXPECT_EQ(queues.count().requests, 6400U);
  EXPECT_EQ(queues.count().changes, 1U);
  for (int i = 0; i < 7; ++i) Serve(&queues, 1, 640);
  EXPECT_EQ(queues.count().changes, 8U);
  Serve(&queues, 16, 6400, /*each_at_a_time=*/20);
  EXPECT_EQ(queues.count().changes, 8U + 6400 / 20);
  Serve(&queues, 2, 640);
  EXPECT_EQ(queues.count().changes, 8U + 6400 / 20 + 640);
}

TEST(ServedRequestsTest, AreToldOnceToWhoWaits) {
  ServedRequests queues;
  const EventFd served;
  Serve(&queues, 1, 640);
  EXPECT_FALSE(IsSet(served));
  queues.Await(&served);
  EXPECT_FALSE(IsSet(served));
  Serve(&queues, 1, 640);
  EXPECT_TRUE(IsSet(served));
  served.Clear();
  Serve(&queues, 2, 640);
  EXPECT_FALSE(IsSet(served));
  queues.Await(&served);
  queues.Await(nullptr);
  Serve(&queues, 2, 640);
  EXPECT_FALSE(IsSet(served));
}

TEST(RunDelayTest, OfThreadsThatHaveEndedIsNotLessThanNone) {
  const RunDelay delay = RunDelay{500, 5}.Since({200, 3});
  EXPECT_EQ(delay.waited_ns, 300U);
  EXPECT_EQ(delay.runs, 2U);
  const RunDelay none = RunDelay{100, 2}.Since({200, 3});
  EXPECT_EQ(none.waited_ns, 0U);
  EXPECT_EQ(none.runs, 0U);
}

using Rates = std::array<double, kQueueStandings>;

// Queues that serve so many requests a second, by how they stand.
class Model {
 public:
  explicit Model(const Rates& rates) : rates_(rates) {}

  void Stand(QueueStanding standing) {
    Count();
    standing_ = standing;
  }
  uint64_t Count() {
    const uint64_t now_ns = MonotonicNs();
    served_ += static_cast<double>(now_ns - last_ns_) *
               rates_[static_cast<size_t>(standing_)] / 1e9;
    last_ns_ = now_ns;
    return static_cast<uint64_t>(served_);
  }

 private:
  const Rates rates_;
  QueueStanding standing_ = kAtOnce;
  uint64_t last_ns_ = MonotonicNs();
  double served_ = 0;
};

TEST(ServingTrialTest, FindsHowManyAreServedByEach) {
  const EventFd stop;
  Model model({100'000, 150'000, 120'000});
  const ServingTrial trial =
      TryServing([&](QueueStanding standing) { model.Stand(standing); },
                 [&] { return model.Count(); }, stop);
  EXPECT_NEAR(trial.Of(kAtOnce).PerSecond(), 100'000, 1000);
  EXPECT_NEAR(trial.Of(kGivingWay).PerSecond(), 150'000, 1000);
  EXPECT_NEAR(trial.Of(kLikeOthers).PerSecond(), 120'000, 1000);
}

TEST(ServingTrialTest, EndsWhenItIsToldTo) {
  const EventFd stop;
  stop.Set();
  const ServingTrial trial =
      TryServing([](QueueStanding) {}, [] { return uint64_t{1}; }, stop);
  for (const ServingTrial::Served& served : trial.by_standing) {
    EXPECT_EQ(served.ns, 0U);
  }
}

// Of a second each.
ServingTrial Found(const std::array<uint64_t, kQueueStandings>& requests) {
  ServingTrial trial;
  for (size_t i = 0; i < requests.size(); ++i) {
    trial.by_standing[i] = {requests[i], kNsPerSecond};
  }
  return trial;
}

TEST(ServingTrialTest, TheMostServedAreBestAndWhatIsAlikeKeepsItsOrder) {
  EXPECT_EQ(Found({1000, 1500, 1200}).Best(), kGivingWay);
  EXPECT_EQ(Found({1000, 500, 1200}).Best(), kLikeOthers);
  EXPECT_EQ(Found({1000, 500, 200}).Best(), kAtOnce);
  // Who gives way costs others less; who stands like others costs most.
  EXPECT_EQ(Found({1000, 960, 500}).Best(), kGivingWay);
  EXPECT_EQ(Found({1000, 940, 500}).Best(), kAtOnce);
  EXPECT_EQ(Found({1000, 900, 1140}).Best(), kAtOnce);
  EXPECT_EQ(Found({1000, 900, 1160}).Best(), kLikeOthers);
  EXPECT_EQ(Found({900, 1000, 1140}).Best(), kGivingWay);
}

TEST(ServingTrialTest, OfHardlyAnyRequestsNobodyIsKeptWaiting) {
  EXPECT_EQ(Found({30, 2, 3}).Best(), kLikeOthers);
  EXPECT_EQ(Found({0, 0, 0}).Best(), kLikeOthers);
  EXPECT_EQ(Found({60, 0, 0}).Best(), kAtOnce);
}

// A mount whose requests are looked at a tenth of a second at a time.
class StandingChoiceTest : public testing::Test {
 protected:
  // What there is to be found if it is tried.
  void WouldFind(const std::array<uint64_t, kQueueStandings>& requests) {
    found_ = Found(requests);
  }
  QueueStanding Look(uint64_t requests, uint64_t changes, uint64_t wait_us) {
    const std::chrono::nanoseconds time = milliseconds(100);
    now_ += time;
    return choice_.After({.served = {requests, changes},
                          .delay = {wait_us * 1000 * requests, requests},
                          .time = time},
                         now_);
  }
  QueueStanding Calm() { return Look(1000, 0, 1); }
  QueueStanding Waiting() { return Look(100, 0, 300); }
  QueueStanding InTurns(uint64_t requests = 1000) {
    return Look(requests, requests, 5);
  }

  ServingTrial found_ = Found({1000, 2000, 1500});
  int trials_ = 0;
  StandingChoice::Clock::time_point now_{seconds(1000)};
  StandingChoice choice_{[this] {
    ++trials_;
    return found_;
  }};
};

TEST_F(StandingChoiceTest, NothingIsTriedForACallerWhoIsServedAtOnce) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Calm(), kAtOnce);
  // Callers with queues of their own; a few that waited long.
  EXPECT_EQ(Look(1000, 499, 5), kAtOnce);
  EXPECT_EQ(Look(7, 7, 5000), kAtOnce);
  EXPECT_EQ(Look(100, 0, 20), kAtOnce);
  EXPECT_EQ(trials_, 0);
  EXPECT_EQ(choice_.figures(), "");
}

TEST_F(StandingChoiceTest, CallersInTurnAreGivenWayToUntilTheyTakeNone) {
  EXPECT_EQ(InTurns(), kGivingWay);
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(choice_.figures(),
            "1000/s at once, 2000/s giving way, 1500/s like others");
  EXPECT_EQ(InTurns(), kGivingWay);
  EXPECT_EQ(Look(1000, 250, 5), kGivingWay);
  EXPECT_EQ(Look(1000, 249, 5), kAtOnce);
  EXPECT_EQ(Calm(), kAtOnce);
  // The trial holds.
  EXPECT_EQ(InTurns(), kGivingWay);
  EXPECT_EQ(trials_, 1);
}

TEST_F(StandingChoiceTest, ThreadsThatWaitForAProcessorStandLikeOthers) {
  WouldFind({200, 180, 1000});
  EXPECT_EQ(Waiting(), kLikeOthers);
  // It does not wait any more, and it is this that helps.
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Look(100, 0, 5), kLikeOthers);
  EXPECT_EQ(trials_, 1);
  EXPECT_EQ(Look(0, 0, 0), kLikeOthers);
  EXPECT_EQ(Look(0, 0, 0), kLikeOthers);
  EXPECT_EQ(Look(0, 0, 0), kAtOnce);
}

TEST_F(StandingChoiceTest, AMomentWithoutRequestsChangesNothing) {
  WouldFind({200, 180, 1000});
  EXPECT_EQ(Waiting(), kLikeOthers);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Look(0, 0, 0), kLikeOthers);
    EXPECT_EQ(Look(7, 0, 0), kLikeOthers);
    EXPECT_EQ(Look(100, 0, 5), kLikeOthers);
  }
}

TEST_F(StandingChoiceTest, WhatIsBestAnywayIsNotTriedAgainAtOnce) {
  WouldFind({1000, 100, 900});
  for (int i = 0; i < 99; ++i) EXPECT_EQ(Waiting(), kAtOnce);
  EXPECT_EQ(trials_, 1);
}

TEST_F(StandingChoiceTest, IsTriedAgainInTimeAndLessOftenIfItStaysSo) {
  WouldFind({200, 180, 1000});
  EXPECT_EQ(Waiting(), kLikeOthers);
  std::array<int, 5> tenths{};  // until the next trial
  for (int& count : tenths) {
    for (const int before = trials_; trials_ == before; ++count) {
      ASSERT_EQ(Look(100, 0, 5), kLikeOthers);
      ASSERT_LT(count, 1000);
    }
  }
  EXPECT_EQ(tenths, (std::array<int, 5>{100, 200, 400, 600, 600}));
}

TEST_F(StandingChoiceTest, FarFewerThanExpectedIsTriedAgain) {
  WouldFind({2000, 1800, 10'000});
  EXPECT_EQ(Look(1000, 0, 300), kLikeOthers);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(Look(690, 0, 5), kLikeOthers);
  EXPECT_EQ(trials_, 1) << "not at once: the trial itself takes time";
  WouldFind({9000, 1800, 1000});
  QueueStanding standing = kLikeOthers;
  for (int i = 0; i < 15; ++i) standing = Look(690, 0, 5);
  EXPECT_EQ(standing, kAtOnce);
  EXPECT_EQ(trials_, 2);
}

}  // namespace
}  // namespace tracefs
