// Why an undo is refused, reason by reason: each with what brings it about, and
// nothing else refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include "tests/unit/replay/undo_world.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/crc32c.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kNotAsLeft[] = "it is not as the trace has left it";
constexpr char kNotCompared[] =
    "what it holds by now cannot be compared with what the trace has left: not "
    "all of its bytes are in the trace";
constexpr char kNotShown[] =
    "others may have changed it unseen, and not all of its bytes are in the "
    "trace to show that they have not: it was stopped";

class UndoRefusalTest : public UndoWorld {
 protected:
  void SetUp() override {
    Has(kRootSlot, "f", S_IFREG | 0600, "0123");
    Has(kRootSlot, "d", S_IFDIR | 0700, {}, 1);
  }
  template <typename Act>
  void Others(const Act& act) {
    mine_ = false;
    act();
    mine_ = true;
  }
  static void Put(const std::string& path, std::string_view bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
};

TEST_F(UndoRefusalTest, Removal_OfANameThatIsAnothers) {
  Create(kRootSlot, "n", "");
  Others([&] { Rename(kRootSlot, "n", kRootSlot, "m"); });
  EXPECT_EQ(WhyNot(), "that name was taken away or given to another since");
}

// The name that was made is "m" by now, and "n" is theirs.
TEST_F(UndoRefusalTest, Removal_OfANameThatOthersGaveAgain) {
  Link(kRootSlot, "f", kRootSlot, "n");
  Others([&] {
    Rename(kRootSlot, "n", kRootSlot, "m");
    Link(kRootSlot, "f", kRootSlot, "n");
  });
  EXPECT_EQ(WhyNot(), "that name was taken away or given to another since");
}

TEST_F(UndoRefusalTest, Removal_OfAFolderWithSomethingInIt) {
  MakeDir(kRootSlot, "n", 2);
  Others([&] { Create(2, "theirs", ""); });
  EXPECT_EQ(WhyNot(), "something is in it");
}

TEST_F(UndoRefusalTest, Removal_OfAFolderWithWhatNoTraceTells) {
  MakeDir(kRootSlot, "n", 2);
  Put(Live("n/foreign"), "x");
  EXPECT_EQ(WhyNot(), "something is in it");
}

TEST_F(UndoRefusalTest, Removal_OfTheOnlyName) {
  Link(kRootSlot, "f", kRootSlot, "g");
  Others([&] { Unlink(kRootSlot, "f"); });
  EXPECT_EQ(WhyNot(), "it is the only name by now");
}

TEST_F(UndoRefusalTest, Removal_OfWhatOthersWroteSince) {
  Create(kRootSlot, "n", "");
  Others([&] { Write(kRootSlot, "n", 0, "theirs"); });
  EXPECT_EQ(WhyNot(), "operation 4 changed it since");
}

TEST_F(UndoRefusalTest, Removal_OfWhatIsNotAsLeft) {
  Create(kRootSlot, "n", "mine");
  Put(Live("n"), "MINE");
  EXPECT_THAT(Decide(), ElementsAre("1: it is not as the trace has left it"));
}

TEST_F(UndoRefusalTest, Removal_OfALinkThatLeadsElsewhere) {
  Symlink(kRootSlot, "n", "there");
  ASSERT_EQ(::unlink(Live("n").c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", Live("n").c_str()), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Removal_OfAnotherKindOfFile) {
  Create(kRootSlot, "n", "");
  ASSERT_EQ(::unlink(Live("n").c_str()), 0);
  ASSERT_EQ(::mkdir(Live("n").c_str(), 0700), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Making_WhereTheNameIsTaken) {
  Unlink(kRootSlot, "f");
  Others([&] { Create(kRootSlot, "f", "theirs"); });
  EXPECT_EQ(WhyNot(), "its name is another's by now");
}

TEST_F(UndoRefusalTest, Making_WhereTheNameIsTakenByWhatNoTraceTells) {
  Unlink(kRootSlot, "f");
  Put(Live("f"), "foreign");
  EXPECT_EQ(WhyNot(), "its name is another's by now");
}

TEST_F(UndoRefusalTest, Making_InAFolderThatIsGone) {
  mine_ = false;
  Create(1, "in", "");
  mine_ = true;
  Unlink(1, "in");
  Others([&] { RemoveDir(kRootSlot, "d", 1); });
  EXPECT_EQ(WhyNot(), "its directory is not there");
}

TEST_F(UndoRefusalTest, Making_WhatHasAnotherNameByNow) {
  mine_ = false;
  Link(kRootSlot, "f", kRootSlot, "g");
  mine_ = true;
  Unlink(kRootSlot, "f");
  Others([&] { Unlink(kRootSlot, "g"); });
  EXPECT_EQ(WhyNot(), "no other name of it is left");
}

TEST_F(UndoRefusalTest, Making_WithoutTheBytes) {
  flags_ = kUnknownBytes;
  Unlink(kRootSlot, "f");
  EXPECT_EQ(WhyNot(), "what it held is not in the trace");
}

TEST_F(UndoRefusalTest, Making_WithNamesThatNobodyTells) {
  flags_ = kUnknownNames;
  Unlink(kRootSlot, "f");
  EXPECT_EQ(WhyNot(), "it has names that the trace does not tell");
}

TEST_F(UndoRefusalTest, Making_ADeviceNode) {
  if (::geteuid() != 0) GTEST_SKIP() << "device nodes take root";
  mine_ = false;
  MakeNode(kRootSlot, "null", S_IFCHR | 0600);
  mine_ = true;
  Unlink(kRootSlot, "null");
  EXPECT_EQ(WhyNot(), "device nodes are not made");
}

TEST_F(UndoRefusalTest, Making_ADeviceOfBlocks) {
  if (::geteuid() != 0) GTEST_SKIP() << "device nodes take root";
  mine_ = false;
  MakeNode(kRootSlot, "disk", S_IFBLK | 0600);
  mine_ = true;
  Unlink(kRootSlot, "disk");
  EXPECT_EQ(WhyNot(), "device nodes are not made");
}

TEST_F(UndoRefusalTest, Making_WhatWouldStayAndWasNotKept) {
  // Made and removed; its last name is not taken back, so it would have to be
  // made again.
  Create(kRootSlot, "n", "mine");
  Others([&] { Rename(kRootSlot, "n", kRootSlot, "m"); });
  Unlink(kRootSlot, "m");
  EXPECT_THAT(
      Decide(),
      ElementsAre("7: what it held was not kept, since its maker removed it",
                  "1: that name was taken away or given to another since"));
}

TEST_F(UndoRefusalTest, Renaming_WhatHasNotThatName) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  Others([&] { Rename(kRootSlot, "g", kRootSlot, "h"); });
  EXPECT_EQ(WhyNot(), "it has not that name any more");
}

TEST_F(UndoRefusalTest, Renaming_OfANameThatOthersGaveAgain) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  Others([&] {
    Rename(kRootSlot, "g", kRootSlot, "h");
    Rename(kRootSlot, "h", kRootSlot, "g");
  });
  EXPECT_EQ(WhyNot(), "it has not that name any more");
}

TEST_F(UndoRefusalTest, Renaming_WhereTheFormerNameIsTaken) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  Others([&] { Create(kRootSlot, "f", ""); });
  EXPECT_EQ(WhyNot(), "its former name is another's by now");
}

TEST_F(UndoRefusalTest, Renaming_WhereTheFormerNameIsTakenByTheUnknown) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  Put(Live("f"), "foreign");
  EXPECT_EQ(WhyNot(), "its former name is another's by now");
}

