// Steps that give contents back, against plain strings; groups one after the
// other.
#include "tracefs/replay/undo_step.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/undo_world.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

UniqueFd Unnamed(const TempFolder& folder) {
  return UniqueFd(::open(folder.Path("").c_str(), O_TMPFILE | O_RDWR, 0600));
}

std::string Contents(int fd) {
  struct stat st;
  EXPECT_EQ(::fstat(fd, &st), 0);
  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), st.st_size);
  return bytes;
}

// Whatever was kept comes back, and what keeps what it destroys gives that
// back.
TEST(UndoContentsTest, EachStepIsTakenBackByWhatWasKeptBeforeIt) {
  const TempFolder folder;
  std::mt19937 random(2);
  const auto roll = [&](uint64_t n) { return random() % n; };
  constexpr uint64_t kPage = 4096;
  for (int round = 0; round < 150; ++round) {
    const UniqueFd file = Unnamed(folder);
    const UniqueFd store = Unnamed(folder);
    // Pages of data and holes, not to a page's end.
    std::string was(roll(6 * kPage), '\0');
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(was.size())), 0);
    for (uint64_t at = 0; at < was.size(); at += kPage) {
      if (roll(2) == 0) continue;
      const std::string page(std::min<uint64_t>(kPage, was.size() - at), 'd');
      was.replace(at, page.size(), page);
      ASSERT_EQ(::pwrite(file.get(), page.data(), page.size(),
                         static_cast<off_t>(at)),
                static_cast<ssize_t>(page.size()));
    }
    UndoStep keep;
    keep.kind = UndoStep::Kind::kContents;
    keep.size = was.size();
    keep.offset = roll(was.size() + 1);
    keep.length = roll(was.size() - keep.offset + 1);
    uint64_t stored = 0;
    ASSERT_TRUE(KeepPieces(file.get(), keep.offset, keep.offset + keep.length,
                           store.get(), UINT64_MAX, &stored, &keep)
                    .ok());
    // What comes over it: other bytes there, and another size.
    std::string now = was;
    const std::string over(keep.length, 'x');
    now.replace(keep.offset, over.size(), over);
    if (keep.offset + keep.length == was.size()) now.resize(roll(8 * kPage));
    ASSERT_EQ(::pwrite(file.get(), now.data(), now.size(), 0),
              static_cast<ssize_t>(now.size()));
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(now.size())), 0);

    const uint64_t hole = roll(8) * kPage;
    ASSERT_EQ(
        ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(hole), 2 * kPage),
        0);
    for (uint64_t at = hole; at < std::min(now.size(), hole + 2 * kPage);
         ++at) {
      now[at] = '\0';
      // What is not given back stays as it is by now.
      if (at < keep.offset || at >= keep.offset + keep.length) {
        if (at < was.size()) was[at] = '\0';
      }
    }
    UndoStep back;
    ASSERT_TRUE(KeepContents(file.get(), keep, store.get(), &back));
    ASSERT_TRUE(PutContents(store.get(), keep, file.get()));
    std::string expected = was;
    // What was cut off in front of what is given back is zeros.
    if (now.size() < keep.offset) {
      expected.replace(now.size(), keep.offset - now.size(),
                       keep.offset - now.size(), '\0');
    }
    ASSERT_EQ(Contents(file.get()), expected) << round;
    ASSERT_TRUE(PutContents(store.get(), back, file.get()));
    ASSERT_EQ(Contents(file.get()), now) << round;
  }
}

