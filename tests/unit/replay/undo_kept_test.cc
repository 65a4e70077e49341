// What a mount has kept is given back, where the trace itself does not have it:
// the very bytes that are in the folder, and none that may be others'.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/unit/replay/undo_world.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"

namespace tracefs::replay {
namespace {

using testing::IsEmpty;

constexpr char kNotThat[] = "what was kept of it is not what was destroyed";
constexpr char kChanged[] = "what was kept of it was changed since (object 1)";

// Both directories hold digits; letters were kept, so that it shows what is
// given back.
class UndoKeptTest : public UndoWorld {
 protected:
  void SetUp() override {
    Has(kRootSlot, "f", S_IFREG | 0600, "0123456789");
    ASSERT_EQ(::mkdir(folder_.Path("kept").c_str(), 0700), 0);
    Put("1", "..ABCDEFGHIJ..");
    keeps_ = true;
  }

  std::string Object(const std::string& name) const {
    return folder_.Path("kept") + "/" + name;
  }
  void Put(const std::string& name, std::string_view bytes) {
    const UniqueFd fd(
        ::open(Object(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    ASSERT_TRUE(WriteAllAt(fd.get(), AsBytes(bytes), 0, "").ok());
  }

  // Of `op`, the bytes [offset, offset + text.size()) were kept in object 1.
  void Kept(Op op, uint64_t at, uint64_t offset, std::string_view text) {
    const uint32_t check = Crc32c(AsBytes(text));
    alter_ = [=, length = text.size()](Action& a) {
      const bool truncates = op == Op::open_ && (a.arg_flags & O_TRUNC) != 0;
      if (a.op != op || (op == Op::open_ && !truncates)) return;
      a.flags |= kUnknownBytes | kWasKept | kKeptCopy;
      a.kept = 1;
      a.kept_at = at;
      a.kept_offset = offset;
      a.kept_length = length;
      a.kept_check = check;
    };
  }

  std::string Undone() {
    const std::vector<std::string> refused = Decide();
    if (!refused.empty()) return refused.front();
    EXPECT_THAT(Apply(), IsEmpty());
    return TempFolder::Read(Live("f"));
  }
};

TEST_F(UndoKeptTest, ARemovedFileHasWhatWasKept) {
  Kept(Op::unlink_, 2, 0, "ABCDEFGHIJ");
  Unlink(kRootSlot, "f");
  EXPECT_EQ(Undone(), "ABCDEFGHIJ");
}

TEST_F(UndoKeptTest, ARemovedFileIsAsLongAsItWas) {
  Kept(Op::unlink_, 3, 0, "BCDEFGHIJ..");  // the trace knew of 10
  Unlink(kRootSlot, "f");
  EXPECT_EQ(Undone(), "BCDEFGHIJ..");
}

TEST_F(UndoKeptTest, AFileThatWasReplacedHasWhatWasKept) {
  Has(kRootSlot, "g", S_IFREG | 0600, "g");
  Kept(Op::rename_, 2, 0, "ABCDEFGHIJ");
  Rename(kRootSlot, "g", kRootSlot, "f");
  EXPECT_EQ(Undone(), "ABCDEFGHIJ");
  EXPECT_EQ(TempFolder::Read(Live("g")), "g");
}

TEST_F(UndoKeptTest, AWriteIsTakenBackWhereItWas) {
  Kept(Op::write_, 2, 3, "ABC");
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(Undone(), "012ABC6789");
}

TEST_F(UndoKeptTest, OfWhatWasKeptOnlyWhatWasDestroyedIsTaken) {
  Kept(Op::write_, 2, 1, "ABCDEFGHI");
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(Undone(), "012CDE6789");
}

TEST_F(UndoKeptTest, WhatIsOverTheEndWasNotThere) {
  Kept(Op::write_, 2, 8, "AB");
  Write(kRootSlot, "f", 8, "wxyz");
  EXPECT_EQ(Undone(), "01234567AB");
}

TEST_F(UndoKeptTest, AnAppendDestroysNothing) {
  Kept(Op::write_, 2, 10, "");
  Write(kRootSlot, "f", 10, "wxyz");
  EXPECT_EQ(Undone(), "0123456789");
}

TEST_F(UndoKeptTest, WhereNothingWasDestroyedThereIsNoObject) {
  Kept(Op::write_, 0, 0, "");
  alter_ = [before = alter_](Action& a) {
    before(a);
    a.kept = 0;
  };
  Write(kRootSlot, "f", 10, "wxyz");
  EXPECT_EQ(Undone(), "0123456789");
}

TEST_F(UndoKeptTest, WhatWasCutOffIsThereAgain) {
  Kept(Op::setattr_, 2, 4, "ABCDEF");
  Resize(kRootSlot, "f", 4);
  EXPECT_EQ(Undone(), "0123ABCDEF");
}

TEST_F(UndoKeptTest, AFileThatWasEmptiedIsThereAgain) {
  Kept(Op::open_, 2, 0, "ABCDEFGHIJ");
  Truncate(kRootSlot, "f");
  EXPECT_EQ(Undone(), "ABCDEFGHIJ");
}

TEST_F(UndoKeptTest, WhatWasCopiedOverIsThereAgain) {
  Has(kRootSlot, "g", S_IFREG | 0600, "other");
  Kept(Op::copy_file_range_, 2, 5, "ABC");
  Copy(kRootSlot, "g", 0, "f", 5, 3);
  EXPECT_EQ(Undone(), "01234ABC89");
}

TEST_F(UndoKeptTest, AHoleIsFilledWithWhatWasKept) {
  Kept(Op::fallocate_, 2, 2, "ABC");
  Allocate(kRootSlot, "f", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3);
  EXPECT_EQ(Undone(), "01ABC56789");
}

TEST_F(UndoKeptTest, ItIsAsOldAsItWas) {
  for (const Op op : {Op::write_, Op::unlink_}) {
    Kept(op, 2, 0, "ABCDEFGHIJ");
    alter_ = [before = alter_](Action& a) {
      before(a);
      if (a.kept == 0) return;
      a.flags |= kHasMtime;
      a.kept_mtime_ns = 1'000'000'000'123'456'789;
    };
    if (op == Op::write_) {
      Write(kRootSlot, "f", 0, "0123456789");
    } else {
      Has(kRootSlot, "h", S_IFREG | 0600, "0123456789");
      Unlink(kRootSlot, "h");
    }
  }
  EXPECT_THAT(Decide(), IsEmpty());
  EXPECT_THAT(Apply(), IsEmpty());
  for (const char* const name : {"f", "h"}) {
    struct stat st;
    ASSERT_EQ(::stat(Live(name).c_str(), &st), 0) << name;
    EXPECT_EQ(st.st_mtim.tv_sec, 1'000'000'000) << name;
    EXPECT_EQ(st.st_mtim.tv_nsec, 123'456'789) << name;
  }
}

// A checksum of the end has what others did below the mount; the time that the
// file had then tells of it.
TEST_F(UndoKeptTest, WhatWasYoungerInTheEndIsOthers) {
  constexpr int64_t kSecond = 1'000'000'000;
  struct {
    int64_t mtime;
    bool is_set_by_name;
    bool comes_back;
  } const worlds[] = {{1000 * kSecond, false, true},
                      {1100 * kSecond, false, false},
                      {1100 * kSecond, true, true}};
  first_real_ns_ = 1000 * kSecond;
  contents_known_ = false;
  for (size_t i = 0; i < std::size(worlds); ++i) {
    const std::string name = "n" + std::to_string(i);
    Has(kRootSlot, name, S_IFREG | 0600, "0123456789");
    Kept(Op::write_, 2, 3, "ABC");
    Write(kRootSlot, name, 3, "xyz");
    alter_ = nullptr;
    mine_ = false;
    if (worlds[i].is_set_by_name) {
      SetAttributes(kRootSlot, name, FATTR_MTIME, 0, 0);
    }
    mine_ = true;
    TreeEntry& entry = expected_[name];
    entry.mode = S_IFREG | 0600;
    entry.mtime_ns = worlds[i].mtime;
    entry.checksum = Crc32c(AsBytes(std::string_view("012xyz6789")));
    entry.known = TreeEntry::kMode | TreeEntry::kChecksum | TreeEntry::kMtime;
    EXPECT_EQ(WhyNot(),
              worlds[i].comes_back ? "" : "it is not as the trace has left it");
  }
}

TEST_F(UndoKeptTest, ACloneIsKnownByWhenItWasMade) {
  struct stat st;
  ASSERT_EQ(::stat(Object("1").c_str(), &st), 0);
  const uint64_t made =
      static_cast<uint64_t>(st.st_ctim.tv_sec) * 1'000'000'000 +
      static_cast<uint64_t>(st.st_ctim.tv_nsec);
  Kept(Op::write_, 2, 3, "ABC");
  alter_ = [before = alter_, made](Action& a) {
    before(a);
    a.flags &= ~uint32_t{kKeptCopy};
    a.kept_check = made;
  };
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(Undone(), "012ABC6789");
}

TEST_F(UndoKeptTest, Malicious_ACloneThatWasChangedIsNotTaken) {
  Kept(Op::write_, 2, 3, "ABC");
  alter_ = [before = alter_](Action& a) {
    before(a);
    a.flags &= ~uint32_t{kKeptCopy};
    a.kept_check = 1;
  };
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(WhyNot(), kChanged);
}

TEST_F(UndoKeptTest, Malicious_WhatWasChangedIsNotTaken) {
  Kept(Op::unlink_, 2, 0, "ABCDEFGHIJ");
  Put("1", "..ABCDEFGHIj..");
  Unlink(kRootSlot, "f");
  EXPECT_EQ(WhyNot(), kChanged);
}

TEST_F(UndoKeptTest, WhatIsGoneIsNotTaken) {
  Kept(Op::unlink_, 2, 0, "ABCDEFGHIJ");
  ASSERT_EQ(::unlink(Object("1").c_str()), 0);
  Unlink(kRootSlot, "f");
  EXPECT_THAT(WhyNot(),
              testing::StartsWith("what was kept of it is gone (object 1)"));
}

TEST_F(UndoKeptTest, WhatWasKeptOfOtherBytesIsNotTaken) {
  struct {
    uint64_t offset;
    const char* text;
    const char* why;
  } const worlds[] = {
      {3, "ABC", ""},       {4, "BC", kNotThat},  // not the first
      {3, "AB", kNotThat},                        // not the last
      {4, "BCD", kNotThat}, {6, "ABC", kNotThat}, {0, "ABC", kNotThat}};
  for (const auto& world : worlds) {
    const std::string name(world.text + std::to_string(world.offset));
    Has(kRootSlot, name, S_IFREG | 0600, "0123456789");
    Kept(Op::write_, world.text[0] == 'A' ? 2 : 3, world.offset, world.text);
    Write(kRootSlot, name, 3, "xyz");
    alter_ = {};
    EXPECT_EQ(WhyNot(), world.why) << name;
  }
}

TEST_F(UndoKeptTest, WithoutAnObjectNothingWasKept) {
  Kept(Op::write_, 2, 3, "ABC");
  alter_ = [before = alter_](Action& a) {
    before(a);
    a.kept = 0;
  };
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(WhyNot(), kNotThat);
}

// The trace has no bytes of it, but says what it held in the end.
TEST_F(UndoKeptTest, WhatIsNotAsLeftIsKnownByItsChecksum) {
  for (const bool is_as_left : {true, false}) {
    const std::string name = is_as_left ? "same" : "other";
    Has(kRootSlot, name, S_IFREG | 0600, "0123456789");
    Kept(Op::write_, 2, 3, "ABC");
    Write(kRootSlot, name, 3, "xyz");
    TreeEntry& entry = expected_[name];
    entry.mode = S_IFREG | 0600;
    entry.uid = ::geteuid();
    entry.gid = ::getegid();
    entry.known = TreeEntry::kMode | TreeEntry::kOwner | TreeEntry::kChecksum;
    entry.checksum = Crc32c(AsBytes("012xyz6789"));
    if (!is_as_left) {
      const UniqueFd fd(::open(Live(name).c_str(), O_WRONLY));
      ASSERT_TRUE(WriteAllAt(fd.get(), AsBytes("8"), 9, "").ok());
    }
    EXPECT_EQ(WhyNot(), is_as_left ? "" : "it is not as the trace has left it");
  }
}

// There was nothing to keep.
TEST_F(UndoKeptTest, AModeAloneIsComparedByTheChecksumOfTheFile) {
  Chmod(kRootSlot, "f", 0644);
  TreeEntry& entry = expected_["f"];
  entry.mode = S_IFREG | 0644;
  entry.known = TreeEntry::kMode | TreeEntry::kChecksum;
  entry.checksum = Crc32c(AsBytes("0123456789"));
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(UndoKeptTest, WhatWasMadeMeanwhileNeedNotBeKnown) {
  const auto before = Listing(live_);
  Create(kRootSlot, "g", "passing");
  flags_ = kUnknownBytes;
  Unlink(kRootSlot, "g");
  EXPECT_EQ(Undone(), "0123456789");
  EXPECT_EQ(Listing(live_), before);
}

TEST_F(UndoKeptTest, WhyItCouldNotBeKeptIsSaid) {
  alter_ = [](Action& a) {
    if (a.op != Op::unlink_) return;
    a.flags |= kUnknownBytes;
    a.not_kept = ENOSPC;
  };
  Unlink(kRootSlot, "f");
  EXPECT_EQ(WhyNot(),
            "what it held is not in the trace, and it could not be kept: No "
            "space left on device");
}

TEST_F(UndoKeptTest, WhyBytesCouldNotBeKeptIsSaid) {
  alter_ = [](Action& a) {
    if (a.op != Op::write_) return;
    a.flags |= kUnknownBytes;
    a.not_kept = EFBIG;
  };
  Write(kRootSlot, "f", 3, "xyz");
  EXPECT_EQ(WhyNot(),
            "the bytes that it had are not in the trace, and it could not be "
            "kept: File too large");
}

}  // namespace
}  // namespace tracefs::replay
