// Who is held, who waits for that, and how it ends.
#include "tracefs/fs/hold_lot.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

constexpr uint64_t kLong = 3600 * kNsPerSecond;

class HoldLotTest : public testing::Test {
 protected:
  uint64_t Hold(uint32_t pid, bool fails = true, uint64_t ns = kLong) {
    return Begin({.tracer = 7, .pid = pid, .duration_ns = ns, .fails = fails});
  }
  uint64_t HoldUser(uint32_t uid) {
    return Begin({.tracer = 8, .uid = uid, .duration_ns = kLong});
  }
  // 0: `why_` says why not.
  uint64_t Begin(HoldWish wish) {
    const Result<uint64_t> number = lot_.Begin(std::move(wish), MonotonicNs());
    why_ = number.status().message();
    return number.ok() ? *number : 0;
  }
  std::shared_ptr<HoldLot::Hold> Meet(uint32_t pid, uint32_t uid = 1000) {
    return lot_.Meet(pid, uid, MonotonicNs(),
                     [&](uint32_t of) { return parents_[of]; });
  }
  std::shared_ptr<HoldLot::Place> Enter(uint32_t pid) {
    return lot_.Enter(Meet(pid), {.pid = pid});
  }
  // What one who waits gets.
  int WaitUntil(const std::function<void()>& end) {
    const auto place = Enter(11);
    int error = -1;
    std::thread waits([&] { error = place->Wait(); });
    end();
    waits.join();
    return error;
  }

  std::map<uint32_t, uint32_t> parents_{{11, 10}, {12, 11}, {10, 1}, {20, 1}};
  HoldLot lot_;
  std::string why_;
  HoldLot::Held held_;
};

TEST_F(HoldLotTest, NobodyAtFirst) {
  EXPECT_FALSE(lot_.any());
  EXPECT_EQ(Meet(11), nullptr);
}

TEST_F(HoldLotTest, AProcessAndAllBelowIt) {
  Hold(11);
  EXPECT_TRUE(lot_.any());
  EXPECT_NE(Meet(11), nullptr);
  EXPECT_NE(Meet(12), nullptr);
  EXPECT_EQ(Meet(10), nullptr);
  EXPECT_EQ(Meet(20), nullptr);
}

TEST_F(HoldLotTest, WhoIsSparedIsNotHeld) {
  HoldUser(1000);
  Hold(10);
  lot_.Spare(11, MonotonicNs() + kLong);
  EXPECT_EQ(Meet(11), nullptr);
  // What it starts is.
  EXPECT_NE(Meet(12), nullptr);
  lot_.Spare(20, 1);
  EXPECT_NE(Meet(20), nullptr);
  EXPECT_FALSE(lot_.IsSpared(20, MonotonicNs()));
}

TEST_F(HoldLotTest, AUser) {
  HoldUser(1000);
  EXPECT_NE(Meet(20, 1000), nullptr);
  EXPECT_EQ(Meet(20, 1001), nullptr);
}

// Its table may be a lie, or go round.
TEST_F(HoldLotTest, ParentsWithoutEnd) {
  Hold(99);
  parents_ = {{5, 6}, {6, 5}};
  EXPECT_EQ(Meet(5), nullptr);
}

TEST_F(HoldLotTest, EndsAsDecided) {
  uint64_t number = Hold(11);
  EXPECT_EQ(WaitUntil([&] { lot_.End(number, HoldEnd::kGoOn, &held_); }), 0);
  EXPECT_FALSE(lot_.any());
  number = Hold(11, /*fails=*/false);
  EXPECT_EQ(WaitUntil([&] { lot_.End(number, HoldEnd::kFail, &held_); }),
            EPERM);
  EXPECT_FALSE(lot_.End(number, HoldEnd::kFail, &held_));
}

TEST_F(HoldLotTest, EndsByItselfThoughNobodyLooks) {
  Hold(11, /*fails=*/true, 200 * kNsPerMs);
  EXPECT_EQ(WaitUntil([] {}), EPERM);
  EXPECT_EQ(Meet(11), nullptr);
  lot_.EndOld(MonotonicNs());
  Hold(11, /*fails=*/false, 200 * kNsPerMs);
  EXPECT_EQ(WaitUntil([] {}), 0);
}