// What a file system does not take is left out; what it refuses for another
// reason leaves nothing behind.
TEST(MakeWholeTest, AttributesThatCannotBe) {
  const TempFolder folder;
  const UniqueFd dir(::open(folder.Path("").c_str(), O_PATH | O_DIRECTORY));
  const UniqueFd store = Unnamed(folder);
  UndoStep step;
  step.kind = UndoStep::Kind::kMakeFile;
  step.mode = 0640;
  step.xattrs = {{"nonsense.a", "1"}};
  EXPECT_TRUE(MakeWhole(store.get(), dir.get(), "f", false, step));
  EXPECT_EQ(Listing(folder.Path("")).size(), 1u);
  step.xattrs = {{"user.long", std::string(70'000, 'x')}};
  for (const auto kind :
       {UndoStep::Kind::kMakeFile, UndoStep::Kind::kMakeDir}) {
    step.kind = kind;
    EXPECT_FALSE(MakeWhole(store.get(), dir.get(), "g", false, step));
    EXPECT_EQ(Listing(folder.Path("")).size(), 1u);
  }
}

class UndoGroupsTest : public UndoWorld {};

TEST_F(UndoGroupsTest, Race_ANameThatIsTakenMeanwhileIsLeft) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  Unlink(kRootSlot, "f");
  RemoveDir(kRootSlot, "d", 1);
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_EQ(::mkdir(Live("f").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(Live("d").c_str(), 0711), 0);
  const auto before = Listing(live_);
  EXPECT_THAT(Apply(), ElementsAre("make directory d: File exists",
                                   "make file f, 1 bytes: File exists"));
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, AnAttributeThatCannotBeReadIsNotChanged) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  SetXattr(kRootSlot, "f", "user.a", "1");
  EXPECT_THAT(Decide(), IsEmpty());
  groups_[0].steps[0].other = "nonsense.a";
  EXPECT_THAT(Apply(), ElementsAre("remove attribute nonsense.a of f: "
                                   "Operation not supported"));
}

TEST_F(UndoGroupsTest, WhatThePlanMadeUpIsFollowed) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  made_up_ = true;
  MakeDir(kRootSlot, "d", 1);
  made_up_ = false;
  const auto before = Listing(live_);
  Rename(kRootSlot, "f", 1, "g");
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(Apply(), IsEmpty());
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, AFolderThatNobodyHasToldOfIsNamed) {
  told_ = false;
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  told_ = true;
  Create(1, "f", "");
  EXPECT_EQ(WhyNot(), "its directory is not known");
}

TEST_F(UndoGroupsTest, OneThatFailsTakesNoOtherBack) {
  Has(kRootSlot, "a", S_IFREG | 0600, "A");
  Has(kRootSlot, "b", S_IFREG | 0600, "B");
  Rename(kRootSlot, "b", kRootSlot, "b2");
  Rename(kRootSlot, "a", kRootSlot, "a2");
  EXPECT_THAT(Decide(), IsEmpty());
  // Between the two that are done somebody changes what the second is about.
  ASSERT_EQ(::chmod(Live("b2").c_str(), 0666), 0);
  EXPECT_THAT(Apply(), ElementsAre("rename b2 to b: others are changing it at "
                                   "this moment"));
  EXPECT_EQ(TempFolder::Read(Live("a")), "A") << "the first stays done";
  EXPECT_EQ(TempFolder::Read(Live("b2")), "B");
}

TEST_F(UndoGroupsTest, WhatWasPutBackCanBeTakenBackLater) {
  Has(kRootSlot, "f", S_IFREG | 0600, "0123");
  Write(kRootSlot, "f", 0, "abcd");
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_THAT(groups_, SizeIs(1));
  UndoGroup fails = groups_[0];
  UndoStep impossible;
  impossible.kind = UndoStep::Kind::kRemove;
  impossible.path = impossible.name = "nothing";
  impossible.dir = kRootFile;
  impossible.file = 4711;
  fails.steps.push_back(impossible);
  groups_.insert(groups_.begin(), fails);
  EXPECT_THAT(Apply(), SizeIs(1));
  EXPECT_EQ(TempFolder::Read(Live("f")), "0123");
}

TEST_F(UndoGroupsTest, AModeIsPutBackWithoutRightsOverOwners) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  Chmod(kRootSlot, "f", 0640);
  EXPECT_THAT(Decide(), IsEmpty());
  UndoStep impossible;
  impossible.kind = UndoStep::Kind::kRemove;
  impossible.path = impossible.name = "nothing";
  impossible.dir = kRootFile;
  groups_[0].steps.push_back(impossible);
  EXPECT_THAT(Apply(),
              ElementsAre("remove nothing: others are changing it at this "
                          "moment"))
      << "and not that it could not be put back";
  EXPECT_EQ(Listing(live_), Listing(scratch_));
}

