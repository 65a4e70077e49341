// Which way requests travel, and why.
#include "tracefs/mount/transport.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace tracefs {
namespace {

bool UringCanBeHad() {
  return ChooseTransport(KernelTransport::kUring, {}).ok();
}

TEST(TransportTest, WhoAsksForDevGetsIt) {
  const auto choice = ChooseTransport(KernelTransport::kDev, {});
  ASSERT_TRUE(choice.ok());
  EXPECT_FALSE(choice->uring);
  EXPECT_EQ(choice->why, "as asked for");
}

TEST(TransportTest, AutoTakesTheRingsUnlessSomebodyElseAnswers) {
  struct Case {
    TransportFacts facts;
    bool uring;
    const char* why;
  };
  const Case cases[] = {
      {{}, true, "fewer switches"},
      // Another thread answers whoever waits for a lock.
      {{.forwards_locks = true}, false, "lock operations"},
      // What was measured is told, and decides only where it is clear.
      {{.round_trips = {.uring_ns = 8'000, .dev_ns = 12'000}}, true, "12.0 µs"},
      {{.round_trips = {.uring_ns = 13'000, .dev_ns = 12'000}}, true, "13.0"},
      {{.round_trips = {.uring_ns = 30'000, .dev_ns = 12'000}},
       false,
       "slower one here: a request takes 30.0 µs there and back over io_uring, "
       "12.0 µs over /dev/fuse"},
      {{.round_trips = {.uring_ns = 30'000}}, true, "fewer switches"},
  };
  for (const Case& c : cases) {
    const auto choice =
        ChooseTransport(KernelTransport::kAuto, c.facts, /*obstacle=*/"");
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->uring, c.uring) << c.why;
    EXPECT_NE(choice->why.find(c.why), std::string::npos) << choice->why;
  }
}

TEST(TransportTest, TheTrialLeavesNothingBehind) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  const auto before = descriptors();
  const TrialFigures trips = MeasureTransports();
  EXPECT_EQ(descriptors(), before);
  if (!UringObstacle().empty() || ::geteuid() != 0) {
    EXPECT_FALSE(trips.measured());
  }
  EXPECT_LT(trips.dev_ns, 1'000'000'000u);
}

// Whether a thread of it serves a trial.
bool Tries(pid_t process) {
  std::error_code gone;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    if (std::getline(comm, name) && name == "tracefs-trial") return true;
  }
  return false;
}

bool EndsSoon(pid_t child) {
  for (int i = 0; i < 30'000; ++i) {
    if (::waitpid(child, nullptr, WNOHANG) == child) return true;
    ::usleep(1000);
  }
  return false;
}

// In whatever moment: while a request of its own waits for an answer, too.
TEST(TransportTest, ATrialCanBeKilled) {
  if (::geteuid() != 0) GTEST_SKIP() << "trials need root";
  for (int i = 0; i < 25; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) static_cast<void>(MeasureTransports());
    }
    while (!Tries(child) && ::waitpid(child, nullptr, WNOHANG) == 0) {
    }
    const auto moment =
        std::chrono::steady_clock::now() + std::chrono::microseconds(100 * i);
    while (std::chrono::steady_clock::now() < moment) {
    }
    ::kill(child, SIGKILL);
    ASSERT_TRUE(EndsSoon(child)) << child << " waits for itself";
  }
}

TEST(TransportTest, SomeOfAQueueIsLeftWhoeverWaits) {
  const auto choice =
      ChooseTransport(KernelTransport::kAuto, {}, /*obstacle=*/"");
  ASSERT_TRUE(choice.ok());
  EXPECT_GT(choice->max_waiting, 0);
  EXPECT_GT(choice->max_aside, 0);
  EXPECT_LE(choice->max_waiting + choice->max_aside,
            choice->queue_depth * 3 / 4);
}

TEST(TransportTest, RingsThatWereAskedForAreHadOrRefused) {
  if (!UringCanBeHad()) {
    const auto choice = ChooseTransport(KernelTransport::kUring, {});
    EXPECT_EQ(ExitStatus(choice.status()), 3);
    // And auto says why it did without.
    const auto other = ChooseTransport(KernelTransport::kAuto, {});
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(other->uring);
    EXPECT_FALSE(other->why.empty());
    return;
  }
  const auto had = ChooseTransport(KernelTransport::kUring, {});
  ASSERT_TRUE(had.ok());
  EXPECT_TRUE(had->uring);
  const auto with_locks =
      ChooseTransport(KernelTransport::kUring, {.forwards_locks = true});
  ASSERT_FALSE(with_locks.ok());
  EXPECT_EQ(ExitStatus(with_locks.status()), 2);
  EXPECT_NE(with_locks.status().message().find("--transport dev"),
            std::string::npos);
}

}  // namespace
}  // namespace tracefs
