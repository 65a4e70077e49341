// Undo gives back what was there: against a listing from before, whatever was
// done, and whatever fails in the middle of it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/replay/acl_text.h"
#include "tests/unit/replay/undo_world.h"
#include "tracefs/replay/acl.h"
#include "tracefs/replay/undo_names.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class UndoTest : public UndoWorld {
 protected:
  // Bytes with a hole, longer than what is copied at a time.
  static std::string Long() {
    std::string bytes(700'001, '\0');
    for (size_t i = 0; i < bytes.size(); i += 7) {
      bytes[i] = static_cast<char>(i >> 4);
    }
    return bytes;
  }
  void TakesBack(const std::map<std::string, std::string>& before) {
    EXPECT_THAT(Decide(), IsEmpty());
    EXPECT_THAT(Apply(), IsEmpty());
    EXPECT_EQ(Listing(live_), before);
  }
};

TEST_F(UndoTest, GivesBackEveryKindOfRemovedFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Has(kRootSlot, "f", S_IFREG | 0641, "held");
  Has(kRootSlot, "long", S_IFREG | 0600, Long());
  Has(kRootSlot, "d", S_IFDIR | 0751, {}, 1);
  Has(1, "inside", S_IFREG | 0600, "in it");
  HasLink(kRootSlot, "l", "to/nowhere");
  Has(kRootSlot, "pipe", S_IFIFO | 0644);
  Has(kRootSlot, "socket", S_IFSOCK | 0604);
  mine_ = false;
  SetXattr(kRootSlot, "f", "user.note", "kept");
  SetXattr(kRootSlot, "d", "user.empty", "");
  Chown(kRootSlot, "l", 12, 34);
  Chown(kRootSlot, "f", 56, 78);
  mine_ = true;
  Grant(Privilege::kOwner);
  const auto before = Listing(live_);
  for (const char* name : {"f", "long", "l", "pipe", "socket"}) {
    Unlink(kRootSlot, name);
  }
  Unlink(1, "inside");
  RemoveDir(kRootSlot, "d", 1);
  ASSERT_THAT(Listing(live_), IsEmpty());
  TakesBack(before);
}

TEST_F(UndoTest, GivesBackBytesWhereverTheyWere) {
  const auto root = kRootSlot;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    Has(root, name, S_IFREG | 0600, "0123456789");
  }
  Has(root, "long", S_IFREG | 0600, Long());
  Has(root, "empty", S_IFREG | 0600);
  const auto before = Listing(live_);
  Write(root, "a", 0, "x");
  Write(root, "a", 9, "yz");    // over its end
  Write(root, "b", 20, "far");  // a hole before it
  Write(root, "c", 3, "mid");
  Truncate(root, "d");
  Resize(root, "e", 4);
  Resize(root, "f", 40);
  Copy(root, "a", 0, "g", 5, 5);
  Allocate(root, "h", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3);
  Write(root, "long", 262'143, "across a piece");
  Resize(root, "long", 300'000);
  Write(root, "empty", 0, "not any more");
  TakesBack(before);
}

TEST_F(UndoTest, GivesBackNamesAndWhatHadThem) {
  const auto root = kRootSlot;
  Has(root, "a", S_IFREG | 0600, "A");
  Has(root, "b", S_IFREG | 0600, "B");
  Has(root, "d", S_IFDIR | 0700, {}, 1);
  Has(1, "c", S_IFREG | 0600, "C");
  Has(root, "empty", S_IFDIR | 0711, {}, 2);
  const auto before = Listing(live_);
  Rename(root, "a", 1, "moved");
  Rename(root, "b", 1, "c");  // takes the name of another
  Rename(1, "moved", 1, "c", RENAME_EXCHANGE);
  Link(1, "c", root, "again");
  Link(1, "c", root, "once more");
  Unlink(root, "again");
  Rename(1, "c", root, "once more");  // both are one file: nothing happens
  Rename(root, "d", 2, "below");
  MakeDir(1, "new", 3);
  Symlink(3, "l", "x");
  MakeNode(3, "pipe", S_IFIFO | 0600);
  Create(3, "f", "of mine");
  TakesBack(before);
}

TEST_F(UndoTest, GivesBackModesOwnersAndAttributes) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  const auto root = kRootSlot;
  Has(root, "f", S_IFREG | 0600, "F");
  Has(root, "s", S_IFREG | 04711, "S");
  HasLink(root, "l", "x");
  mine_ = false;
  SetXattr(root, "f", "user.was", "there");
  mine_ = true;
  Grant(Privilege::kOwner);
  Grant(Privilege::kSetId);
  const auto before = Listing(live_);
  Chmod(root, "f", 0644);
  Chmod(root, "f", 02755);
  Chown(root, "f", 1, 2);
  SetXattr(root, "f", "user.was", "other");
  RemoveXattr(root, "f", "user.was");
  SetXattr(root, "f", "user.new", "");
  Chown(root, "s", 3, 4);
  Chown(root, "l", 5, 6);
  TakesBack(before);
}