TEST_F(UndoRefusalTest, Renaming_IntoAFolderThatIsGone) {
  mine_ = false;
  Create(1, "in", "");
  mine_ = true;
  Rename(1, "in", kRootSlot, "out");
  Others([&] { RemoveDir(kRootSlot, "d", 1); });
  EXPECT_EQ(WhyNot(), "its former directory is not there");
}

TEST_F(UndoRefusalTest, Renaming_IntoItself) {
  Has(1, "e", S_IFDIR | 0700, {}, 2);
  Rename(1, "e", kRootSlot, "e");
  Others([&] { Rename(kRootSlot, "d", 2, "d"); });
  EXPECT_EQ(WhyNot(), "its former directory is in it by now");
}

TEST_F(UndoRefusalTest, Renaming_WhatIsNotAsLeft) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  Put(Live("g"), "longer than it was");
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Renaming_WhatHasAFurtherName) {
  Rename(kRootSlot, "f", kRootSlot, "g");
  ASSERT_EQ(::link(Live("g").c_str(), Live("further").c_str()), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Exchange_OfWhatHasMoved) {
  Has(kRootSlot, "g", S_IFREG | 0600, "G");
  Rename(kRootSlot, "f", kRootSlot, "g", RENAME_EXCHANGE);
  Others([&] { Rename(kRootSlot, "g", kRootSlot, "h"); });
  EXPECT_EQ(WhyNot(), "they have not these names any more");
}

TEST_F(UndoRefusalTest, Exchange_OfNamesThatOthersGaveAgain) {
  Has(kRootSlot, "g", S_IFREG | 0600, "G");
  Rename(kRootSlot, "f", kRootSlot, "g", RENAME_EXCHANGE);
  Others([&] {
    Rename(kRootSlot, "f", kRootSlot, "h");
    Rename(kRootSlot, "h", kRootSlot, "f");
  });
  EXPECT_EQ(WhyNot(), "they have not these names any more");
}

TEST_F(UndoRefusalTest, Exchange_OfWhatIsInTheOther) {
  Has(kRootSlot, "e", S_IFDIR | 0700, {}, 2);
  Has(1, "in", S_IFDIR | 0700, {}, 3);
  Has(2, "in", S_IFDIR | 0700, {}, 4);
  // d/in and e change places; then d goes into what was e.
  Rename(1, "in", kRootSlot, "e", RENAME_EXCHANGE);
  Others([&] { Rename(kRootSlot, "d", 3, "d"); });
  EXPECT_EQ(WhyNot(), "one of them is in the other by now");
}

TEST_F(UndoRefusalTest, Exchange_OfWhatIsNotAsLeft) {
  Has(kRootSlot, "g", S_IFREG | 0600, "G");
  Rename(kRootSlot, "f", kRootSlot, "g", RENAME_EXCHANGE);
  Put(Live("f"), "g");
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Exchange_WithWhatIsNotAsLeft) {
  Has(kRootSlot, "g", S_IFREG | 0600, "G");
  Rename(kRootSlot, "f", kRootSlot, "g", RENAME_EXCHANGE);
  Put(Live("g"), "x");  // the one that was f
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Exchange_WithAnotherFileInItsPlace) {
  Has(kRootSlot, "g", S_IFREG | 0600, "G");
  Rename(kRootSlot, "f", kRootSlot, "g", RENAME_EXCHANGE);
  ASSERT_EQ(::unlink(Live("f").c_str()), 0);
  Put(Live("f"), "theirs");
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Exchange_WithWhatWasRemovedUnkept) {
  Create(kRootSlot, "n", "");
  Rename(kRootSlot, "f", kRootSlot, "n", RENAME_EXCHANGE);
  Unlink(kRootSlot, "f");  // the new one
  EXPECT_THAT(
      Decide(),
      ElementsAre("4: what it held was not kept, since its maker removed it",
                  "3: they have not these names any more",
                  "1: that name was taken away or given to another since"));
}

TEST_F(UndoRefusalTest, Change_OfWhatIsGone) {
  Write(kRootSlot, "f", 0, "x");
  Others([&] { Unlink(kRootSlot, "f"); });
  EXPECT_EQ(WhyNot(), "it is not there any more");
}

TEST_F(UndoRefusalTest, Change_ThatOthersFollowed) {
  Write(kRootSlot, "f", 0, "x");
  Others([&] { Write(kRootSlot, "f", 1, "y"); });
  EXPECT_EQ(WhyNot(), "operation 5 changed it since");
}

TEST_F(UndoRefusalTest, Change_BeforeOneThatIsNotTakenBack) {
  Write(kRootSlot, "f", 0, "x");
  flags_ = kUnknownBytes;
  Resize(kRootSlot, "f", 2);
  flags_ = 0;
  EXPECT_THAT(
      Decide(),
      ElementsAre("4: the bytes that it had are not in the trace",
                  "2: operation 4, which came later, is not taken back"));
}

TEST_F(UndoRefusalTest, Change_OfBytesThatAreNotAsLeft) {
  Write(kRootSlot, "f", 0, "x");
  Put(Live("f"), "x12y");
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_WhereTheLastByteOfALongFileIsOthers) {
  const std::string bytes(300'000, 'b');
  Has(kRootSlot, "long", S_IFREG | 0600, bytes);
  Write(kRootSlot, "long", 0, "x");
  const UniqueFd fd(::open(Live("long").c_str(), O_WRONLY));
  ASSERT_EQ(::pwrite(fd.get(), "c", 1, 299'999), 1);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_OfBytesThatCannotBeCompared) {
  contents_known_ = false;
  Write(kRootSlot, "f", 0, "x");
  EXPECT_EQ(WhyNot(), kNotCompared);
}

// The checksum of what a file holds in the end has what no operation tells.
TEST_F(UndoRefusalTest, LeftOut_BytesThatAChecksumShows) {
  contents_known_ = false;
  keeps_ = true;
  Write(kRootSlot, "f", 0, "mine");
  Put(Live("f"), "them");
  TreeEntry& entry = expected_["f"];
  entry.mode = S_IFREG | 0600;
  entry.checksum = Crc32c(AsBytes(std::string_view("them")));
  entry.known = TreeEntry::kMode | TreeEntry::kChecksum;
  left_out_ = "it was stopped";
  EXPECT_EQ(WhyNot(), kNotShown);
}

TEST_F(UndoRefusalTest, LeftOut_BytesWhileTheTraceGoesOn) {
  contents_known_ = false;
  told_by_ns_ = RealNs() + kNsPerSecond;
  first_real_ns_ = RealNs();
  Write(kRootSlot, "f", 0, "mine");
  left_out_ = "it was stopped";
  EXPECT_EQ(WhyNot(), kNotShown);
}

TEST_F(UndoRefusalTest, LeftOut_BytesThatAreAllInTheTrace) {
  left_out_ = "it was stopped";
  Write(kRootSlot, "f", 0, "x");
  EXPECT_THAT(Decide(), IsEmpty());
}

TEST_F(UndoRefusalTest, LeftOut_OtherBytesThanTheTraceHas) {
  left_out_ = "it was stopped";
  Write(kRootSlot, "f", 0, "x");
  Put(Live("f"), "them");
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

// What is expected is what somebody has made of it by the end.
TEST_F(UndoRefusalTest, LeftOut_AMode) {
  Chmod(kRootSlot, "f", 0640);
  ASSERT_EQ(::chmod(Live("f").c_str(), 0604), 0);
  TreeEntry& entry = expected_["f"];
  entry.mode = S_IFREG | 0604;
  entry.known = TreeEntry::kMode | TreeEntry::kAllBytes;
  left_out_ = "it was stopped";
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Removal_OfBytesThatCannotBeCompared) {
  contents_known_ = false;
  Create(kRootSlot, "n", "mine");
  EXPECT_THAT(Decide(), ElementsAre(std::string("1: ") + kNotCompared));
}

// Times say that nobody came after the last operation, or that somebody did.
TEST_F(UndoRefusalTest, Removal_OfBytesThatCannotBeCompared_ByTimes) {
  contents_known_ = false;
  alter_ = [](Action& a) { a.duration_ns = 30 * kNsPerSecond; };
  const uint64_t now = RealNs();
  struct {
    uint64_t begin;
    bool comes_back;
  } const worlds[] = {{now - 60 * kNsPerSecond, false},
                      {now, true},
                      {now + 60 * kNsPerSecond, false}};  // of another file
  for (const auto& world : worlds) {
    first_real_ns_ = world.begin;
    const std::string name = "n" + std::to_string(world.begin);
    Create(kRootSlot, name, "mine");
    EXPECT_EQ(Decide().empty(), world.comes_back) << world.begin - now;
  }
}

TEST_F(UndoRefusalTest, Change_OfAModeThatIsNotAsLeft) {
  Chmod(kRootSlot, "f", 0640);
  ASSERT_EQ(::chmod(Live("f").c_str(), 0641), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_OfBytesWhateverTheModeIs) {
  Write(kRootSlot, "f", 0, "x");
  ASSERT_EQ(::chmod(Live("f").c_str(), 0641), 0);
  EXPECT_THAT(Decide(), IsEmpty());
}

TEST_F(UndoRefusalTest, Change_OfAnOwnerThatIsNotAsLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Grant(Privilege::kOwner);
  Chown(kRootSlot, "f", 1, 2);
  ASSERT_EQ(::chown(Live("f").c_str(), 1, 3), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_OfAnOwnerWhoIsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Grant(Privilege::kOwner);
  Chown(kRootSlot, "f", 1, 2);
  ASSERT_EQ(::chown(Live("f").c_str(), 3, 2), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_OfAnAttributeThatIsNotAsLeft) {
  SetXattr(kRootSlot, "f", "user.a", "1");
  ASSERT_EQ(::setxattr(Live("f").c_str(), "user.a", "2", 1, 0), 0);
  EXPECT_EQ(WhyNot(), kNotAsLeft);
}

TEST_F(UndoRefusalTest, Change_OfAnAttributeWithoutItsValue) {
  flags_ = kUnknownBytes;
  SetXattr(kRootSlot, "f", "user.a", "1");
  EXPECT_EQ(WhyNot(), "the value that it had is not in the trace");
}

TEST_F(UndoRefusalTest, Change_OfAModeThatIsNotInTheTrace) {
  flags_ = kUnknownBytes;
  Chmod(kRootSlot, "f", 0640);
  EXPECT_EQ(WhyNot(), "what it had is not in the trace");
}

// Rights that a step would give, and the option that asks for each.
TEST_F(UndoRefusalTest, Grants_SetIdBits) {
  if (::geteuid() != 0) GTEST_SKIP() << "set-id bits take root";
  Has(kRootSlot, "s", S_IFREG | 04755, "S");
  Chmod(kRootSlot, "s", 0755);
  EXPECT_EQ(WhyNot(), "it takes --set-id: set-user-ID and set-group-ID bits");
}

TEST_F(UndoRefusalTest, Grants_SetIdBitsOfWhatIsMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "set-id bits take root";
  Has(kRootSlot, "s", S_IFREG | 02755, "S");
  Unlink(kRootSlot, "s");
  EXPECT_EQ(WhyNot(), "it takes --set-id: set-user-ID and set-group-ID bits");
}

TEST_F(UndoRefusalTest, Grants_SetIdBitsThatAreAskedFor) {
  Grant(Privilege::kSetId);
  Has(kRootSlot, "s", S_IFREG | 06755, "S");
  Chmod(kRootSlot, "s", 0755);
  EXPECT_THAT(Decide(), IsEmpty());
}

TEST_F(UndoRefusalTest, Grants_Owners) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  constexpr char kTakes[] =
      "it takes --users recorded: owners, and ACLs that name users or groups";
  for (const auto& [uid, gid] : {std::pair{7, 0}, std::pair{0, 7}}) {
    mine_ = false;
    const std::string name = "o" + std::to_string(uid);
    Create(kRootSlot, name, "");
    Chown(kRootSlot, name, static_cast<uint32_t>(uid),
          static_cast<uint32_t>(gid));
    mine_ = true;
    Unlink(kRootSlot, name);
    EXPECT_EQ(WhyNot(), kTakes);
  }
}

TEST_F(UndoRefusalTest, Grants_OwnersOfWhatIsOnlyDressed) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  Chown(kRootSlot, "f", 7, 7);
  EXPECT_EQ(WhyNot(),
            "it takes --users recorded: owners, and ACLs that name users or "
            "groups");
}

TEST_F(UndoRefusalTest, Grants_AttributesOfRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "trusted.* takes root";
  mine_ = false;
  SetXattr(kRootSlot, "f", "trusted.a", "1");
  mine_ = true;
  constexpr char kTakes[] =
      "it takes --trusted-xattrs: trusted.* and other attributes of root";
  RemoveXattr(kRootSlot, "f", "trusted.a");
  SetXattr(kRootSlot, "f", "trusted.b", "1");
  EXPECT_THAT(Decide(), ElementsAre("3: " + std::string(kTakes),
                                    "2: " + std::string(kTakes)));
}

TEST_F(UndoRefusalTest, Grants_AttributesOfWhatIsMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "trusted.* takes root";
  mine_ = false;
  SetXattr(kRootSlot, "f", "trusted.a", "1");
  mine_ = true;
  Unlink(kRootSlot, "f");
  EXPECT_EQ(WhyNot(),
            "it takes --trusted-xattrs: trusted.* and other attributes of "
            "root");
}

}  // namespace
}  // namespace tracefs::replay