TEST_F(UndoGroupsTest, PathsAreThoseOfTheEnd) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  const auto before = Listing(live_);
  Rename(kRootSlot, "f", 1, "f");
  mine_ = false;
  Rename(kRootSlot, "d", kRootSlot, "e");
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(Apply(), IsEmpty());
  ASSERT_EQ(::rename(Live("e").c_str(), Live("d").c_str()), 0);
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, PathsOfAnExchangeAreThoseOfTheEnd) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  Has(1, "g", S_IFREG | 0600, "G");
  const auto before = Listing(live_);
  Rename(kRootSlot, "f", 1, "g", RENAME_EXCHANGE);
  mine_ = false;
  Rename(kRootSlot, "d", kRootSlot, "e");
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(Apply(), IsEmpty());
  ASSERT_EQ(::rename(Live("e").c_str(), Live("d").c_str()), 0);
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, Race_AnotherFolderInTheSamePlaceIsLeft) {
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  Create(1, "f", "");
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_EQ(::rename(Live("d").c_str(), Live("away").c_str()), 0);
  ASSERT_EQ(::mkdir(Live("d").c_str(), 0700), 0);
  ASSERT_EQ(::rename(Live("away/f").c_str(), Live("d/f").c_str()), 0);
  const auto before = Listing(live_);
  EXPECT_THAT(Apply(), SizeIs(1));
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, OneOperationMayTakeSeveralSteps) {
  if (::geteuid() != 0) GTEST_SKIP() << "set-id bits take root";
  Has(kRootSlot, "s", S_IFREG | 04755, "0123");
  Write(kRootSlot, "s", 0, "x");
  Grant(Privilege::kSetId);
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_THAT(groups_, SizeIs(1));
  ASSERT_THAT(groups_[0].steps, SizeIs(2));
  EXPECT_EQ(groups_[0].steps[0].kind, UndoStep::Kind::kContents);
  EXPECT_EQ(groups_[0].steps[1].kind, UndoStep::Kind::kMode)
      << "a write may have cleared the bits";
  EXPECT_EQ(groups_[0].steps[1].mode, 04755u);
}

TEST_F(UndoGroupsTest, ASizeAloneIsOneStep) {
  Has(kRootSlot, "f", S_IFREG | 0600, "0123");
  Resize(kRootSlot, "f", 2);
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_THAT(groups_, SizeIs(1));
  ASSERT_THAT(groups_[0].steps, SizeIs(1));
  EXPECT_EQ(groups_[0].steps[0].kind, UndoStep::Kind::kContents);
}

TEST_F(UndoGroupsTest, SizeAndModeOfOneOperationAreTwoSteps) {
  Has(kRootSlot, "f", S_IFREG | 0600, "0123");
  const auto before = Listing(live_);
  SetAttributes(kRootSlot, "f", FATTR_SIZE | FATTR_MODE, 2, 0640);
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_THAT(groups_, SizeIs(1));
  EXPECT_THAT(groups_[0].steps, SizeIs(2));
  EXPECT_THAT(Apply(), IsEmpty());
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, AnEmptyAttributeIsPutBack) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  SetXattr(kRootSlot, "f", "user.a", "was");
  SetXattr(kRootSlot, "f", "user.a", "");
  EXPECT_THAT(Decide(), IsEmpty());
  const auto before = Listing(live_);
  UndoStep impossible;
  impossible.kind = UndoStep::Kind::kRemove;
  impossible.path = impossible.name = "nothing";
  impossible.dir = kRootFile;
  groups_.resize(1);
  groups_[0].steps.push_back(impossible);
  EXPECT_THAT(Apply(), SizeIs(1));
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoGroupsTest, ADeviceThatWasThereIsNotMade) {
  Has(kRootSlot, "null", S_IFCHR | 0600);
  Unlink(kRootSlot, "null");
  EXPECT_EQ(WhyNot(), "device nodes are not made");
}

}  // namespace
}  // namespace tracefs::replay