TEST_F(UndoTest, GivesBackUserAndGroupEachToItself) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Grant(Privilege::kOwner);
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  mine_ = false;
  Chown(kRootSlot, "f", 7, 8);
  mine_ = true;
  const auto before = Listing(live_);
  Chown(kRootSlot, "f", 9, 10);
  TakesBack(before);
}

TEST_F(UndoTest, WhatIsMadeAndRemovedIsNothing) {
  Has(kRootSlot, "f", S_IFREG | 0600, "F");
  const auto before = Listing(live_);
  Create(kRootSlot, "t", "for a while");
  Link(kRootSlot, "t", kRootSlot, "t2");
  Rename(kRootSlot, "t", kRootSlot, "t3");
  Unlink(kRootSlot, "t2");
  Unlink(kRootSlot, "t3");
  EXPECT_THAT(Decide(), IsEmpty());
  for (const UndoGroup& group : groups_) {
    for (const UndoStep& step : group.steps) {
      EXPECT_TRUE(step.is_nothing) << step.Text();
    }
  }
  EXPECT_THAT(Apply(), IsEmpty());
  EXPECT_EQ(Listing(live_), before);
}

// Any operations, all of them taken back, against the listing from before.
class RandomUndo : public UndoTest {
 protected:
  uint32_t Roll(uint32_t n) { return random_() % n; }
  std::string Name() {
    return std::string(1, static_cast<char>('a' + Roll(6)));
  }
  uint32_t Dir() { return Roll(3); }
  bool IsFile(uint32_t dir, const std::string& name) {
    return FileAt(dir, name) != kNoFile &&
           !folders_.contains(FileAt(dir, name));
  }

  bool WasThere(uint32_t dir, const std::string& name) {
    return IsFile(dir, name) && FileAt(dir, name) <= there_;
  }

  void Once() {
    const uint32_t dir = Dir();
    const std::string name = Name();
    const uint32_t to = Dir();
    const std::string other = Name();
    const bool taken = FileAt(to, other) != kNoFile;
    if (!IsFile(dir, name)) {
      if (FileAt(dir, name) == kNoFile) Create(dir, name, Bytes());
      return;
    }
    switch (Roll(9)) {
      case 0:
        return Unlink(dir, name);
      case 1:
        if (!taken) Link(dir, name, to, other);
        return;
      case 2:
        if (!taken || IsFile(to, other)) Rename(dir, name, to, other);
        return;
      case 3:
        // What was made and removed again is not kept: it cannot be exchanged.
        if (WasThere(dir, name) && WasThere(to, other)) {
          Rename(dir, name, to, other, RENAME_EXCHANGE);
        }
        return;
      case 4:
        return Write(dir, name, Roll(30), Bytes() + "w");
      case 5:
        return Truncate(dir, name);
      case 6:
        return Resize(dir, name, Roll(60));
      case 7:
        return Chmod(dir, name, 0400 + Roll(0400));
      case 8:
        return SetXattr(dir, name, "user." + other, Bytes());
    }
  }
  std::string Bytes() {
    return std::string(Roll(40), static_cast<char>('A' + Roll(26)));
  }

  std::mt19937 random_;
  std::set<uint64_t> folders_;
  uint64_t there_ = 0;  // files up to this number were there before
};

class EverySeed : public RandomUndo, public testing::WithParamInterface<int> {};

