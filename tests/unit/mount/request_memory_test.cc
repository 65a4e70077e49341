// How many requests may be under way in how much memory.
#include "tracefs/mount/request_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tracefs/mount/transport.h"

namespace tracefs {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(QueueDepthTest, OfManyProcessorsIsBoundByAddressSpace) {
  EXPECT_EQ(QueueDepth({.processors = 64, .memory_bytes = 1024 * kGiB}), 256);
  EXPECT_EQ(QueueDepth({.processors = 1024, .memory_bytes = 8192 * kGiB}), 16);
}

TEST(QueueDepthTest, TakesAnEighthOfTheMemoryAtMost) {
  for (const int processors : {1, 2, 8, 64}) {
    for (const uint64_t gib : {4, 16, 64, 256}) {
      const int depth =
          QueueDepth({.processors = processors, .memory_bytes = gib * kGiB});
      EXPECT_GE(depth, 16);
      EXPECT_LE(depth, 1024);
      if (depth > 16) {
        EXPECT_LE(MemoryOfQueues(depth).bytes_at_most *
                      static_cast<uint64_t>(processors),
                  gib * kGiB / 8);
      }
    }
  }
}

TEST(QueueDepthTest, IsNeverNone) {
  EXPECT_EQ(QueueDepth({.processors = 2, .memory_bytes = 0}), 16);
}

// All of them at once, with 1 MiB of data and a block of 256 KiB each.
uint64_t MostBytes(const RequestLimits& limits) {
  return static_cast<uint64_t>(limits.readers) * kMiB +
         static_cast<uint64_t>(limits.aside_at_work) * 5 * kMiB / 4 +
         limits.waiting_bytes;
}

TEST(RequestLimitsTest, AllRequestsTogetherTakeLessThanHalfOfTheMemory) {
  for (uint64_t mib = 40; mib < 64 * 1024; mib += 7 + mib / 3) {
    EXPECT_LE(MostBytes(RequestLimitsIn(mib * kMiB)), mib * kMiB / 2) << mib;
  }
}

TEST(RequestLimitsTest, MoreMemoryNeverMeansFewer) {
  RequestLimits before = RequestLimitsIn(0);
  for (uint64_t mib = 1; mib < 8 * 1024; ++mib) {
    const RequestLimits now = RequestLimitsIn(mib * kMiB);
    EXPECT_GE(now.readers, before.readers);
    EXPECT_GE(now.aside_at_work, before.aside_at_work);
    EXPECT_GE(now.waiting_bytes, before.waiting_bytes);
    before = now;
  }
}

TEST(RequestLimitsTest, AMachineOfSomeGibibytesHasAllOfThem) {
  const RequestLimits limits = RequestLimitsIn(2 * kGiB);
  EXPECT_EQ(limits.readers, 32);
  EXPECT_EQ(limits.aside_at_work, 256);
  EXPECT_EQ(limits.waiting_bytes, 128 * kMiB);
}

TEST(RequestLimitsTest, SomebodyServesHoweverLittleThereIs) {
  const RequestLimits limits = RequestLimitsIn(0);
  EXPECT_EQ(limits.readers, 4);
  EXPECT_EQ(limits.aside_at_work, 8);
  EXPECT_EQ(limits.waiting_bytes, 0u);
}

TEST(RequestLimitsTest, BothTransportsKeepToThem) {
  const MachineSize small = {.processors = 2, .memory_bytes = 64 * kMiB};
  const RequestLimits limits = RequestLimitsIn(small.memory_bytes);
  const auto dev =
      ChooseTransport(KernelTransport::kDev, {.machine = small}, "");
  ASSERT_TRUE(dev.ok());
  EXPECT_EQ(dev->readers, limits.readers);
  EXPECT_EQ(dev->max_waiting, limits.aside_at_work);
  EXPECT_EQ(dev->waiting_bytes, limits.waiting_bytes);
  const auto rings =
      ChooseTransport(KernelTransport::kUring, {.machine = small}, "");
  ASSERT_TRUE(rings.ok());
  EXPECT_EQ(rings->queue_depth, 16);
  EXPECT_LE(rings->max_waiting, limits.aside_at_work);
  EXPECT_EQ(rings->waiting_bytes, limits.waiting_bytes);
}

TEST(RequestLimitsTest, RingsThatWouldTakeTooMuchAreNotChosen) {
  const auto choice = ChooseTransport(KernelTransport::kAuto,
                                      {.machine = {.processors = 2,
                                                   .memory_bytes = 32 * kMiB,
                                                   .limited = true}},
                                      "");
  ASSERT_TRUE(choice.ok());
  EXPECT_FALSE(choice->uring);
  EXPECT_NE(choice->why.find("of memory"), std::string::npos) << choice->why;
}

}  // namespace
}  // namespace tracefs
