// The locks that a later daemon finds, whatever moment the one before was
// killed at: with what was asked last asked again, all is as if nobody had
// died.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tracefs/fs/lock_table.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

constexpr uint64_t kOwners = 4;
constexpr uint64_t kFiles = 2;
constexpr uint64_t kBytes = 24;

struct Asked {
  enum What { kSet, kFlock, kReleaseOwner, kReleaseHandle, kWhats };
  What what;
  uint64_t file;
  Lock lock;
};

Asked AskedAt(uint64_t number) {
  std::mt19937_64 random(number);
  const uint64_t start = random() % kBytes;
  const uint64_t owner = 1 + random() % kOwners;
  return {
      .what = random() % 8 != 0
                  ? static_cast<Asked::What>(random() % 2)
                  : static_cast<Asked::What>(random() % Asked::kWhats),
      .file = 1 + random() % kFiles,
      .lock = {.type = static_cast<LockType>(random() % 3),
               .start = start,
               .end = random() % 5 == 0 ? kLockEnd : start + random() % kBytes,
               .owner = owner,
               .handle = owner,
               .pid = 7}};
}

void Ask(LockTable& table, uint64_t number) {
  const Asked asked = AskedAt(number);
  switch (asked.what) {
    case Asked::kFlock:
      static_cast<void>(table.Flock(asked.file, asked.lock));
      break;
    case Asked::kReleaseOwner:
      table.ReleaseOwner(asked.file, asked.lock.owner);
      break;
    case Asked::kReleaseHandle:
      table.ReleaseHandle(asked.file, asked.lock.handle);
      break;
    default:
      static_cast<void>(table.Set(asked.file, asked.lock));
  }
}

// Who holds what of each byte of each file, as somebody else would see it.
std::string All(LockTable& table) {
  std::string all;
  for (uint64_t file = 1; file <= kFiles; ++file) {
    for (uint64_t at = 0; at <= 3 * kBytes; ++at) {
      for (const LockType type : {LockType::kRead, LockType::kWrite}) {
        const std::optional<Lock> found = table.Get(
            file, {.type = type, .start = at, .end = at, .owner = 99});
        all += found ? std::to_string(found->pid) : "-";
      }
      // Which owner it is, if there is just one.
      for (uint64_t owner = 1; owner <= kOwners; ++owner) {
        all += table.Get(file, {.type = LockType::kWrite,
                                .start = at,
                                .end = at,
                                .owner = owner})
                   ? '1'
                   : '0';
      }
    }
  }
  return all + std::to_string(table.lock_count());
}

class KeptLocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = survive::Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    at_ = new (memory) std::atomic<uint64_t>(0);
  }
  void TearDown() override { ::munmap(at_, 4096); }

  static bool IsOpen(uint64_t /*file*/, uint64_t /*handle*/) { return true; }

  std::unique_ptr<survive::Area> area_;
  std::atomic<uint64_t>* at_ = nullptr;  // what is being asked
};

TEST_F(KeptLocksTest, DataLoss_KilledAtAnyMoment) {
  std::mt19937_64 random(11);
  uint64_t first = 1;
  LockTable truth;  // without any of this
  for (int death = 0; death < 60; ++death) {
    const pid_t daemon = ::fork();
    ASSERT_GE(daemon, 0);
    if (daemon == 0) {
      area_->FindFree();
      LockTable table;
      table.KeepIn(*area_);
      table.Restore(IsOpen);
      for (uint64_t number = first;; ++number) {
        at_->store(number);
        Ask(table, number);
      }
    }
    ::usleep(static_cast<useconds_t>(500 + random() % 20'000));
    ::kill(daemon, SIGKILL);
    ASSERT_EQ(::waitpid(daemon, nullptr, 0), daemon);
    const uint64_t last = std::max(first, at_->load());

    area_->FindFree();
    LockTable found;
    found.KeepIn(*area_);
    found.Restore(IsOpen);
    Ask(found, last);
    for (uint64_t number = first; number <= last; ++number) Ask(truth, number);
    ASSERT_EQ(All(found), All(truth)) << "death " << death << " at " << last;
    first = last + 1;
  }
  EXPECT_GT(first, 1000u) << "nothing was asked for";
}

TEST_F(KeptLocksTest, OneOfAFileThatIsClosedIsGone) {
  LockTable table;
  table.KeepIn(*area_);
  ASSERT_EQ(table.Set(1, {.type = LockType::kWrite, .owner = 1, .handle = 1}),
            0);
  ASSERT_EQ(table.Set(2, {.type = LockType::kWrite, .owner = 1, .handle = 2}),
            0);
  LockTable later;
  later.KeepIn(*area_);
  later.Restore([](uint64_t, uint64_t handle) { return handle == 2; });
  EXPECT_EQ(later.lock_count(), 1u);
  EXPECT_FALSE(later.Get(1, {.type = LockType::kWrite, .owner = 5}));
  EXPECT_TRUE(later.Get(2, {.type = LockType::kWrite, .owner = 5}));
}

TEST_F(KeptLocksTest, Malicious_WhatIsNoLockIsLeftOut) {
  LockTable table;
  table.KeepIn(*area_);
  for (uint64_t i = 0; i < 6; ++i) {
    ASSERT_EQ(table.Set(1, {.type = LockType::kWrite,
                            .start = 10 * i,
                            .end = 10 * i + 5,
                            .owner = 1,
                            .handle = 1}),
              0);
  }
  area_->lock(0).type = 9;
  area_->lock(1).family = 9;
  area_->lock(2).end = 1;
  area_->lock(3).end = ~uint64_t{0};
  area_->lock(4).handle = 77;
  LockTable later;
  later.KeepIn(*area_);
  later.Restore([](uint64_t, uint64_t handle) { return handle == 1; });
  EXPECT_EQ(later.lock_count(), 1u);
  area_->header().locks_used.store(~uint32_t{0});
  LockTable last;
  last.KeepIn(*area_);
  last.Restore(IsOpen);
  EXPECT_EQ(last.lock_count(), 1u);
}

}  // namespace
}  // namespace tracefs
