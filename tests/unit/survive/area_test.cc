// What one daemon leaves to the next, whatever moment its end came at.
#include "tracefs/survive/area.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <set>
#include <thread>
#include <vector>

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

  // The next daemon knows of its request.
  void Succeed() {
    area_->Remember(Dead().now);
    Dead().used.store(0);
  }

  // What would be the slot after the last one.
  void FillBehindSlots() {
    std::memset(static_cast<void*>(&area_->slot(Area::kSlots - 1) + 1), 0xff,
                1024);
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
  Succeed();
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
  Succeed();
  Live([&] {
    area_->Begin(7 | kSentAgain);
    if (!MayBeMade() || NotedBefore() != 99) ::_exit(1);
    const Made made = CallOnce(3);
    if (made.calls != 1 || !made.again || made.result != 3) ::_exit(2);
  });
}

// What was there before a call and what is there now tell whether the call was
// made, where its result is lost.
TEST_F(AreaTest, ACallWasMadeIfWhatItChangesHasChanged) {
  constexpr struct {
    Change change;
    uint64_t before, now;
    bool made;
  } kCases[] = {{Change::kMakes, 0, 0, false},
                {Change::kMakes, 0, 5, true},
                // It was refused: the name was there.
                {Change::kMakes, 5, 5, false},
                // Somebody else has removed that.
                {Change::kMakes, 5, 0, false},
                {Change::kMakes, 5, 6, true},
                {Change::kTakes, 5, 5, false},
                {Change::kTakes, 5, 0, true},
                // There was nothing to take; somebody else has made it.
                {Change::kTakes, 0, 0, false},
                {Change::kTakes, 0, 5, false},
                // Another one has the name by now, and stays.
                {Change::kTakes, 5, 6, true}};
  uint32_t doubts = 0;
  for (const auto& one : kCases) {
    Live([&] {
      area_->Begin(7);
      Once([&](bool again) -> int64_t {
        if (WasMade(again, one.change, [&] { return one.before; })) ::_exit(1);
        ::kill(::getpid(), SIGKILL);
        return 0;
      });
    });
    EXPECT_EQ(area_->header().doubts.load(), doubts);
    Succeed();
    Live([&] {
      area_->Begin(7 | kSentAgain);
      bool made = false;
      Once([&](bool again) -> int64_t {
        made = WasMade(again, one.change, [&] { return one.now; });
        return 0;
      });
      if (made != one.made) ::_exit(2);
    });
    EXPECT_EQ(area_->header().doubts.load(), ++doubts)
        << one.before << ' ' << one.now;
    Dead().used.store(0);
  }
}

TEST_F(AreaTest, ACallThatNothingWasNotedOfWasNotMade) {
  Live([&] {
    area_->Begin(7);
    Once([&](bool) -> int64_t { return 0; });
    // The second step, which knows nothing of the first.
    Once([&](bool again) -> int64_t {
      if (again || NotedBefore() != 0) ::_exit(1);
      ::kill(::getpid(), SIGKILL);
      return 0;
    });
  });
  Succeed();
  Live([&] {
    area_->Begin(7 | kSentAgain);
    if (CallOnce(1).calls != 0) ::_exit(2);
    Once([&](bool again) -> int64_t {
      if (!again ||
          WasMade(again, Change::kMakes, [] { return uint64_t{5}; })) {
        ::_exit(3);
      }
      return 0;
    });
  });
  EXPECT_EQ(area_->header().doubts.load(), 0u);
}

