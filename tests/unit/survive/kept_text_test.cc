// Texts that a daemon leaves to the next, whatever moment it is killed at.
#include "tracefs/survive/kept_text.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/survive/area.h"

namespace tracefs::survive {
namespace {

class KeptTextTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Area>> made = Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
  }

  std::atomic<uint64_t>& word() { return area_->header().orders[0].said; }
  // How many places the area still has.
  size_t Room() {
    std::vector<void*> taken;
    while (void* const place = area_->TakeBlock()) taken.push_back(place);
    for (void* const place : taken) area_->GiveBlock(place);
    return taken.size();
  }

  std::unique_ptr<Area> area_;
};

TEST_F(KeptTextTest, OneOfAnyLengthIsThere) {
  const size_t room = Room();
  for (const size_t bytes :
       {size_t{0}, size_t{1}, Area::kBlockBytes - 24, Area::kBlockBytes - 23,
        2 * Area::kBlockBytes, size_t{50} << 20}) {
    std::string text(bytes, 'x');
    for (size_t i = 0; i < bytes; i += 4099) text[i] = static_cast<char>(i);
    ASSERT_TRUE(KeepText(*area_, word(), text).ok());
    const std::optional<std::string> kept = KeptText(*area_, word().load());
    ASSERT_TRUE(kept) << bytes;
    EXPECT_TRUE(*kept == text) << bytes;
  }
  ForgetText(*area_, word());
  EXPECT_FALSE(KeptText(*area_, word().load()));
  EXPECT_EQ(Room(), room);
}

TEST_F(KeptTextTest, TakesNoMorePlacesThanItNeeds) {
  constexpr size_t kRoom = Area::kBlockBytes - 24;
  for (const auto& [bytes, places] : {std::pair(size_t{0}, 1),
                                      {kRoom - 1, 1},
                                      {kRoom, 1},
                                      {kRoom + 1, 2},
                                      {2 * kRoom, 2},
                                      {2 * kRoom + 1, 3}}) {
    ASSERT_TRUE(KeepText(*area_, word(), std::string(bytes, 'x')).ok());
    int held = 0;
    area_->ForEachHeld([&](void*) { ++held; });
    EXPECT_EQ(held, places) << bytes;
  }
}

TEST_F(KeptTextTest, WhereThereIsNoRoomTheOldOneStays) {
  ASSERT_TRUE(KeepText(*area_, word(), "old").ok());
  std::vector<void*> taken;
  while (void* const place = area_->TakeBlock()) taken.push_back(place);
  area_->GiveBlock(taken.back());
  EXPECT_FALSE(
      KeepText(*area_, word(), std::string(2 * Area::kBlockBytes, 'n')).ok());
  EXPECT_EQ(KeptText(*area_, word().load()), "old");
  EXPECT_TRUE(KeepText(*area_, word(), "new").ok()) << "a place has leaked";
  EXPECT_EQ(KeptText(*area_, word().load()), "new");
  EXPECT_FALSE(
      KeepText(*area_, word(), std::string(kMostKeptBytes + 1, 'n')).ok());
}

TEST_F(KeptTextTest, DataLoss_KilledAtAnyMoment) {
  const size_t room = Room();
  std::mt19937_64 random(3);
  ASSERT_TRUE(KeepText(*area_, word(), "a").ok());
  for (int death = 0; death < 40; ++death) {
    const pid_t daemon = ::fork();
    ASSERT_GE(daemon, 0);
    if (daemon == 0) {
      for (uint64_t i = 0;; ++i) {
        const size_t bytes = i % 3 == 0 ? Area::kBlockBytes + 9 : 100;
        static_cast<void>(
            KeepText(*area_, word(),
                     std::string(bytes, static_cast<char>('a' + i % 26))));
      }
    }
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(daemon, SIGKILL);
    ASSERT_EQ(::waitpid(daemon, nullptr, 0), daemon);
    const std::optional<std::string> kept = KeptText(*area_, word().load());
    ASSERT_TRUE(kept) << "death " << death;
    ASSERT_FALSE(kept->empty());
    EXPECT_EQ(kept->find_first_not_of(kept->front()), kept->npos);
    ForgetLostTexts(*area_, {&word()});
  }
  ForgetText(*area_, word());
  // One that was killed between taking a place and holding it has left that as
  // a block, which whoever takes over gives back.
  area_->FindFree();
  area_->ForgetLeftBlocks();
  EXPECT_EQ(Room(), room);
}

TEST_F(KeptTextTest, Malicious_WhatIsNoTextIsNone) {
  ASSERT_TRUE(
      KeepText(*area_, word(), std::string(2 * Area::kBlockBytes, 't')).ok());
  EXPECT_FALSE(KeptText(*area_, 0));
  EXPECT_FALSE(KeptText(*area_, ~uint64_t{0}));
  auto* const place = static_cast<uint64_t*>(area_->Held(word().load() - 1));
  ASSERT_NE(place, nullptr);
  const uint64_t bytes = std::exchange(place[1], ~uint64_t{0});
  EXPECT_FALSE(KeptText(*area_, word().load()));
  place[1] = bytes;
  const uint64_t next = std::exchange(place[2], word().load());  // itself
  EXPECT_FALSE(KeptText(*area_, word().load()));
  place[2] = 99999;
  EXPECT_FALSE(KeptText(*area_, word().load()));
  place[2] = next;
  EXPECT_TRUE(KeptText(*area_, word().load()));
}

}  // namespace
}  // namespace tracefs::survive