TEST_P(EverySeed, AllOfItTakenBackIsTheBeginning) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "files that their owner may not open take root";
  random_.seed(static_cast<unsigned>(GetParam()));
  folders_ = {Has(kRootSlot, "x", S_IFDIR | 0700, {}, 1),
              Has(1, "y", S_IFDIR | 0700, {}, 2)};
  for (const char* name : {"a", "b", "c"}) {
    there_ = Has(Dir(), name, S_IFREG | 0600, Bytes());
  }
  const auto before = Listing(live_);
  for (int i = 0; i < 60; ++i) Once();
  TakesBack(before);
}

INSTANTIATE_TEST_SUITE_P(Undo, EverySeed, testing::Range(1, 25));

// A group of which the last step fails: whatever came before is put back.
class PutBackTest : public UndoTest {
 protected:
  // Does it, and a removal of what is not the file that was looked at.
  void FailsAfter() {
    EXPECT_THAT(Decide(), IsEmpty());
    UndoGroup all;
    for (const UndoGroup& group : groups_) {
      for (const UndoStep& step : group.steps) all.steps.push_back(step);
    }
    UndoStep impossible;
    impossible.kind = UndoStep::Kind::kRemove;
    impossible.path = impossible.name = "bystander";
    impossible.dir = kRootFile;
    impossible.file = 4711;
    all.steps.push_back(impossible);
    groups_ = {all};
    const auto before = Listing(live_);
    EXPECT_THAT(Apply(), ElementsAre("remove bystander: others are changing it "
                                     "at this moment"));
    EXPECT_EQ(Listing(live_), before);
  }
  void SetUp() override {
    Has(kRootSlot, "bystander", S_IFREG | 0600, "not mine");
  }
};

TEST_F(PutBackTest, Names) {
  Has(kRootSlot, "a", S_IFREG | 0600, "A");
  Has(kRootSlot, "b", S_IFREG | 0600, "B");
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  Has(kRootSlot, "e", S_IFDIR | 0755, {}, 2);
  HasLink(kRootSlot, "l", "x");
  Has(kRootSlot, "pipe", S_IFIFO | 0640);
  Link(kRootSlot, "a", kRootSlot, "a2");
  Unlink(kRootSlot, "a");
  Rename(kRootSlot, "b", 1, "b");
  Unlink(kRootSlot, "l");
  Unlink(kRootSlot, "pipe");
  RemoveDir(kRootSlot, "e", 2);
  MakeDir(kRootSlot, "made", 3);
  Create(3, "f", "F");
  FailsAfter();
}

TEST_F(PutBackTest, AnExchange) {
  Has(kRootSlot, "a", S_IFREG | 0600, "A");
  Has(kRootSlot, "b", S_IFREG | 0640, "B");
  Rename(kRootSlot, "a", kRootSlot, "b", RENAME_EXCHANGE);
  FailsAfter();
}

TEST_F(PutBackTest, AMoveBetweenFolders) {
  Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  Has(kRootSlot, "e", S_IFDIR | 0700, {}, 2);
  Has(1, "f", S_IFREG | 0600, "F");
  Rename(1, "f", 2, "g");
  FailsAfter();
}

TEST_F(PutBackTest, EachBitOfAMode) {
  if (::geteuid() != 0) GTEST_SKIP() << "set-id bits take root";
  Grant(Privilege::kSetId);
  for (uint32_t bit = 1; bit <= 04000; bit <<= 1) {
    const std::string name = std::to_string(bit);
    Has(kRootSlot, name, S_IFREG | 0600, "F");
    Chmod(kRootSlot, name, bit);
  }
  FailsAfter();
}

TEST_F(UndoTest, GivesBackEachBitOfAMode) {
  if (::geteuid() != 0) GTEST_SKIP() << "set-id bits take root";
  Grant(Privilege::kSetId);
  for (uint32_t bit = 1; bit <= 04000; bit <<= 1) {
    Has(kRootSlot, std::to_string(bit), S_IFREG | bit, "F");
  }
  const auto before = Listing(live_);
  for (uint32_t bit = 1; bit <= 04000; bit <<= 1) {
    Chmod(kRootSlot, std::to_string(bit), 07777 ^ bit);
  }
  TakesBack(before);
}