TEST_F(AreaTest, AnotherRequestKnowsNothingOfThat) {
  Live([&] {
    area_->Begin(7);
    CallOnce(1);
  });
  Succeed();
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

TEST_F(AreaTest, BeginsWithNothing) {
  const Header& header = area_->header();
  EXPECT_EQ(header.next_node, 2u);
  EXPECT_EQ(header.next_handle, 1u);
  EXPECT_EQ(header.next_tracer, 1u);
  EXPECT_EQ(header.keeper, -1);
  EXPECT_EQ(header.daemon, -1);
  for (const auto& fd : header.helpers) EXPECT_EQ(fd, -1);
  for (const auto& fd : header.trace_helpers) EXPECT_EQ(fd, -1);
  for (const OrderRecord& order : header.orders) {
    for (const auto& fd : order.files) EXPECT_EQ(fd, -1);
  }
  EXPECT_EQ(area_->slot(0).used, 1u);
  for (size_t i = 1; i < Area::kSlots; ++i) EXPECT_EQ(area_->slot(i).used, 0u);
}

TEST_F(AreaTest, AnotherProgramOpensItByItsDescriptor) {
  const auto open = [&](bool aside) {
    auto opened = Area::Open(UniqueFd(::dup(area_->file())), aside);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  };
  area_->node(7).id.store(70);
  const auto shared = open(false);
  const auto aside = open(true);
  EXPECT_EQ(shared->node(7).id, 70u);
  EXPECT_EQ(aside->node(7).id, 70u);
  aside->node(7).id.store(71);
  EXPECT_EQ(area_->node(7).id, 70u);
  shared->node(7).id.store(72);
  EXPECT_EQ(area_->node(7).id, 72u);
}

TEST_F(AreaTest, Malicious_WhatIsNoAreaIsRefused) {
  struct stat st;
  ASSERT_EQ(::fstat(area_->file(), &st), 0);
  const auto error = [&](off_t bytes, int seals, uint64_t magic) {
    UniqueFd file(
        static_cast<int>(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    EXPECT_EQ(::ftruncate(file.get(), bytes), 0);
    EXPECT_EQ(::pwrite(file.get(), &magic, sizeof magic, 0), 8);
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    const auto opened = Area::Open(std::move(file), false);
    return opened.ok() ? 0 : opened.status().error();
  };
  constexpr uint64_t kMagic = Header::kMagic;
  EXPECT_EQ(error(st.st_size, F_SEAL_SHRINK, kMagic), 0);
  EXPECT_EQ(error(st.st_size, F_SEAL_GROW, kMagic), EUCLEAN) << "may shrink";
  EXPECT_EQ(error(st.st_size, F_SEAL_SHRINK, kMagic + 1), EUCLEAN);
  EXPECT_EQ(error(st.st_size, F_SEAL_SHRINK, 0), EUCLEAN);
  EXPECT_EQ(error(st.st_size - 4096, F_SEAL_SHRINK, kMagic), EUCLEAN);
  EXPECT_EQ(error(st.st_size + 1, F_SEAL_SHRINK, kMagic), EUCLEAN);
  EXPECT_FALSE(Area::Open(UniqueFd(), false).ok());
  EXPECT_NE(::ftruncate(area_->file(), st.st_size - 1), 0);
  EXPECT_NE(::ftruncate(area_->file(), st.st_size + 1), 0);
}

// All that is known of a request.
Outcome& Fill(Outcome& outcome, uint64_t unique) {
  outcome.unique.store(unique);
  outcome.called.store(3);
  outcome.done.store(2);
  outcome.result.store(-9);
  outcome.before.store(77);
  outcome.crashes.store(4);
  outcome.recorded.store(Outcome::kForetold);
  return outcome;
}
void ExpectFilled(const Outcome& outcome, uint64_t unique) {
  EXPECT_EQ(outcome.unique, unique);
  EXPECT_EQ(outcome.called, 3u);
  EXPECT_EQ(outcome.done, 2u);
  EXPECT_EQ(outcome.result, -9);
  EXPECT_EQ(outcome.before, 77u);
  EXPECT_EQ(outcome.crashes, 4u);
  EXPECT_EQ(outcome.recorded, Outcome::kForetold);
}
void ExpectNothingKnown(const Outcome& outcome, uint64_t unique) {
  EXPECT_EQ(outcome.unique, unique);
  EXPECT_EQ(outcome.called, 0u);
  EXPECT_EQ(outcome.done, 0u);
  EXPECT_EQ(outcome.result, 0);
  EXPECT_EQ(outcome.before, 0u);
  EXPECT_EQ(outcome.crashes, 0u);
  EXPECT_EQ(outcome.recorded, 0u);
}

// With this process as the daemon.
class UsedAreaTest : public AreaTest {
 protected:
  // In a thread that has a slot, the first one, and leaves nothing of it to
  // other tests.
  void Serve(const std::function<void()>& life) {
    area_->Use();
    std::thread([&] {
      area_->BeFirst();
      life();
    }).join();
  }
  Outcome& now() { return Area::OfThread()->now; }
};

TEST_F(UsedAreaTest, ARequestThatIsSentAgainHasAllThatIsKnownOfIt) {
  Serve([&] {
    Outcome known{};
    area_->Remember(Fill(known, 7));
    area_->Begin(7);
    ExpectNothingKnown(now(), 7);
    EXPECT_NE(area_->Pending(7), nullptr) << "it was not sent again";
    area_->Begin(7 | kSentAgain);
    ExpectFilled(now(), 7 | kSentAgain);
    EXPECT_EQ(area_->Pending(7), nullptr);
    EXPECT_TRUE(MayBeMade());
    EXPECT_EQ(NotedBefore(), 77u);
    EXPECT_TRUE(HasRecorded(Outcome::kForetold));
    EXPECT_FALSE(HasRecorded(Outcome::kRecorded));
    area_->Begin(8 | kSentAgain);
    ExpectNothingKnown(now(), 8 | kSentAgain);
  });
}

TEST_F(UsedAreaTest, StepsAreCountedFromTheRequestsBegin) {
  Serve([&] {
    for (const uint64_t unique : {7, 8}) {
      area_->Begin(unique);
      for (const int64_t result : {1, 2, 3}) {
        const Made made = CallOnce(result);
        EXPECT_EQ(made.calls, 1);
        EXPECT_FALSE(made.again);
        EXPECT_EQ(now().done, static_cast<uint32_t>(result));
        EXPECT_EQ(now().called, static_cast<uint32_t>(result));
      }
    }
    Outcome known{};
    area_->Remember(Fill(known, 9));  // two steps, and perhaps a third
    area_->Begin(9 | kSentAgain);
    EXPECT_EQ(CallOnce(5).result, 0) << "a step before the last";
    EXPECT_EQ(CallOnce(5).result, -9);
    const Made third = CallOnce(5);
    EXPECT_TRUE(third.again);
    EXPECT_EQ(third.result, 5);
    EXPECT_FALSE(CallOnce(6).again);
  });
}

TEST_F(UsedAreaTest, OnlyARequestOfWhichSomethingIsKnownIsParked) {
  Serve([&] {
    struct {
      uint32_t called, crashes, recorded;
    } const worlds[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}};
    uint64_t unique = 10;
    for (const auto& world : worlds) {
      for (const uint64_t again : {uint64_t{0}, kSentAgain}) {
        ++unique;
        area_->Begin(unique | again);
        now().called.store(world.called);
        now().crashes.store(world.crashes);
        now().recorded.store(world.recorded);
        const bool any = world.called + world.crashes + world.recorded != 0;
        area_->Offer();
        EXPECT_EQ(area_->Pending(unique) != nullptr, any && again != 0);
        area_->Park();
        EXPECT_EQ(area_->Pending(unique) != nullptr, any);
      }
    }
    area_->Leave();
    EXPECT_EQ(now().unique, 0u);
    now().called.store(1);
    area_->Park();  // there is no request
    EXPECT_EQ(area_->Pending(unique + 1), nullptr);
  });
}

TEST_F(UsedAreaTest, ALaterOutcomeTakesTheEarlierOnesPlace) {
  Serve([&] {
    Outcome outcome{};
    outcome.unique.store(7);
    outcome.done.store(1);
    for (const int64_t result : {1, 2}) {
      outcome.result.store(result);
      area_->Remember(outcome);
      EXPECT_EQ(area_->Pending(7 | kSentAgain)->result, result);
    }
    // As many as there is room for, and one more.
    for (uint64_t i = 8; i < 7 + 512; ++i) {
      outcome.unique.store(i);
      area_->Remember(outcome);
    }
    EXPECT_NE(area_->Pending(7 + 511), nullptr);
    outcome.unique.store(9999);
    area_->Remember(outcome);
    EXPECT_EQ(area_->Pending(9999), nullptr);
    EXPECT_NE(area_->Pending(7), nullptr);
  });
}

TEST_F(UsedAreaTest, ADetourComesBackToWhereItBegan) {
  Serve([&] {
    const uint32_t node = area_->TakeNode();
    Outcome parked{};
    area_->Remember(Fill(parked, 9));
    area_->Begin(5);
    CallOnce(1);
    CallOnce(-3);
    now().before.store(55);
    area_->Count(node, 100, 1, 1);
    {
      const Area::Detour detour(area_.get(), 9);
      ExpectFilled(now(), 9);
      EXPECT_EQ(area_->Pending(9), nullptr);
      ASSERT_NE(area_->Pending(5), nullptr) << "it would be lost with us";
      EXPECT_EQ(area_->Pending(5)->result, -3);
      EXPECT_TRUE(Area::CountedBy(*Area::OfThread()).empty());
      EXPECT_EQ(CallOnce(8).calls, 0) << "its steps begin again";
    }
    EXPECT_EQ(now().unique, 5u);
    EXPECT_EQ(now().done, 2u);
    EXPECT_EQ(now().called, 2u);
    EXPECT_EQ(now().result, -3);
    EXPECT_EQ(now().before, 55u);
    EXPECT_EQ(now().crashes, 0u);
    EXPECT_EQ(area_->Pending(5), nullptr);
    EXPECT_EQ(Area::OfThread()->step, 2u);
    EXPECT_EQ(Area::CountedBy(*Area::OfThread()).size(), 1u);
    {
      const Area::Detour none(area_.get(), 0);
      const Area::Detour neither(nullptr, 9);
      EXPECT_EQ(now().unique, 5u);
    }
    {
      const Area::Detour unknown(area_.get(), 6);
      ExpectNothingKnown(now(), 6);
    }
    EXPECT_EQ(now().unique, 5u);
  });
}

TEST_F(UsedAreaTest, ADetourFromNoRequestComesBackToNone) {
  Serve([&] {
    area_->Leave();
    Outcome other{};
    area_->Remember(Fill(other, 3));
    { const Area::Detour detour(area_.get(), 6); }
    EXPECT_EQ(now().unique, 0u);
    EXPECT_NE(area_->Pending(3), nullptr);
  });
}

TEST_F(UsedAreaTest, CountsAreKnownWhereverTheRingEnds) {
  Serve([&] {
    constexpr uint32_t kMost = WorkSlot::kMostCounts;
    const uint32_t node = area_->TakeNode();
    area_->Begin(6);
    for (uint32_t i = 0; i < kMost - 2; ++i) area_->Count(node, 1, 1, i);
    area_->Begin(7);
    for (uint64_t id = 11; id < 16; ++id) {
      area_->Count(node, id, static_cast<int64_t>(id), id);
    }
    area_->Count(node, 12, -5, 9);
    const auto counted = Area::CountedBy(area_->slot(0));
    ASSERT_EQ(counted.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(counted[i].node, 11 + i);
      EXPECT_EQ(counted[i].delta, i == 1 ? 7 : static_cast<int64_t>(11 + i));
    }
    EXPECT_EQ(area_->node(node).count, 9u);
  });
}

TEST_F(UsedAreaTest, MoreCountsThanAreRememberedAreUnknown) {
  Serve([&] {
    const uint32_t node = area_->TakeNode();
    area_->Begin(7);
    for (uint32_t i = 0; i < WorkSlot::kMostCounts; ++i) {
      area_->Count(node, 5, 1, i);
    }
    const auto counted = Area::CountedBy(area_->slot(0));
    ASSERT_EQ(counted.size(), 1u);
    EXPECT_EQ(counted[0].delta, int64_t{WorkSlot::kMostCounts});
    area_->Count(node, 5, 1, 0);
    EXPECT_TRUE(Area::CountedBy(area_->slot(0)).empty());
  });
}

TEST_F(UsedAreaTest, EventsAreCountedByTraceInAllSlots) {
  Serve([&] {
    // What lies behind the slots counts for nothing.
    FillBehindSlots();
    TraceRecord& trace = area_->header().traces[3];
    Area::CountEvent(trace);
    std::thread([&] {
      Area::CountEvent(trace);
      Area::CountEvent(trace);
      Area::CountEvent(area_->header().traces[4]);
    }).join();
    area_->slot(Area::kSlots - 1).events[3].store(10);
    EXPECT_EQ(area_->CountedEvents(trace), 13u);
    EXPECT_EQ(area_->CountedEvents(area_->header().traces[4]), 1u);
    area_->ForgetEvents(trace);
    EXPECT_EQ(area_->CountedEvents(trace), 0u);
    EXPECT_EQ(area_->CountedEvents(area_->header().traces[4]), 1u);
  });
}

TEST_F(AreaTest, WithoutADaemonNothingIsCounted) {
  TraceRecord& trace = area_->header().traces[3];
  Area::CountEvent(trace);
  EXPECT_EQ(area_->CountedEvents(trace), 0u);
  EXPECT_EQ(Area::OfThread(), nullptr);
}

TEST_F(AreaTest, TheHelperOfATraceIsKnownByItsState) {
  Header& header = area_->header();
  for (const size_t i : {0, 5, 63}) {
    EXPECT_EQ(area_->HelperOf(header.traces[i].output),
              &header.trace_helpers[i]);
    EXPECT_EQ(area_->NumberOf(header.traces[i]), i);
  }
  EXPECT_EQ(area_->HelperOf(header.traces[5].states[0].output), nullptr);
}

TEST_F(UsedAreaTest, AThreadHasASlotUntilItEnds) {
  Serve([&] {
    EXPECT_EQ(Area::OfThread(), &area_->slot(0));
    for (int i = 0; i < 2; ++i) {
      std::thread([&] {
        EXPECT_EQ(Area::HadByThread(), nullptr);
        WorkSlot* const slot = Area::OfThread();
        EXPECT_EQ(slot, &area_->slot(1));
        EXPECT_EQ(Area::HadByThread(), slot);
        EXPECT_EQ(Area::OfThread(), slot);
        EXPECT_EQ(area_->NumberOf(*slot), 1u);
        EXPECT_EQ(slot->used, 1u);
        EXPECT_EQ(slot->now.unique, 0u);
        area_->Begin(7);
        slot->forgets.store(3);
      }).join();
      EXPECT_EQ(area_->slot(1).used, 0u);
      EXPECT_EQ(area_->slot(1).now.unique, 0u);
      EXPECT_EQ(area_->slot(1).forgets, 0u);
      area_->slot(1).now.unique.store(99);  // of somebody else
    }
  });
}

TEST_F(UsedAreaTest, AThreadMayEndAfterTheArea) {
  Serve([&] {
    std::latch has_it(1), gone(1);
    std::thread thread([&] {
      Area::OfThread();
      has_it.count_down();
      gone.wait();
    });
    has_it.wait();
    area_.reset();
    EXPECT_EQ(Area::OfProcess(), nullptr);
    gone.count_down();
    thread.join();
  });
}

TEST_F(AreaTest, ThereAreAsManySlotsAsThreadsMayBe) {
  for (const size_t threads : {Area::kSlots - 1, Area::kSlots}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      area_->Use();
      std::latch all(static_cast<ptrdiff_t>(threads));
      std::vector<std::thread> started;
      for (size_t i = 0; i < threads; ++i) {
        started.emplace_back([&] {
          Area::OfThread();
          all.arrive_and_wait();
        });
      }
      for (std::thread& thread : started) thread.join();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (threads < Area::kSlots) {
      EXPECT_EQ(status, 0);
    } else {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
  }
}

TEST_F(AreaTest, SlotsOfTheDeadAreKeptUntilTheyAreForgotten) {
  FillBehindSlots();
  Live([&] {
    area_->Begin(7);
    Area::OfThread()->forgets.store(2);
  });
  area_->Use();
  area_->FindFree();
  const std::vector<WorkSlot*> left = {&area_->slot(0), &area_->slot(1)};
  EXPECT_EQ(area_->left_slots(), left);
  EXPECT_EQ(Dead().now.unique, 7u);
  area_->slot(0).now.unique.store(5);
  area_->slot(0).forgets.store(5);
  area_->ForgetLeftSlots();
  EXPECT_TRUE(area_->left_slots().empty());
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(area_->slot(i).now.unique, 0u);
    EXPECT_EQ(area_->slot(i).forgets, 0u);
  }
  EXPECT_EQ(area_->slot(0).used, 1u);
  EXPECT_EQ(area_->slot(1).used, 0u);
}

TEST_F(AreaTest, RecordsAreTakenUntilThereAreNone) {
  Header& header = area_->header();
  for (const uint32_t i : {0, 1, 2}) EXPECT_EQ(area_->TakeOpen(), i);
  area_->GiveOpen(1);
  EXPECT_EQ(area_->TakeOpen(), 1u);
  EXPECT_EQ(area_->TakeOpen(), 3u);
  EXPECT_EQ(header.opens_used, 4u);
  header.opens_used.store(Area::kMostOpens - 1);
  EXPECT_EQ(area_->TakeOpen(), Area::kMostOpens - 1);
  EXPECT_EQ(area_->TakeOpen(), Area::kNone);
  header.locks_used.store(Area::kMostLocks - 1);
  EXPECT_EQ(area_->TakeLock(), Area::kMostLocks - 1);
  EXPECT_EQ(area_->TakeLock(), Area::kNone);
  area_->GiveLock(9);
  EXPECT_EQ(area_->TakeLock(), 9u);
  header.nodes_used.store(Area::kMostNodes - 1);
  EXPECT_EQ(area_->TakeNode(), Area::kMostNodes - 1);
  EXPECT_EQ(area_->TakeNode(), Area::kNone);
  area_->GiveNode(9);
  EXPECT_EQ(area_->TakeNode(), 9u);
}

TEST_F(AreaTest, OpensAndLocksOfTheDeadAreKept) {
  Header& header = area_->header();
  area_->open(1).node.store(5);
  area_->lock(0).file.store(5);
  header.opens_used.store(3);
  header.locks_used.store(2);
  area_->FindFree();
  EXPECT_EQ(area_->TakeOpen(), 0u);
  EXPECT_EQ(area_->TakeOpen(), 2u);
  EXPECT_EQ(area_->TakeOpen(), 3u);
  EXPECT_EQ(area_->TakeLock(), 1u);
  EXPECT_EQ(area_->TakeLock(), 2u);
}

TEST_F(AreaTest, Malicious_ACountOfRecordsIsNotBelieved) {
  Header& header = area_->header();
  header.opens_used.store(~0u);
  header.locks_used.store(~0u);
  area_->FindFree();
  for (uint32_t i = 0; i < Area::kMostOpens; ++i) {
    ASSERT_EQ(area_->TakeOpen(), i);
  }
  EXPECT_GE(area_->TakeOpen(), Area::kMostOpens);
  for (uint32_t i = 0; i < Area::kMostLocks; ++i) {
    ASSERT_EQ(area_->TakeLock(), i);
  }
  EXPECT_NE(area_->TakeLock(), Area::kMostLocks);
}

TEST_F(AreaTest, BlocksAreTakenAndHeldUntilThereAreNone) {
  Header& header = area_->header();
  std::vector<std::byte*> blocks;
  // What follows the marks of blocks is none.
  header.traces[0].turns.store(0);
  while (void* const block = area_->TakeBlock()) {
    blocks.push_back(static_cast<std::byte*>(block));
    ASSERT_LE(blocks.size(), Header::kBlocks);
  }
  ASSERT_EQ(blocks.size(), Header::kBlocks);
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(blocks[i], blocks[0] + i * Area::kBlockBytes);
  }
  EXPECT_TRUE(area_->IsBlock(blocks[0]));
  EXPECT_FALSE(area_->IsBlock(blocks[0] - 1));
  EXPECT_TRUE(area_->IsBlock(blocks.back() + Area::kBlockBytes - 1));
  EXPECT_FALSE(area_->IsBlock(blocks.back() + Area::kBlockBytes));
  for (const size_t i : {size_t{0}, size_t{1000}, Header::kBlocks - 1}) {
    area_->GiveBlock(blocks[i]);
    EXPECT_EQ(area_->TakeBlock(), blocks[i]);
    EXPECT_EQ(area_->Held(i), nullptr) << "it is a block";
    EXPECT_EQ(area_->Hold(blocks[i]), i);
    EXPECT_EQ(area_->Held(i), blocks[i]);
  }
  header.traces[0].turns.store(2);
  EXPECT_EQ(area_->Held(Header::kBlocks), nullptr);
  std::vector<void*> held;
  area_->ForEachHeld([&](void* place) { held.push_back(place); });
  EXPECT_EQ(held, (std::vector<void*>{blocks[0], blocks[1000], blocks.back()}));
  header.traces[0].turns.store(1);
  area_->FindFree();
  EXPECT_EQ(area_->left_blocks().size(), Header::kBlocks - 3);
  blocks[1000][5] = std::byte{7};
  area_->Release(blocks[1000]);
  EXPECT_EQ(area_->Held(1000), nullptr);
  EXPECT_EQ(area_->TakeBlock(), blocks[1000]);
  EXPECT_EQ(blocks[1000][5], std::byte{0});
}

TEST_F(AreaTest, BuffersDoNotOverlap) {
  for (size_t i = 0; i <= Area::kReaders; ++i) {
    EXPECT_EQ(area_->buffer(i), area_->buffer(0) + i * Area::kBufferBytes);
    std::memset(area_->buffer(i), 0xff, Area::kBufferBytes);
  }
  EXPECT_EQ(area_->slot(Area::kSlots - 1).used, 0u);
  EXPECT_EQ(area_->open(0).node, 0u);
  area_->open(Area::kMostOpens - 1).node.store(~uint64_t{0});
  area_->lock(Area::kMostLocks - 1).file.store(~uint64_t{0});
  area_->node(Area::kMostNodes - 1).id.store(~uint64_t{0});
  EXPECT_EQ(area_->lock(0).file, 0u);
  EXPECT_EQ(area_->node(0).id, 0u);
}

}  // namespace
}  // namespace tracefs::survive
