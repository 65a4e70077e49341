// Which way requests travel, and why.
#include "tracefs/mount/transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

bool UringCanBeHad() {
  return ChooseTransport(KernelTransport::kUring, {}).ok();
}

TEST(TransportTest, WhoAsksForDevGetsIt) {
  for (const bool data : {false, true}) {
    const auto choice =
        ChooseTransport(KernelTransport::kDev, {.traces_data = data});
    ASSERT_TRUE(choice.ok());
    EXPECT_FALSE(choice->uring);
    EXPECT_EQ(choice->why, "as asked for");
  }
}

TEST(TransportTest, AutoTakesTheRingsUnlessSomebodyWouldWait) {
  struct Case {
    TransportFacts facts;
    bool uring;
    const char* why;
  };
  const Case cases[] = {
      {{}, true, "fewer switches"},
      // A request that waits for a disk holds up its processor's others.
      {{.traces_data = true}, false, "wait for a disk"},
      // Memory never waits.
      {{.traces_data = true, .in_memory = true}, true, "fewer switches"},
      {{.in_memory = true}, true, "fewer switches"},
      // Another thread answers whoever waits for a lock.
      {{.forwards_locks = true}, false, "lock operations"},
      {{.forwards_locks = true, .in_memory = true}, false, "lock operations"},
  };
  for (const Case& c : cases) {
    const auto choice =
        ChooseTransport(KernelTransport::kAuto, c.facts, /*obstacle=*/"");
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->uring, c.uring) << c.why;
    EXPECT_NE(choice->why.find(c.why), std::string::npos) << choice->why;
  }
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
  const auto with_data =
      ChooseTransport(KernelTransport::kUring, {.traces_data = true});
  ASSERT_TRUE(with_data.ok());
  EXPECT_TRUE(with_data->uring);
  const auto with_locks =
      ChooseTransport(KernelTransport::kUring, {.forwards_locks = true});
  ASSERT_FALSE(with_locks.ok());
  EXPECT_EQ(ExitStatus(with_locks.status()), 2);
  EXPECT_NE(with_locks.status().message().find("--transport dev"),
            std::string::npos);
}

TEST(TransportTest, KnowsWhatLivesInMemory) {
  const UniqueFd memory(::memfd_create("x", MFD_CLOEXEC));
  ASSERT_TRUE(memory);
  EXPECT_TRUE(IsInMemory(memory.get()));
  const UniqueFd proc(::open("/proc", O_PATH | O_CLOEXEC));
  EXPECT_FALSE(IsInMemory(proc.get()));
  EXPECT_FALSE(IsInMemory(-1));
}

}  // namespace
}  // namespace tracefs