TEST_F(PutBackTest, WhatAFileIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Grant(Privilege::kOwner);
  Has(kRootSlot, "a", S_IFREG | 0600, "0123456789");
  Has(kRootSlot, "b", S_IFREG | 0600, "0123456789");
  Has(kRootSlot, "c", S_IFREG | 0600, "0123456789");
  mine_ = false;
  SetXattr(kRootSlot, "a", "user.was", "there");
  mine_ = true;
  Write(kRootSlot, "a", 4, "xyz");
  Resize(kRootSlot, "b", 4);
  Write(kRootSlot, "c", 10, "longer by this");
  Chmod(kRootSlot, "a", 0444);
  Chown(kRootSlot, "b", 1, 2);
  SetXattr(kRootSlot, "a", "user.was", "other");
  SetXattr(kRootSlot, "b", "user.new", "1");
  FailsAfter();
}

TEST_F(PutBackTest, AnAcl) {
  if (::geteuid() != 0) GTEST_SKIP() << "ACLs of others take root";
  if (::removexattr(live_.c_str(), kAccessAcl) != 0 && errno == EOPNOTSUPP) {
    GTEST_SKIP() << "no ACLs here";
  }
  Grant(Privilege::kOwner);
  const std::string acl = AclText("u:rw 1234:rwx g:r m:rwx o:");
  Has(kRootSlot, "a", S_IFREG | 0640, "A");
  Has(kRootSlot, "b", S_IFREG | 0640, "B");
  mine_ = false;
  SetXattr(kRootSlot, "b", kAccessAcl, acl);
  mine_ = true;
  SetXattr(kRootSlot, "a", kAccessAcl, acl);
  RemoveXattr(kRootSlot, "b", kAccessAcl);
  FailsAfter();
}

TEST_F(PutBackTest, ADirectoryThatOthersFilledStays) {
  MakeDir(kRootSlot, "d", 1);
  Create(kRootSlot, "f", "F");
  EXPECT_THAT(Decide(), IsEmpty());
  UndoGroup all;
  for (const UndoGroup& group : groups_) {
    for (const UndoStep& step : group.steps) all.steps.push_back(step);
  }
  groups_ = {all};
  // It comes between the decision and the removal.
  ASSERT_EQ(::close(::creat(Live("d/theirs").c_str(), 0600)), 0);
  const auto before = Listing(live_);
  EXPECT_THAT(Apply(), ElementsAre("remove: Directory not empty"));
  EXPECT_EQ(Listing(live_), before);
}

// What others change between the decision and the doing of it.
TEST_F(UndoTest, Race_WhatIsChangedMeanwhileIsLeft) {
  Has(kRootSlot, "bytes", S_IFREG | 0600, "0123");
  Has(kRootSlot, "name", S_IFREG | 0600, "0123");
  Has(kRootSlot, "mode", S_IFREG | 0600, "0123");
  Write(kRootSlot, "bytes", 0, "x");
  Rename(kRootSlot, "name", kRootSlot, "renamed");
  Chmod(kRootSlot, "mode", 0640);
  EXPECT_THAT(Decide(), IsEmpty());
  ASSERT_EQ(::truncate(Live("bytes").c_str(), 3), 0);
  ASSERT_EQ(::unlink(Live("renamed").c_str()), 0);
  ASSERT_EQ(::close(::creat(Live("renamed").c_str(), 0600)), 0);
  ASSERT_EQ(::chmod(Live("mode").c_str(), 0666), 0);
  const auto before = Listing(live_);
  EXPECT_THAT(
      Apply(),
      ElementsAre("mode of mode: others are changing it at this moment",
                  "rename renamed to name: others are changing it at this "
                  "moment",
                  "write back 1 bytes at 0 of bytes, which has 4 bytes then: "
                  "others are changing it at this moment"));
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoTest, KeepsNoMoreBytesThanThereIsRoomFor) {
  most_bytes_ = 8;
  Has(kRootSlot, "f", S_IFREG | 0600, "01234567");
  Write(kRootSlot, "f", 0, "abcd");
  EXPECT_TRUE(kept_.ok());
  Unlink(kRootSlot, "f");
  EXPECT_EQ(kept_.message(),
            "undo: room for the bytes to be kept: Disk quota exceeded");
}

