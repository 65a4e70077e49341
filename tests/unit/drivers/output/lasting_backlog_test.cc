// What waits for a receiver when a daemon is killed.
#include "drivers/output/remote/lasting_backlog.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tracefs {
namespace {

constexpr uint32_t kOwner = 7;

class LastingBacklogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = survive::Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
  }

  static void Put(LastingBacklog& backlog, uint64_t sequence,
                  const std::string& text) {
    BlockInfo info;
    info.sequence = sequence;
    info.events = sequence * 10;
    ASSERT_TRUE(backlog.Append(AsBytes("head "), AsBytes(text), info).ok());
  }
  static std::vector<std::string> Frames(const LastingBacklog& backlog) {
    std::vector<std::string> all;
    for (size_t i = 0; i < backlog.size(); ++i) {
      const Backlog::Frame& frame = backlog.frame(i);
      all.emplace_back(AsText({frame.memory.get(), frame.bytes}));
      EXPECT_EQ(frame.info.events, frame.info.sequence * 10);
    }
    return all;
  }
  // How many places the area still has.
  size_t Room() {
    std::vector<void*> taken;
    while (void* const place = area_->TakeBlock()) taken.push_back(place);
    for (void* const place : taken) area_->GiveBlock(place);
    return taken.size();
  }

  std::unique_ptr<survive::Area> area_;
};

TEST_F(LastingBacklogTest, NothingIsThereToBeSentBeforeItCounts) {
  LastingBacklog backlog(*area_, kOwner);
  Put(backlog, 1, "one");
  EXPECT_TRUE(backlog.empty());
  EXPECT_NE(backlog.bytes(), 0U);
  backlog.Commit();
  EXPECT_EQ(Frames(backlog), std::vector<std::string>{"head one"});
}

TEST_F(LastingBacklogTest, ALaterDaemonHasWhatCountedAndWasNotDelivered) {
  {
    LastingBacklog backlog(*area_, kOwner);
    for (const char* const text : {"a", "b", "c", "d"}) {
      Put(backlog, static_cast<uint64_t>(text[0] - 'a'), text);
      // "d" was appended and did not come to count.
      if (text[0] != 'd') backlog.Commit();
    }
    EXPECT_EQ(backlog.DropBefore(1), 1U);
  }
  for (int life = 0; life < 3; ++life) {
    LastingBacklog later(*area_, kOwner);
    later.TakeLeft(/*next=*/3);
    EXPECT_EQ(Frames(later), (std::vector<std::string>{"head b", "head c"}));
    EXPECT_EQ(later.bytes(), 12U);
  }
  LastingBacklog last(*area_, kOwner);
  last.TakeLeft(3);
  Put(last, 3, "another d");
  last.Commit();
  EXPECT_EQ(Frames(last),
            (std::vector<std::string>{"head b", "head c", "head another d"}));
}

TEST_F(LastingBacklogTest, TracersDoNotTakeWhatIsOfOthers) {
  LastingBacklog one(*area_, kOwner);
  Put(one, 1, "one");
  one.Commit();
  LastingBacklog other(*area_, kOwner + 1);
  other.TakeLeft(9);
  EXPECT_TRUE(other.empty());
}

TEST_F(LastingBacklogTest, MemoryIsGivenBackWhenFramesWereDelivered) {
  const size_t room = Room();
  LastingBacklog backlog(*area_, kOwner);
  const std::string much(size_t{3} << 20, 'x');
  for (uint64_t i = 0; i < 40; ++i) {
    Put(backlog, i, much);
    backlog.Commit();
    if (i >= 8) {
      backlog.DropBefore(i - 8);
    }
    EXPECT_GE(Room() + 4, room);
  }
  backlog.DropBefore(40);
  EXPECT_GE(Room() + 1, room);
  EXPECT_EQ(backlog.bytes(), 0U);
}

}  // namespace
}  // namespace tracefs
