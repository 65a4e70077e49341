// What is decided by a trace that is still being written, and the folders in
// which undos work.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/undo_world.h"
#include "tracefs/base/clock.h"
#include "tracefs/replay/undo_rooms.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kChangedSince[] = "it is not as the trace has left it";

class UndoLiveTest : public UndoWorld {
 protected:
  void SetUp() override {
    Has(kRootSlot, "f", S_IFREG | 0600, "0123");
    Write(kRootSlot, "f", 1, "xy");
    // What files hold in the end is not told.
    contents_known_ = false;
    told_by_ns_ = RealNs() + kNsPerSecond;
    first_real_ns_ = RealNs();
  }
};

TEST_F(UndoLiveTest, AFileThatNobodyChangedSince) { EXPECT_EQ(WhyNot(), ""); }

TEST_F(UndoLiveTest, AFileChangedAfterTheTraceWasBroughtUpToDate) {
  told_by_ns_ = 1;
  EXPECT_EQ(WhyNot(), kChangedSince);
}

TEST_F(UndoLiveTest, AFileChangedAfterItsLastOperationInTheTrace) {
  first_real_ns_ = 1;
  EXPECT_EQ(WhyNot(), kChangedSince);
}

// Whoever only looks at a file, or fails to change it, does not stand for what
// others did to it before.
TEST_F(UndoLiveTest, AFileChangedBeforeSomebodyReadIt) {
  first_real_ns_ = 1;
  mine_ = false;
  alter_ = [](Action& a) { a.begin_ns = RealNs(); };
  Has(kRootSlot, "other", S_IFREG | 0600, "other");
  Read(kRootSlot, "f");
  Copy(kRootSlot, "f", 0, "other", 0, 2);
  EXPECT_EQ(WhyNot(), kChangedSince);
}

TEST_F(UndoLiveTest, AFileChangedBeforeSomebodyOpenedItToWrite) {
  first_real_ns_ = 1;
  mine_ = false;
  alter_ = [](Action& a) {
    if (a.op != Op::write_) a.begin_ns = RealNs();
  };
  Write(kRootSlot, "f", 1, "");
  EXPECT_EQ(WhyNot(), kChangedSince);
}

TEST_F(UndoLiveTest, AFileChangedBeforeWhatFailed) {
  first_real_ns_ = 1;
  mine_ = false;
  alter_ = [](Action& a) {
    a.begin_ns = RealNs();
    a.error = EPERM;
  };
  Chmod(kRootSlot, "f", 0600);
  EXPECT_EQ(WhyNot(), kChangedSince);
}

// The last of many writes may have filled the disk.
TEST_F(UndoLiveTest, AFileThatTheLastWriteFoundNoRoomFor) {
  first_real_ns_ = 1;
  mine_ = false;
  alter_ = [](Action& a) {
    a.begin_ns = RealNs();
    a.error = ENOSPC;
  };
  Chmod(kRootSlot, "f", 0600);
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(UndoLiveTest, AFileOfAnotherSize) {
  ASSERT_EQ(::truncate(Live("f").c_str(), 100), 0);
  EXPECT_EQ(WhyNot(), kChangedSince);
}

class UndoRoomsTest : public testing::Test {
 protected:
  int Open(const std::string& name) {
    return ::open(folder_.Path(name).c_str(), O_RDONLY | O_DIRECTORY);
  }
  std::string Make(const std::string& name) {
    EXPECT_EQ(::mkdir(folder_.Path(name).c_str(), 0700), 0);
    return name;
  }

  TempFolder folder_;
  UniqueFd root_{Open(".")};
};

TEST_F(UndoRoomsTest, WhereNobodyWorksIsLeft) {
  Make("other");
  EXPECT_THAT(*LeftUndoRooms(root_.get()), IsEmpty());
  const std::string room = Make(std::string(kUndoRoom) + "1");
  EXPECT_THAT(*LeftUndoRooms(root_.get()), ElementsAre(room));
}

TEST_F(UndoRoomsTest, OneWorksAtATime) {
  const std::string room = Make(std::string(kUndoRoom) + "1");
  const UniqueFd fd(Open(room));
  UniqueFd held = OccupyUndoRoom(fd.get());
  ASSERT_TRUE(held);
  const auto refused = LeftUndoRooms(root_.get());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().error(), EBUSY);
  EXPECT_NE(refused.status().message().find(room), std::string::npos);
  // As when its process dies.
  held.Reset();
  EXPECT_THAT(*LeftUndoRooms(root_.get()), ElementsAre(room));
}

// A link or a file of that name is nobody's folder.
TEST_F(UndoRoomsTest, WhatIsNoFolderIsPassedOver) {
  const std::string name = folder_.Path(std::string(kUndoRoom) + "link");
  ASSERT_EQ(::symlink("/", name.c_str()), 0);
  EXPECT_THAT(*LeftUndoRooms(root_.get()), IsEmpty());
}

}  // namespace
}  // namespace tracefs::replay
