// When callers of a queue take turns, and how the session then stands.
#include "tracefs/mount/turns.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <thread>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

bool IsSet(const EventFd& event) {
  pollfd p = {event.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// Requests of a queue of its own, which `callers` make in turns.
void Serve(CallersInTurn* queues, uint32_t callers, uint32_t requests,
           uint32_t each_at_a_time = 1) {
  std::thread([=] {
    for (uint32_t i = 0; i < requests; ++i) {
      queues->Note(1000 + i / each_at_a_time % callers);
    }
  }).join();
}

class CallersInTurnTest : public testing::Test {
 protected:
  CallersInTurnTest() { queues_.Await(&turns_); }

  CallersInTurn queues_;
  const EventFd turns_;
};

TEST_F(CallersInTurnTest, OneCallerTakesNone) {
  Serve(&queues_, 1, 6400);
  EXPECT_EQ(queues_.count().requests, 6400U);
  EXPECT_EQ(queues_.count().changes, 1U);
  EXPECT_FALSE(IsSet(turns_));
}

TEST_F(CallersInTurnTest, CallersWithQueuesOfTheirOwnTakeNone) {
  for (int i = 0; i < 8; ++i) Serve(&queues_, 1, 640);
  EXPECT_EQ(queues_.count().changes, 8U);
  EXPECT_FALSE(IsSet(turns_));
}

TEST_F(CallersInTurnTest, OneAfterTheOtherIsNoTurn) {
  Serve(&queues_, 16, 6400, /*each_at_a_time=*/20);
  EXPECT_FALSE(IsSet(turns_));
}

TEST_F(CallersInTurnTest, ManyOfOneQueueAreToldOnce) {
  Serve(&queues_, 2, 640);
  EXPECT_TRUE(IsSet(turns_));
  turns_.Clear();
  Serve(&queues_, 2, 640);
  EXPECT_FALSE(IsSet(turns_));
  queues_.Await(&turns_);
  Serve(&queues_, 2, 640);
  EXPECT_TRUE(IsSet(turns_));
}

TEST_F(CallersInTurnTest, WhoDoesNotWaitIsNotTold) {
  queues_.Await(nullptr);
  Serve(&queues_, 2, 640);
  EXPECT_FALSE(IsSet(turns_));
}

// Queues that serve so many requests a second, by how the session stands.
class Model {
 public:
  Model(double at_once, double giving_way)
      : at_once_(at_once), giving_way_(giving_way) {}

  void Stand(Standing standing) {
    Count();
    standing_ = standing;
  }
  uint64_t Count() {
    const uint64_t now_ns = MonotonicNs();
    const double rate =
        standing_ == Standing::kGivesWay ? giving_way_ : at_once_;
    served_ += static_cast<double>(now_ns - last_ns_) * rate / 1e9;
    last_ns_ = now_ns;
    return static_cast<uint64_t>(served_);
  }
  ServingTrial Try(const EventFd& stop) {
    return TryServing([this](Standing standing) { Stand(standing); },
                      [this] { return Count(); }, stop);
  }

 private:
  const double at_once_;
  const double giving_way_;
  Standing standing_ = Standing::kMostUrgent;
  uint64_t last_ns_ = MonotonicNs();
  double served_ = 0;
};

TEST(ServingTrialTest, FindsHowManyAreServedEachWay) {
  const EventFd stop;
  const ServingTrial trial = Model(100'000, 150'000).Try(stop);
  EXPECT_NEAR(trial.at_once.PerSecond(), 100'000, 1000);
  EXPECT_NEAR(trial.giving_way.PerSecond(), 150'000, 1000);
  EXPECT_TRUE(trial.BetterGivesWay());
}

TEST(ServingTrialTest, DoesNotGiveWayToThoseWhoTakeEverything) {
  const EventFd stop;
  EXPECT_FALSE(Model(100'000, 20'000).Try(stop).BetterGivesWay());
}

TEST(ServingTrialTest, EndsWhenItIsToldTo) {
  const EventFd stop;
  stop.Set();
  const ServingTrial trial = Model(100'000, 150'000).Try(stop);
  EXPECT_EQ(trial.at_once.ns + trial.giving_way.ns, 0U);
}

}  // namespace
}  // namespace tracefs