TEST_F(HoldLotTest, GoesOnWhenItsTracerIsGone) {
  Hold(11);
  EXPECT_EQ(WaitUntil([&] { EXPECT_EQ(lot_.EndOf(7).size(), 1u); }), 0);
}

TEST_F(HoldLotTest, RoomIsBoundedAndGivenBack) {
  Hold(11);
  std::vector<std::shared_ptr<HoldLot::Place>> places;
  for (size_t i = 0; i < HoldLot::kMostWaiting; ++i) {
    places.push_back(Enter(11));
    ASSERT_NE(places.back(), nullptr);
  }
  EXPECT_EQ(Enter(12), nullptr);
  EXPECT_EQ(lot_.All()[0].waiting.size(), HoldLot::kMostWaiting);
  EXPECT_EQ(lot_.All()[0].refused, 1u);
  places.pop_back();
  EXPECT_NE(Enter(12), nullptr);
}

TEST_F(HoldLotTest, HoldsAreBounded) {
  for (uint32_t i = 0; i < HoldLot::kMostHolds; ++i) {
    EXPECT_NE(Hold(100 + i), 0u);
  }
  EXPECT_EQ(Hold(99), 0u);
  EXPECT_EQ(why_, "64 processes are held already");
  // One that is there lasts longer.
  EXPECT_EQ(Hold(100), 1u);
}

TEST_F(HoldLotTest, TwoRulesHoldOneProcessEachForItself) {
  const uint64_t first = Hold(11, /*fails=*/false);
  const uint64_t second = Begin({.tracer = 8, .pid = 11, .duration_ns = kLong});
  EXPECT_NE(first, second);
  EXPECT_EQ(lot_.EndOf(7).size(), 1u);
  ASSERT_NE(Meet(11), nullptr);
  EXPECT_TRUE(HoldLot::Fails(*Meet(11)));
}

TEST_F(HoldLotTest,
       Malicious_ProcessesOfOneUserAreBoundedAndTakeNoRoomOfOthers) {
  const auto hold = [&](uint32_t pid, uint32_t uid) {
    return Begin({.tracer = 7, .pid = pid, .uid = uid, .duration_ns = kLong});
  };
  for (uint32_t i = 0; i < HoldLot::kMostOfUser; ++i) {
    EXPECT_NE(hold(100 + i, 1000), 0u);
  }
  EXPECT_EQ(hold(99, 1000), 0u);
  EXPECT_EQ(why_, "16 processes of user 1000 are held already");
  EXPECT_NE(hold(99, 1001), 0u);
  // All of him can still be held.
  EXPECT_NE(HoldUser(1000), 0u);
}

// So that what the file needs can be done by others, while it is still held.
TEST_F(HoldLotTest, RefusesWhatWaitsAndWhatComes) {
  const uint64_t number = Hold(11, /*fails=*/false);
  EXPECT_FALSE(HoldLot::Refuses(*Meet(11)));
  EXPECT_EQ(WaitUntil([&] {
              EXPECT_TRUE(lot_.Refuse(number, MonotonicNs(), kLong));
            }),
            EPERM);
  ASSERT_NE(Meet(12), nullptr);
  EXPECT_TRUE(HoldLot::Refuses(*Meet(12)));
  EXPECT_TRUE(lot_.End(number, HoldEnd::kFail, &held_));
  EXPECT_FALSE(lot_.Refuse(number, MonotonicNs(), kLong));
}

// A hold may end while somebody still has a place.
TEST_F(HoldLotTest, APlaceOutlivesItsHold) {
  const uint64_t number = Hold(11);
  const auto place = Enter(11);
  lot_.End(number, HoldEnd::kFail, &held_);
  EXPECT_EQ(held_.waiting.size(), 1u);
  EXPECT_EQ(place->Wait(), EPERM);
}

}  // namespace
}  // namespace tracefs