TEST(UndoStepTest, SaysWhatItDoes) {
  UndoStep step;
  step.path = "a\nb";
  step.other = "c";
  step.offset = 5;
  step.length = 3;
  step.size = 9;
  using Kind = UndoStep::Kind;
  const std::vector<std::pair<Kind, std::string>> texts = {
      {Kind::kRemove, "remove a\\nb"},
      {Kind::kRemoveDir, "remove directory a\\nb"},
      {Kind::kRename, "rename a\\nb to c"},
      {Kind::kExchange, "exchange a\\nb and c"},
      {Kind::kMakeFile, "make file a\\nb, 9 bytes"},
      {Kind::kMakeDir, "make directory a\\nb"},
      {Kind::kMakeLink, "make link a\\nb to c"},
      {Kind::kMakeNode, "make node a\\nb"},
      {Kind::kLinkAgain, "make a\\nb a name of c"},
      {Kind::kContents,
       "write back 3 bytes at 5 of a\\nb, which has 9 bytes then"},
      {Kind::kMode, "mode of a\\nb"},
      {Kind::kOwner, "owner of a\\nb"},
      {Kind::kXattr, "attribute c of a\\nb"},
      {Kind::kRemoveXattr, "remove attribute c of a\\nb"}};
  for (const auto& [kind, text] : texts) {
    step.kind = kind;
    EXPECT_EQ(step.Text(), text);
  }
  step.kind = Kind::kContents;
  step.length = 0;
  EXPECT_EQ(step.Text(), "resize a\\nb, which has 9 bytes then");
}

// Against a plain map of names.
TEST(UndoNamesTest, KnowsNamesAsAMapDoes) {
  UndoNames names;
  std::map<UndoNames::Name, uint64_t> model;
  std::map<UndoNames::Name, uint64_t> given;
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    const UndoNames::Name name(
        random() % 4 + 1,
        std::string(1, static_cast<char>('a' + random() % 5)));
    const uint64_t file = random() % 12;  // kNoFile and kRootFile among them
    if (random() % 3 == 0) {
      names.Remove(name);
      model.erase(name);
      given.erase(name);
    } else {
      const uint64_t given_by = random() % 3;  // 0: no operation
      names.Add(name, file, given_by);
      if (file > kRootFile) {
        model[name] = file;
        given[name] = given_by;
      }
    }
    ASSERT_EQ(names.GivenBy(name), given.contains(name) ? given[name] : 0);
    ASSERT_EQ(names.Find(name), model.contains(name) ? model[name] : kNoFile);
    for (uint64_t each = 2; each < 12; ++each) {
      const auto count = static_cast<size_t>(std::ranges::count_if(
          model, [&](const auto& row) { return row.second == each; }));
      ASSERT_EQ(names.CountOf(each), count);
      ASSERT_EQ(names.IsThere(each), count != 0);
    }
    for (uint64_t dir = 0; dir < 6; ++dir) {
      ASSERT_EQ(names.IsEmpty(dir),
                std::ranges::none_of(model, [&](const auto& row) {
                  return row.first.first == dir;
                }));
    }
  }
  EXPECT_TRUE(names.IsThere(kRootFile));
}

TEST(UndoNamesTest, TellsPathsAndEndsInCircles) {
  UndoNames names;
  names.Add({kRootFile, "a"}, 2, 0);
  names.Add({2, "b"}, 3, 0);
  names.Add({3, "c"}, 4, 0);
  std::string path = "before";
  EXPECT_TRUE(names.PathOf(kRootFile, &path));
  EXPECT_EQ(path, "");
  EXPECT_TRUE(names.PathOf(4, &path));
  EXPECT_EQ(path, "a/b/c");
  EXPECT_TRUE(names.PathOf({3, "new"}, &path));
  EXPECT_EQ(path, "a/b/new");
  EXPECT_FALSE(names.PathOf(9, &path));
  EXPECT_FALSE(names.PathOf({9, "new"}, &path));
  EXPECT_TRUE(names.IsIn(4, 2));
  EXPECT_TRUE(names.IsIn(3, 3));
  EXPECT_TRUE(names.IsIn(2, kRootFile));
  EXPECT_FALSE(names.IsIn(2, 4));
  EXPECT_FALSE(names.IsIn(9, 2));
  names.Add({5, "x"}, 6, 0);
  names.Add({6, "y"}, 5, 0);
  EXPECT_FALSE(names.PathOf(5, &path));
  EXPECT_TRUE(names.IsIn(5, 2)) << "what leads round is nobody's";
}

}  // namespace
}  // namespace tracefs::replay
