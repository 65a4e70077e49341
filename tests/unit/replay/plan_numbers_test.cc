// What single operations come to in a plan: each number in its action, who was
// first, what others did, and the tree in the end.
#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/replay/told_plan.h"
#include "tracefs/base/crc32c.h"

namespace tracefs::replay {
namespace {

using namespace test;  // NOLINT: what this test is about
using testing::ElementsAre;
using testing::IsEmpty;

// --- Each number is where it belongs.

TEST(PlanNumbersTest, OfAnyOperation) {
  Event e = Looked("f", 5, 30, kFile, 77, 3);
  e.Set(Field::kUid, 11);
  e.Set(Field::kGid, 12);
  e.Set(Field::kLatency, 1300);
  const Planned planned = Plan({{Create("g", 6, 10)}, {e}});
  const Action& a = planned.whole[1];
  EXPECT_EQ(a.sequence, 2u);
  EXPECT_EQ(a.begin_ns, 20'000u) << "since the first";
  EXPECT_EQ(a.duration_ns, 1300u);
  EXPECT_EQ(a.uid, 11u);
  EXPECT_EQ(a.gid, 12u);
  EXPECT_TRUE(a.Has(kHasStat));
  EXPECT_EQ(a.stat_mode, kFile);
  EXPECT_EQ(a.stat_size, 77u);
  EXPECT_EQ(a.stat_nlink, 3u);
  EXPECT_EQ(planned.header.span_ns, 21'300u);
  EXPECT_EQ(planned.header.operations, 2u);
  EXPECT_EQ(planned.header.lanes, 1u);
  const Planned failed = Plan({{Failed(Named(Op::lookup_, "f", 0, 0), EIO)}});
  EXPECT_EQ(failed.whole[0].error, uint32_t{EIO});
  EXPECT_EQ(failed.whole[0].result, -1);
  EXPECT_FALSE(failed.whole[0].Has(kHasStat));
}

TEST(PlanNumbersTest, OfWhatIsMade) {
  Event e = Named(Op::mknod_, "n", 5, 0);
  e.Set(Field::kArgMode, S_IFIFO | 0666);
  e.Set(Field::kUmask, 022);
  e.Set(Field::kRdev, 99);
  const Planned made = Plan({{e}});
  EXPECT_EQ(made.whole[0].mode, S_IFIFO | 0666u);
  EXPECT_EQ(made.whole[0].umask, 022u);
  EXPECT_EQ(made.whole[0].rdev, 99u);
  EXPECT_EQ(Planned::Named(made.final, "n").mode, S_IFIFO | 0644u);
  e.Set(Field::kArgMode, 0600);  // of no type: a file
  EXPECT_EQ(Planned::Named(Plan({{e}}).final, "n").mode, S_IFREG | 0600u);
  Event folder = Named(Op::mkdir_, "d", 6, 0);
  folder.Set(Field::kArgMode, 0777);
  folder.Set(Field::kUmask, 027);
  Event link = Named(Op::symlink_, "l", 7, 5);
  link.Set(Field::kParentInode, 6);
  link.target = "where";
  Event open = Create("f", 8, 10);
  open.Set(Field::kParentInode, 6);
  open.Set(Field::kFlags, O_WRONLY | O_APPEND);
  const Planned planned = Plan({{folder}, {link}, {open}});
  const Action& in = planned.whole[1];
  EXPECT_EQ(in.dir, planned.whole[0].made_dir);
  EXPECT_EQ(in.text, "where");
  EXPECT_EQ(planned.whole[2].arg_flags, uint32_t{O_WRONLY | O_APPEND});
  EXPECT_NE(planned.whole[2].handle, kNoSlot);
  EXPECT_EQ(planned.header.made_entries, 3u);
  EXPECT_EQ(Planned::Named(planned.final, "d").mode, S_IFDIR | 0750u);
  EXPECT_TRUE(Planned::Named(planned.final, "d").Knows(TreeEntry::kComplete));
  EXPECT_EQ(Planned::Named(planned.final, "d/l").size, 5u);
  EXPECT_FALSE(
      Planned::Named(planned.final, "d/f").Knows(TreeEntry::kComplete));
  Event unnamed = Named(Op::tmpfile_, "", 9, 0);
  unnamed.Set(Field::kArgMode, S_IFREG | 0600);
  unnamed.Set(Field::kFh, 3);
  const Planned tmp = Plan({{unnamed}});
  EXPECT_EQ(tmp.whole[0].place, Place::kDir);
  EXPECT_EQ(tmp.whole[0].dir, kRootSlot);
  EXPECT_THAT(tmp.final, IsEmpty());
}

TEST(PlanNumbersTest, OfNewAttributes) {
  Event e = Of(Op::setattr_, 5, 10);
  e.Set(Field::kValid, FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_SIZE |
                           FATTR_ATIME | FATTR_MTIME);
  e.Set(Field::kArgMode, 0604);
  e.Set(Field::kNewUid, 21);
  e.Set(Field::kNewGid, 22);
  e.Set(Field::kNewSize, 23);
  e.Set(Field::kNewAtime, 24);
  e.Set(Field::kNewMtime, 25);
  Planned planned = Plan({{Create("f", 5, 0)}, {e}});
  const Action a = planned.Of(Op::setattr_);
  EXPECT_EQ(a.place, Place::kName);
  EXPECT_EQ(a.valid, e.Get(Field::kValid));
  EXPECT_EQ(a.mode, 0604u);
  EXPECT_EQ(a.new_uid, 21u);
  EXPECT_EQ(a.new_gid, 22u);
  EXPECT_EQ(a.new_size, 23u);
  EXPECT_EQ(a.new_atime_ns, 24);
  EXPECT_EQ(a.new_mtime_ns, 25);
  const TreeEntry f = Planned::Named(planned.final, "f");
  EXPECT_EQ(f.mode, S_IFREG | 0604u);
  EXPECT_EQ(f.uid, 21u);
  EXPECT_EQ(f.gid, 22u);
  EXPECT_EQ(f.size, 23u);
  // Through the open file, where it names one and a size.
  e.Set(Field::kFh, 5);
  planned = Plan({{Create("f", 5, 0)}, {e}});
  EXPECT_EQ(planned.Of(Op::setattr_).place, Place::kHandle);
  EXPECT_EQ(planned.Of(Op::setattr_).handle, planned.Of(Op::create_).handle);
  e.Set(Field::kValid, FATTR_UID);
  planned = Plan({{Create("f", 5, 0)}, {e}});
  EXPECT_EQ(planned.Of(Op::setattr_).place, Place::kName);
  EXPECT_EQ(Planned::Named(planned.final, "f").uid, 21u);
  EXPECT_EQ(Planned::Named(planned.final, "f").gid, 0u);
  EXPECT_EQ(Planned::Named(planned.final, "f").mode, kFile);
  // What failed has changed nothing.
  planned = Plan({{Create("f", 5, 0)}, {Failed(e, EPERM)}});
  EXPECT_EQ(Planned::Named(planned.final, "f").uid, 0u);
}

TEST(PlanNumbersTest, OfWhatGoesThroughAnOpenFile) {
  Event lock = Of(Op::setlk_, 5, 10);
  lock.Set(Field::kFh, 5);
  lock.Set(Field::kOffset, 31);
  lock.Set(Field::kLength, 32);
  lock.Set(Field::kFlags, 0);
  lock.Set(Field::kLockType, F_RDLCK);
  lock.Set(Field::kLockOwner, 34);
  Event write = Write(5, 20, "bytes");
  write.Set(Field::kOffset, 41);
  const Planned planned = Plan({{Create("f", 5, 0)}, {lock}, {write}});
  const uint32_t handle = planned.whole[0].handle;
  const Action& a = planned.Of(Op::setlk_);
  EXPECT_EQ(a.place, Place::kHandle);
  EXPECT_EQ(a.handle, handle);
  EXPECT_EQ(a.offset, 31u);
  EXPECT_EQ(a.length, 32u);
  EXPECT_EQ(a.lock_type, uint32_t{F_RDLCK});
  EXPECT_EQ(a.lock_owner, 34u);
  const Action& w = planned.Of(Op::write_);
  EXPECT_EQ(w.offset, 41u);
  EXPECT_EQ(w.length, 5u);
  EXPECT_EQ(w.result, 5);
  EXPECT_EQ(w.hash, Crc32c(AsBytes("bytes")));
  EXPECT_TRUE(w.Has(kHasHash));
  EXPECT_EQ(AsText(w.data), "bytes");
  EXPECT_EQ(Planned::Named(planned.final, "f").size, 46u);
  EXPECT_EQ(planned.header.written_bytes, 5u);
  BuilderOptions lean;
  lean.keep_data = false;
  const Planned without = Plan({{Create("f", 5, 0)}, {write}}, lean);
  EXPECT_FALSE(without.Of(Op::write_).Has(kHasData));
  EXPECT_EQ(without.Of(Op::write_).hash, w.hash);
  // A checksum that contradicts the bytes: they are none, it is.
  write.Set(Field::kDataChecksum, 1);
  const Planned other = Plan({{Create("f", 5, 0)}, {write}});
  EXPECT_FALSE(other.Of(Op::write_).Has(kHasData));
  EXPECT_EQ(other.Of(Op::write_).hash, 1u);
  // A write that was cut short has the bytes that were written.
  write.present &= ~Bit(Field::kDataChecksum);
  write.SetResult(3, 0);
  const Planned part = Plan({{Create("f", 5, 0)}, {write}});
  EXPECT_EQ(AsText(part.Of(Op::write_).data), "byt");
  EXPECT_EQ(Planned::Named(part.final, "f").size, 44u);
}

TEST(PlanNumbersTest, OfCopies) {
  Event copy = Of(Op::copy_file_range_, 5, 20);
  copy.Set(Field::kFh, 5);
  copy.Set(Field::kInodeOut, 6);
  copy.Set(Field::kFhOut, 6);
  copy.Set(Field::kOffset, 1);
  copy.Set(Field::kOffsetOut, 7);
  copy.Set(Field::kLength, 100);
  copy.SetResult(2, 0);
  copy.data = AsBytes("bc");
  const std::vector<Told> two = {
      {Create("f", 5, 0)}, {Create("g", 6, 5)}, {Write(5, 10, "abc")}};
  std::vector<Told> told = two;
  told.push_back({copy});
  const Planned planned = Plan(told);
  const Action& a = planned.Of(Op::copy_file_range_);
  EXPECT_EQ(a.handle, planned.whole[0].handle);
  EXPECT_EQ(a.handle_out, planned.whole[1].handle);
  EXPECT_EQ(a.offset, 1u);
  EXPECT_EQ(a.offset_out, 7u);
  EXPECT_EQ(a.length, 100u);
  EXPECT_EQ(a.hash, Crc32c(AsBytes("bc")));
  EXPECT_EQ(a.file, planned.whole[0].file);
  EXPECT_EQ(a.file_out, planned.whole[1].file);
  EXPECT_FALSE(a.Has(kInitialData));
  EXPECT_EQ(Planned::Named(planned.final, "g").size, 9u);
  EXPECT_EQ(planned.header.written_bytes, 5u);
  EXPECT_TRUE(Planned::Named(planned.final, "g").Knows(TreeEntry::kAllBytes));
  // Without the other's number it is known by its handle.
  told.back().event.present &= ~Bit(Field::kInodeOut);
  EXPECT_EQ(Plan(told).Of(Op::copy_file_range_).file_out,
            planned.whole[1].file);
  told.back().event.Set(Field::kFhOut, 77);
  EXPECT_EQ(Plan(told).lacks.unplaced_changes, 1u) << "nobody knows where to";
}

TEST(PlanNumbersTest, OfExtendedAttributes) {
  Event e = Of(Op::setxattr_, 5, 10);
  e.xattr_name = "user.a b'\"";
  e.data = AsBytes("1");
  e.Set(Field::kLength, 1);
  e.Set(Field::kFlags, 2);
  const Planned planned = Plan({{Create("f", 5, 0)}, {e}});
  const Action& a = planned.Of(Op::setxattr_);
  EXPECT_EQ(a.text, "user.a b'\"");
  EXPECT_EQ(AsText(a.data), "1");
  EXPECT_TRUE(a.Has(kHasData));
  EXPECT_EQ(a.arg_flags, 2u);
  EXPECT_EQ(a.length, 1u);
  EXPECT_EQ(Planned::Named(planned.final, "f").mode, kFile)
      << "only an ACL changes it";
  Event open = Of(Op::open_, 5, 12);
  open.Set(Field::kFlags, O_RDONLY);
  open.Set(Field::kFh, 9);
  Event seek = Of(Op::lseek_, 5, 15);
  seek.Set(Field::kFh, 9);
  seek.Set(Field::kOffset, 3);
  seek.Set(Field::kFlags, SEEK_HOLE);
  const Planned through = Plan({{Create("f", 5, 0)}, {open}, {seek}});
  EXPECT_EQ(through.Of(Op::lseek_).handle, through.Of(Op::open_).handle);
  EXPECT_EQ(through.Of(Op::lseek_).offset, 3u);
  EXPECT_EQ(through.Of(Op::lseek_).arg_flags, uint32_t{SEEK_HOLE});
}

TEST(PlanNumbersTest, OfWhatIsMovedAndGone) {
  Event move = Moved("f", "g", 5, 10);
  move.Set(Field::kFlags, RENAME_NOREPLACE);
  Event link = Of(Op::link_, 5, 20);
  link.Set(Field::kNewParentInode, kRootInode);
  link.new_name = "h";
  const Planned planned = Plan(
      {{Create("f", 5, 0)}, {move}, {link}, {Named(Op::unlink_, "g", 5, 30)}});
  const Action& a = planned.Of(Op::rename_);
  EXPECT_EQ(a.name, "f");
  EXPECT_EQ(a.new_name, "g");
  EXPECT_EQ(a.new_dir, kRootSlot);
  EXPECT_EQ(a.arg_flags, uint32_t{RENAME_NOREPLACE});
  EXPECT_EQ(a.file, planned.whole[0].file);
  EXPECT_EQ(a.file_out, kNoFile);
  EXPECT_EQ(planned.Of(Op::link_).name, "g") << "it is known by that by now";
  EXPECT_EQ(planned.Of(Op::link_).new_name, "h");
  EXPECT_EQ(planned.Of(Op::link_).file, planned.whole[0].file);
  ASSERT_EQ(planned.final.size(), 1u);
  EXPECT_EQ(planned.final[0].name, "h");
  // What failed has moved nothing.
  const Planned failed =
      Plan({{Create("f", 5, 0)},
            {Failed(Moved("f", "g", 5, 10), EACCES)},
            {Failed(link, EEXIST)},
            {Failed(Named(Op::unlink_, "f", 5, 30), EACCES)}});
  EXPECT_EQ(failed.whole.size(), 4u);
  ASSERT_EQ(failed.final.size(), 1u);
  EXPECT_EQ(failed.final[0].name, "f");
}

TEST(PlanNumbersTest, OfFoldersThatAreOpen) {
  Event folder = Named(Op::mkdir_, "d", 6, 0);
  folder.Set(Field::kArgMode, 0755);
  Event open = Of(Op::opendir_, 6, 10);
  open.Set(Field::kFh, 7);
  Event list = Of(Op::readdir_, 6, 20);
  list.Set(Field::kFh, 7);
  list.Set(Field::kOffset, 3);
  Event close = Of(Op::releasedir_, 6, 40);
  close.Set(Field::kFh, 7);
  const Event remove = Named(Op::rmdir_, "d", 6, 30);
  Planned planned = Plan({{folder}, {open}, {list}, {remove}, {close}});
  EXPECT_EQ(planned.Of(Op::readdir_).place, Place::kHandle);
  EXPECT_EQ(planned.Of(Op::readdir_).handle, planned.Of(Op::opendir_).handle);
  EXPECT_EQ(planned.Of(Op::readdir_).offset, 3u);
  EXPECT_EQ(planned.Of(Op::rmdir_).made_dir, kNoSlot)
      << "it is still used through what is open";
  EXPECT_EQ(planned.Of(Op::releasedir_).handle,
            planned.Of(Op::opendir_).handle);
  planned = Plan({{folder}, {open}, {close}, {Named(Op::rmdir_, "d", 6, 50)}});
  EXPECT_EQ(planned.Of(Op::rmdir_).made_dir, planned.Of(Op::mkdir_).made_dir);
  // Slots that are free are used again.
  Event second = Named(Op::mkdir_, "e", 8, 60);
  second.Set(Field::kArgMode, 0755);
  planned = Plan({{folder}, {Named(Op::rmdir_, "d", 6, 50)}, {second}});
  EXPECT_EQ(planned.whole[2].made_dir, planned.whole[0].made_dir);
  EXPECT_EQ(planned.header.dir_slots, 2u);
}

TEST(PlanNumbersTest, HandlesAreUsedAgain) {
  const auto close = [](uint64_t inode, uint64_t at) {
    Event e = Of(Op::release_, inode, at);
    e.Set(Field::kFh, inode);
    return e;
  };
  const Planned planned = Plan({{Create("f", 5, 0)},
                                {close(5, 10)},
                                {Create("g", 6, 20)},
                                {Create("h", 7, 30)},
                                {close(7, 40)},
                                {close(7, 50)}});
  EXPECT_EQ(planned.whole[2].handle, planned.whole[0].handle);
  EXPECT_NE(planned.whole[3].handle, planned.whole[2].handle);
  EXPECT_EQ(planned.header.handle_slots, 2u);
  EXPECT_EQ(planned.whole.size(), 5u) << "what is closed is not closed again";
  // One of two that are open is closed: the file is reached by the other.
  Event again = Of(Op::open_, 5, 10);
  again.Set(Field::kFlags, O_RDWR);
  again.Set(Field::kFh, 9);
  Event chmod = Of(Op::setattr_, 5, 40);
  chmod.Set(Field::kValid, FATTR_MODE);
  const Planned two = Plan({{Create("f", 5, 0)},
                            {again},
                            {Named(Op::unlink_, "f", 5, 20)},
                            {close(5, 30)},
                            {chmod}});
  EXPECT_EQ(two.Of(Op::setattr_).handle, two.Of(Op::open_).handle);
}

// --- What others do, or the kernel by itself.

TEST(PlanClosureTest, WhatOthersTriedInVainIsNotDone) {
  Event chmod = Of(Op::setattr_, 5, 10);
  chmod.Set(Field::kValid, FATTR_MODE);
  chmod.Set(Field::kArgMode, 0600);
  Event link = Of(Op::link_, 5, 20);
  link.Set(Field::kNewParentInode, kRootInode);
  link.new_name = "h";
  Event xattr = Of(Op::setxattr_, 5, 25);
  xattr.xattr_name = "user.a";
  xattr.data = AsBytes("1");
  const std::vector<Event> all = {chmod, link, Moved("f", "g", 5, 30), xattr,
                                  Named(Op::unlink_, "f", 5, 40)};
  for (const Event& e : all) {
    const auto of_others = [&](const Event& event, Closure closure) {
      BuilderOptions options;
      options.closure = closure;
      return Plan({{Create("f", 5, 0)}, {event, false}}, options)
          .actions.size();
    };
    EXPECT_EQ(of_others(e, Closure::kInit), 2u) << OpName(e.op);
    EXPECT_EQ(of_others(e, Closure::kInclude), 2u);
    EXPECT_EQ(of_others(e, Closure::kNone), 1u);
    for (const Closure closure :
         {Closure::kInit, Closure::kInclude, Closure::kNone}) {
      EXPECT_EQ(of_others(Failed(e, EPERM), closure), 1u) << OpName(e.op);
    }
    EXPECT_EQ(Plan({{Create("f", 5, 0)}, {Failed(e, EPERM)}}).actions.size(),
              2u);
  }
}

TEST(PlanClosureTest, WhatOthersMakeInAFolderOfThePlanCannotBeThereBefore) {
  Event folder = Named(Op::mkdir_, "d", 6, 0);
  folder.Set(Field::kArgMode, 0777);
  Event in = Create("f", 5, 10);
  in.Set(Field::kParentInode, 6);
  EXPECT_THAT(Plan({{folder}, {in, false}}).actions,
              ElementsAre("mkdir d", "create f, not selected"));
  const Event there = Looked("d", 6, 0, kFolder);
  EXPECT_THAT(Plan({{there}, {in, false}}).actions, ElementsAre("lookup d"));
  BuilderOptions none;
  none.closure = Closure::kNone;
  EXPECT_THAT(Plan({{folder}, {in, false}}, none).actions,
              ElementsAre("mkdir d"));
}

// --- Who was first, and what ran at once.

TEST(PlanOrderTest, WhoWaitedForALockGotItAfterItWasLeft) {
  const auto lock = [](uint64_t at, uint64_t for_us, uint32_t type,
                       uint64_t owner, uint64_t waits, Op op = Op::setlk_) {
    Event e = Whole(op, at, for_us);
    e.Set(Field::kInode, 5);
    e.Set(Field::kFh, 5);
    e.Set(Field::kFlags, waits);
    e.Set(Field::kLockType, type);
    e.Set(Field::kLockOwner, owner);
    return e;
  };
  const auto owners = [&](const std::vector<Event>& events) {
    std::vector<Told> told = {{Create("f", 5, 0)}};
    for (const Event& e : events) told.push_back({e});
    std::vector<uint64_t> found;
    for (const Action& a : Plan(told).whole) {
      if (a.op != Op::create_) found.push_back(a.lock_owner);
    }
    return found;
  };
  for (const Op op : {Op::setlk_, Op::flock_}) {
    EXPECT_THAT(owners({lock(10, 1, F_WRLCK, 1, 1, op),
                        lock(20, 100, F_WRLCK, 2, 1, op),
                        lock(50, 1, F_UNLCK, 1, 1, op)}),
                ElementsAre(1, 1, 2));
    // One that does not wait, or only leaves it, is done in its turn.
    EXPECT_THAT(owners({lock(20, 100, F_WRLCK, 2, 0, op),
                        lock(50, 1, F_UNLCK, 1, 1, op)}),
                ElementsAre(2, 1));
    EXPECT_THAT(owners({lock(20, 100, F_UNLCK, 2, 1, op),
                        lock(50, 1, F_UNLCK, 1, 1, op)}),
                ElementsAre(2, 1));
  }
}

TEST(PlanOrderTest, WhatWasBeingChangedIsMarked) {
  Event write = Write(5, 10, "abc");
  write.Set(Field::kLatency, 50'000);
  const auto flags = [&](const Event& e) {
    return Plan({{Create("f", 5, 0)}, {write}, {e}}).whole.back().flags;
  };
  for (const uint64_t at : {59, 60}) {
    const bool at_once = at < 60;
    EXPECT_EQ((flags(Read(5, at, "abc")) & kRacing) != 0, at_once);
    EXPECT_EQ((flags(Looked("f", 5, at, kFile)) & kSizeRaces) != 0, at_once);
    Event stat = Of(Op::getattr_, 5, at);
    EXPECT_EQ((flags(stat) & kSizeRaces) != 0, at_once);
  }
}

TEST(PlanRepeatTest, LooksAtWhatHasNotChangedAreRepeated) {
  const auto repeated = [](const std::vector<Told>& told) {
    return Plan(told).whole.back().Has(kRepeated);
  };
  const Event look = Looked("f", 5, 10, kFile, 3);
  const Event again = Looked("f", 5, 50, kFile, 3);
  Event stat = Of(Op::getattr_, 5, 50);
  stat.Set(Field::kMode, kFile);
  stat.Set(Field::kSize, 3);
  EXPECT_FALSE(repeated({{look}}));
  EXPECT_TRUE(repeated({{look}, {again}}));
  EXPECT_TRUE(repeated({{look}, {stat}}));
  EXPECT_FALSE(repeated({{look}, {Looked("another", 5, 50, kFile, 3)}}));
  EXPECT_FALSE(repeated({{look}, {Looked("f", 5, 50, kFile, 4)}}));
  EXPECT_FALSE(repeated({{look}, {Looked("f", 5, 50, S_IFREG | 0600, 3)}}));
  EXPECT_FALSE(repeated({{look}, {Named(Op::lookup_, "f", 5, 50)}}))
      << "nothing is told of it";
  // The size of a folder is its file system's.
  EXPECT_TRUE(repeated(
      {{Looked("d", 6, 10, kFolder, 3)}, {Looked("d", 6, 50, kFolder, 4)}}));
  Event chmod = Of(Op::setattr_, 5, 20);
  chmod.Set(Field::kValid, FATTR_MTIME);
  Event open = Of(Op::open_, 5, 20);
  open.Set(Field::kFlags, O_RDWR | O_TRUNC);
  open.Set(Field::kFh, 7);
  Event xattr = Of(Op::setxattr_, 5, 20);
  xattr.xattr_name = "user.a";
  xattr.data = AsBytes("1");
  Event link = Of(Op::link_, 5, 20);
  link.Set(Field::kNewParentInode, kRootInode);
  link.new_name = "h";
  for (const Event& change :
       {chmod, xattr, link, Write(5, 20, ""), Moved("f", "g", 5, 20)}) {
    Event later = again;
    if (change.op == Op::rename_) later.name = "g";
    EXPECT_FALSE(repeated({{look}, {change}, {later}})) << OpName(change.op);
  }
  EXPECT_FALSE(repeated({{look}, {open}, {Looked("f", 5, 50, kFile, 0)}}));
  Event failed = Failed(chmod, EPERM);
  EXPECT_TRUE(repeated({{look}, {failed}, {again}}));
}

// --- Files that are known in some other way.

TEST(PlanNamesTest, WhatHasNoNameIsReachedThroughWhatIsOpen) {
  Event chmod = Of(Op::setattr_, 5, 30);
  chmod.Set(Field::kValid, FATTR_MODE);
  chmod.Set(Field::kArgMode, 0600);
  const Planned planned =
      Plan({{Create("f", 5, 0)}, {Named(Op::unlink_, "f", 5, 10)}, {chmod}});
  EXPECT_EQ(planned.Of(Op::setattr_).place, Place::kHandle);
  EXPECT_EQ(planned.Of(Op::setattr_).handle, planned.whole[0].handle);
  EXPECT_THAT(planned.final, IsEmpty());
  // Once that is closed it is gone.
  Event close = Of(Op::release_, 5, 20);
  close.Set(Field::kFh, 5);
  const Planned gone = Plan({{Create("f", 5, 0)},
                             {Named(Op::unlink_, "f", 5, 10)},
                             {close},
                             {chmod}});
  EXPECT_EQ(gone.lacks.unplaced, 1u);
  EXPECT_EQ(gone.lacks.unplaced_changes, 0u) << "its fate is in no tree";
}

TEST(PlanNamesTest, ANameThatMeansAnotherFileIsSaid) {
  const std::vector<Told> told = {{Create("f", 5, 0)},
                                  {Named(Op::unlink_, "f", 6, 10)}};
  const Planned planned = Plan(told);
  EXPECT_EQ(planned.lacks.unseen_changes, 1u);
  EXPECT_EQ(planned.header.unplaced_changes, 1u);
  EXPECT_EQ(Plan({{Create("f", 5, 0)}, {Looked("f", 6, 10, kFile)}})
                .lacks.unseen_changes,
            0u)
      << "a look shows it, and changes nothing";
}

TEST(PlanNamesTest, FurtherNamesAreInTheTreeBefore) {
  const Planned planned = Plan(
      {{Looked("f", 5, 0, kFile, 3, 2)}, {Looked("g", 5, 9, kFile, 3, 2)}});
  ASSERT_EQ(planned.initial.size(), 2u);
  EXPECT_EQ(planned.initial[1].name, "g");
  EXPECT_EQ(planned.initial[1].other_name, "f");
  EXPECT_EQ(planned.initial[1].other_parent, kRootSlot);
  EXPECT_EQ(planned.initial[1].file, planned.initial[0].file);
  EXPECT_EQ(planned.header.initial_entries, 2u);
  EXPECT_TRUE(planned.whole[0].Has(kUnknownNames)) << "one is not told yet";
  EXPECT_FALSE(planned.whole[1].Has(kUnknownNames));
  // Both are known before one of them is needed.
  const Planned later = Plan({{Looked("f", 5, 0, kFile, 3, 2), false},
                              {Looked("g", 5, 5, kFile, 3, 2), false},
                              {Of(Op::getattr_, 5, 10)}});
  EXPECT_EQ(later.initial.size(), 2u);
  EXPECT_EQ(later.header.initial_entries, 2u);
}

TEST(PlanNamesTest, AFolderHasOneName) {
  const Planned planned =
      Plan({{Looked("d", 6, 0, kFolder)}, {Looked("e", 6, 5, kFolder)}});
  std::vector<std::string> names;
  for (const TreeEntry& entry : planned.final) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("e"));
}

TEST(PlanLacksTest, WithoutNumbersOrPathsNobodyKnowsTheFile) {
  Event look = Named(Op::lookup_, "f", 5, 0);
  look.present &= ~Bit(Field::kParentInode);
  Event stat = Whole(Op::getattr_, 5);
  for (const Event& e : {look, stat}) {
    const Planned planned = Plan({{e}});
    EXPECT_EQ(planned.lacks.without_inode, 1u);
    EXPECT_EQ(planned.lacks.without_path, 1u);
  }
  const Planned known = Plan({{Looked("f", 5, 0, kFile)}});
  EXPECT_EQ(known.lacks.without_inode, 0u);
  EXPECT_EQ(known.lacks.without_path, 0u);
}

}  // namespace
}  // namespace tracefs::replay
