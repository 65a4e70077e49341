// What one daemon leaves to the next, whatever moment its end came at.
#include "tracefs/survive/area.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>

namespace tracefs::survive {
namespace {

class AreaTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Area>> made = Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
  }

  // Runs `life` as a daemon that is killed at its end.
  void Live(const std::function<void()>& life) {
    const pid_t daemon = ::fork();
    ASSERT_GE(daemon, 0);
    if (daemon == 0) {
      area_->Use();
      area_->FindFree();
      life();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
  }

  // The slot of the only thread of a dead daemon.
  WorkSlot& Dead() { return area_->slot(1); }

  std::unique_ptr<Area> area_;
};

// A result and how often the call was made.
struct Made {
  int64_t result;
  int calls;
  bool again;
};
Made CallOnce(int64_t result) {
  Made made = {0, 0, false};
  made.result = Once([&](bool again) {
    ++made.calls;
    made.again = again;
    return result;
  });
  return made;
}

TEST_F(AreaTest, WhatWasDoneIsNotDoneAgain) {
  Live([&] {
    area_->Begin(7);
    CallOnce(-17);
  });
  area_->Remember(Dead().now);
  Dead().used.store(0);
  Live([&] {
    area_->Begin(7 | kSentAgain);
    const Made made = CallOnce(0);
    if (made.calls != 0 || made.result != -17) ::_exit(1);
    if (CallOnce(5).calls != 1) ::_exit(2);  // the next step is new
  });
}

TEST_F(AreaTest, ACallWithoutAResultIsMadeAgain) {
  Live([&] {
    area_->Begin(7);
    Once([&](bool) -> int64_t {
      NoteBefore(99);
      ::kill(::getpid(), SIGKILL);
      return 0;
    });
  });
  area_->Remember(Dead().now);
  Dead().used.store(0);
  Live([&] {
    area_->Begin(7 | kSentAgain);
    if (!MayBeMade() || NotedBefore() != 99) ::_exit(1);
    const Made made = CallOnce(3);
    if (made.calls != 1 || !made.again || made.result != 3) ::_exit(2);
  });
}

TEST_F(AreaTest, AnotherRequestKnowsNothingOfThat) {
  Live([&] {
    area_->Begin(7);
    CallOnce(1);
  });
  area_->Remember(Dead().now);
  Dead().used.store(0);
  Live([&] {
    area_->Begin(8 | kSentAgain);
    const Made made = CallOnce(2);
    if (MayBeMade() && made.again) ::_exit(1);
    if (made.calls != 1 || made.result != 2) ::_exit(2);
  });
}

// Nothing is remembered twice, and the later knowledge stays.
TEST_F(AreaTest, RemembersTheLatest) {
  Outcome more{};
  more.unique.store(7);
  more.called.store(2);
  more.done.store(2);
  Outcome less{};
  less.unique.store(7 | kSentAgain);
  less.called.store(1);
  area_->Remember(more);
  area_->Remember(less);
  const Outcome* const known = area_->Pending(7);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->done.load(), 2u);
  int count = 0;
  for (const Outcome& one : area_->header().pending) {
    count += one.unique.load() == 7;
  }
  EXPECT_EQ(count, 1);
}

TEST_F(AreaTest, AThreadThatHandsARequestOnLeavesItsCrashesToTheOther) {
  Outcome crashed{};
  crashed.unique.store(5);
  crashed.crashes.store(2);
  area_->Remember(crashed);
  Live([&] {
    area_->Begin(5 | kSentAgain);
    area_->Offer();
    area_->Leave();
    area_->Begin(5 | kSentAgain);
  });
  EXPECT_EQ(Dead().now.crashes, 2U);
}

TEST_F(AreaTest, KnowsWhatARequestHasCounted) {
  Live([&] {
    const uint32_t a = area_->TakeNode();
    const uint32_t b = area_->TakeNode();
    area_->Begin(6);
    area_->Count(a, 100, 1, 1);  // of a request that was answered
    area_->Begin(7);
    area_->Count(a, 100, 1, 2);
    area_->Count(b, 200, 1, 1);
    area_->Count(b, 200, -1, 0);
  });
  const auto counted = Area::CountedBy(Dead());
  ASSERT_EQ(counted.size(), 1u);
  EXPECT_EQ(counted[0].node, 100u);
  EXPECT_EQ(counted[0].delta, 1);
}

// Too high a count keeps a file known for longer; too low a one would make the
// kernel use what is gone.
TEST_F(AreaTest, DoubtLeavesACountTooHigh) {
  Live([&] {
    const uint32_t a = area_->TakeNode();
    area_->Begin(7);
    area_->Count(a, 100, 1, 1);
  });
  Dead().settled.store(Dead().entered.load() - 1);
  EXPECT_TRUE(Area::CountedBy(Dead()).empty()) << "a raise that may be missing";

  Live([&] {
    const uint32_t a = area_->TakeNode();
    area_->Begin(8);
    area_->Count(a, 100, 1, 1);
    area_->Count(a, 100, -1, 0);
  });
  WorkSlot& second = area_->slot(2);
  second.settled.store(second.entered.load() - 1);
  EXPECT_TRUE(Area::CountedBy(second).empty()) << "an end that may be there";
}

TEST_F(AreaTest, RecordsThatWereNotCompletedAreFree) {
  Live([&] {
    const uint32_t whole = area_->TakeNode();
    area_->node(whole).id.store(5);
    area_->TakeNode();  // killed before it was complete
  });
  area_->Use();
  area_->FindFree();
  EXPECT_EQ(area_->TakeNode(), 1u);
  EXPECT_EQ(area_->TakeNode(), 2u);
  EXPECT_EQ(area_->node(0).id.load(), 5u);
}

TEST_F(AreaTest, BlocksOfTheDeadAreKeptUntilTheyAreForgotten) {
  void* first = nullptr;
  Live([&] { static_cast<void>(area_->TakeBlock()); });
  area_->Use();
  area_->FindFree();
  ASSERT_EQ(area_->left_blocks().size(), 1u);
  first = area_->left_blocks()[0];
  EXPECT_TRUE(area_->IsBlock(first));
  EXPECT_NE(area_->TakeBlock(), first);
  area_->ForgetLeftBlocks();
  EXPECT_EQ(area_->TakeBlock(), first);
}

}  // namespace
}  // namespace tracefs::survive
