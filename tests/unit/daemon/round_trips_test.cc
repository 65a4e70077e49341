// The choice of a policy by measured round trips, and that measuring leaves
// the process as it was.
#include "tracefs/daemon/round_trips.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <vector>

#include "tests/support/helper_pids.h"
#include "tracefs/base/helper_link.h"

namespace tracefs {
namespace {

using std::chrono::microseconds;

PolicyTrial Trial(ThreadPolicy policy, int us) {
  return {policy, {microseconds(us)}};
}

TEST(BestOfTest, TakesTheFastest) {
  const std::array trials = {Trial(ThreadPolicy::kIdle, 20),
                             Trial(ThreadPolicy::kNice, 10),
                             Trial(ThreadPolicy::kNormal, 30)};
  EXPECT_EQ(BestOf(trials), ThreadPolicy::kNice);
}

TEST(BestOfTest, TakesTheFirstOfThoseThatAreAlike) {
  const std::array trials = {Trial(ThreadPolicy::kIdle, 14),
                             Trial(ThreadPolicy::kNice, 10),
                             Trial(ThreadPolicy::kNormal, 10)};
  EXPECT_EQ(BestOf(trials), ThreadPolicy::kIdle);
}

TEST(BestOfTest, IsNotLedByADisturbedBatchNorByALuckyOne) {
  // 2 µs: the caller stays; 25 µs: he is moved to another processor.
  using Batches = std::vector<std::chrono::nanoseconds>;
  const auto of = [](std::initializer_list<int> us) {
    return Batches(us.begin(), us.end());
  };
  const std::array trials = {
      PolicyTrial{ThreadPolicy::kIdle, of({2, 2, 25, 2, 25})},
      PolicyTrial{ThreadPolicy::kNormal, of({25, 25, 2, 25, 25})}};
  EXPECT_EQ(BestOf(trials), ThreadPolicy::kIdle);
  const std::array turned = {trials[1], trials[0]};
  EXPECT_EQ(BestOf(turned), ThreadPolicy::kIdle);
}

TEST(BestOfTest, NeverTakesOneThatDidNotAnswer) {
  const std::array trials = {PolicyTrial{ThreadPolicy::kIdle, {}},
                             Trial(ThreadPolicy::kNormal, 90)};
  EXPECT_EQ(BestOf(trials), ThreadPolicy::kNormal);
  EXPECT_EQ(BestOf({}), std::nullopt);
  EXPECT_EQ(BestOf(std::span(trials).first(1)), std::nullopt);
}

TEST(BestOfTest, TheFiguresAreTold) {
  const std::array trials = {PolicyTrial{ThreadPolicy::kIdle, {}},
                             Trial(ThreadPolicy::kNormal, 9)};
  EXPECT_EQ(TrialsText(trials), "idle not possible, normal 9.00 µs");
}

TEST(ThreadPolicyTest, NamesLeadBack) {
  for (const ThreadPolicy policy :
       {ThreadPolicy::kNormal, ThreadPolicy::kNice, ThreadPolicy::kIdle}) {
    EXPECT_EQ(PolicyOf(PolicyName(policy)), policy);
  }
  EXPECT_EQ(PolicyOf("fast"), std::nullopt);
}

TEST(RoundTripsTest, MeasuresAgainAndAgainAndLeavesThisThreadAlone) {
  const int scheduler = ::sched_getscheduler(0);
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  RoundTrips trips;
  const OwnSession session;
  for (int i = 0; i < 3; ++i) {
    const std::array policies = {ThreadPolicy::kNormal};
    const std::vector<PolicyTrial> trials = trips.Try(policies, session);
    ASSERT_EQ(trials.size(), 1u);
    ASSERT_TRUE(trials[0].round_trip().has_value());
    EXPECT_GT(*trials[0].round_trip(), std::chrono::nanoseconds(100));
    EXPECT_LT(*trials[0].round_trip(), std::chrono::seconds(1));
  }
  EXPECT_EQ(::sched_getscheduler(0), scheduler);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), nice);
}

TEST(RoundTripsTest, WorksOnOneProcessor) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  {
    RoundTrips trips;
    const std::array policies = {ThreadPolicy::kNormal, ThreadPolicy::kNice};
    const std::vector<PolicyTrial> trials = trips.Try(policies, OwnSession());
    ASSERT_EQ(trials.size(), 2u);
    EXPECT_TRUE(trials[0].round_trip().has_value());
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

// Nothing takes its place, and that is known.
TEST(RoundTripsTest, OneThatWasKilledIsCounted) {
  RoundTrips trips;
  const auto counts = [] {
    for (const HelperCounts& one : LookAtHelpers()) {
      if (one.kind == HelperKind::kTrial) return one;
    }
    return HelperCounts{};
  };
  const HelperCounts before = counts();
  EXPECT_EQ(before.living, 1U);
  const pid_t caller = AwaitChildNamed(::getpid(), "tracefs-trial");
  ASSERT_NE(caller, 0);
  ASSERT_TRUE(Kill(caller));
  siginfo_t info;
  ASSERT_EQ(
      ::waitid(P_PID, static_cast<id_t>(caller), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(counts().living, 0U);
  EXPECT_EQ(counts().died, before.died + 1);
  const std::array policies = {ThreadPolicy::kNormal};
  static_cast<void>(trips.Try(policies, OwnSession()));
  EXPECT_EQ(counts().died, before.died + 1);
  EXPECT_EQ(counts().replaced, before.replaced);
}

// Processes of the user that it has become can stop it.
TEST(RoundTripsTest, Malicious_OneThatWasStoppedKeepsNobody) {
  pid_t caller = 0;
  {
    RoundTrips trips;
    caller = AwaitChildNamed(::getpid(), "tracefs-trial");
    ASSERT_NE(caller, 0);
    ASSERT_EQ(::kill(caller, SIGSTOP), 0);
    const std::array policies = {ThreadPolicy::kNormal};
    const std::vector<PolicyTrial> trials = trips.Try(policies, OwnSession());
    ASSERT_EQ(trials.size(), 1U);
    EXPECT_FALSE(trials[0].round_trip().has_value());
    EXPECT_TRUE(trips.Try(policies, OwnSession()).empty());
  }
  ASSERT_EQ(::kill(caller, SIGKILL), 0);
  EXPECT_EQ(::waitpid(caller, nullptr, 0), caller);
}

}  // namespace
}  // namespace tracefs
