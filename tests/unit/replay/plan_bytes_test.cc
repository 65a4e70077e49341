// What a plan knows of files by what a trace tells besides operations, of which
// bytes it has what they held, and what it takes to undo.
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

// --- States.

FileState StateOf(uint64_t inode, mode_t mode) {
  FileState state;
  state.st.st_ino = inode;
  state.st.st_mode = mode;
  state.st.st_nlink = 1;
  return state;
}

TEST(PlanStateTest, WhatAFileWasIsInTheTreeBefore) {
  FileState file = StateOf(5, kFile);
  file.xattrs = {{"user.a", "1"}, {"user.'\" ", std::string(300, 'x')}};
  file.checksum = 0x1234;
  FileState link = StateOf(6, S_IFLNK | 0777);
  link.target = "to there";
  FileState node = StateOf(7, S_IFCHR | 0600);
  node.st.st_rdev = 0x103;
  FileState part = StateOf(8, kFile);
  part.incomplete = true;
  FileState late = StateOf(9, kFile);
  late.checksum = 1;
  const Planned planned =
      Plan({{Looked("f", 5, 0, kFile)},
            {Looked("l", 6, 5, S_IFLNK | 0777)},
            {Looked("n", 7, 10, S_IFCHR | 0600)},
            {Looked("p", 8, 15, kFile)},
            {Looked("late", 9, 20, kFile)},
            {Looked("untold", 10, 25, kFile)}},
           {}, [&](TraceBuilder& trace) {
             for (const FileState& state : {file, link, node, part}) {
               TellState(trace, state);
             }
             TellState(trace, late, {}, true);
           });
  const TreeEntry& f = Planned::Named(planned.initial, "f");
  EXPECT_TRUE(f.Knows(TreeEntry::kChecksum));
  EXPECT_EQ(f.checksum, 0x1234u);
  EXPECT_THAT(f.xattrs, testing::HasSubstr("user.'\" "));
  EXPECT_EQ(Planned::Named(planned.initial, "l").target, "to there");
  EXPECT_EQ(Planned::Named(planned.initial, "n").rdev, 0x103u);
  EXPECT_FALSE(
      Planned::Named(planned.initial, "late").Knows(TreeEntry::kChecksum));
  EXPECT_EQ(planned.lacks.entries_before, 6u);
  EXPECT_EQ(planned.lacks.entries_known, 4u);
  EXPECT_EQ(planned.lacks.states_late, 1u);
  EXPECT_EQ(planned.lacks.states_incomplete, 1u);
  EXPECT_EQ(planned.lacks.final_states, 0u);
}

TEST(PlanStateTest, HolesAreBytesThatAreKnown) {
  const auto unknown = [](std::vector<FileState::Range> data) {
    FileState state = StateOf(5, kFile);
    state.st.st_size = 30;
    state.data = std::move(data);
    return Plan({{Looked("f", 5, 0, kFile, 30)}}, {},
                [&](TraceBuilder& trace) { TellState(trace, state); })
        .header.unknown_content;
  };
  EXPECT_EQ(unknown({}), 0u) << "nothing but a hole";
  EXPECT_EQ(unknown({{.offset = 30, .length = 0}}), 0u);
  EXPECT_EQ(unknown({{.offset = 0, .length = 10}}), 1u);
  EXPECT_EQ(unknown({{.offset = 29, .length = 1}}), 1u);
  // What was read is known, too: here all but the hole.
  FileState state = StateOf(5, kFile);
  state.st.st_size = 30;
  state.data = {{.offset = 4, .length = 6}, {.offset = 20, .length = 2}};
  Event open = Of(Op::open_, 5, 5);
  open.Set(Field::kFlags, O_RDONLY);
  open.Set(Field::kFh, 5);
  Event one = Read(5, 10, "abcdef");
  one.Set(Field::kOffset, 4);
  Event two = Read(5, 15, "gh");
  two.Set(Field::kOffset, 20);
  const auto with = [&](const std::vector<Told>& reads) {
    std::vector<Told> told = {{Looked("f", 5, 0, kFile, 30)}, {open}};
    told.insert(told.end(), reads.begin(), reads.end());
    return Plan(told, {},
                [&](TraceBuilder& trace) { TellState(trace, state); });
  };
  EXPECT_EQ(with({{one}}).header.unknown_content, 1u);
  const Planned planned = with({{one}, {two}});
  EXPECT_EQ(planned.header.unknown_content, 0u);
  ASSERT_EQ(planned.data.size(), 2u);
  EXPECT_EQ(planned.data[1].offset, 20u);
  EXPECT_EQ(AsText(planned.data[1].bytes), "gh");
}

TEST(PlanStateTest, WhatAFileWasInTheEndCountsMore) {
  FileState file = StateOf(5, S_IFREG | 0600);
  file.st.st_uid = 2;
  file.st.st_gid = 3;
  file.st.st_size = 44;
  file.st.st_mtim = {.tv_sec = 6, .tv_nsec = 7};
  file.checksum = 0x55;
  FileState link = StateOf(6, S_IFLNK | 0777);
  link.target = "to";
  FileState two_names = StateOf(7, kFile);
  two_names.st.st_nlink = 2;
  two_names.checksum = 0x77;
  FileState folder = StateOf(8, kFolder);
  folder.st.st_nlink = 3;
  const Planned planned =
      Plan({{Looked("g", 7, 0, kFile, 1, 2)}}, {}, [&](TraceBuilder& trace) {
        TellState(trace, file, "/d/f");
        TellState(trace, link, "/l");
        TellState(trace, two_names, "/g");
        TellState(trace, folder, "/d");
        TellState(trace, file, "/");
        TellState(trace, file, "x");
        TellState(trace, file, "/../out");
      });
  EXPECT_EQ(planned.lacks.final_states, 5u) << "the root is not said anew";
  const TreeEntry& f = Planned::Named(planned.final, "d/f");
  EXPECT_EQ(f.mode, S_IFREG | 0600u);
  EXPECT_EQ(f.uid, 2u);
  EXPECT_EQ(f.gid, 3u);
  EXPECT_EQ(f.size, 44u);
  EXPECT_EQ(f.mtime_ns, 6'000'000'007);
  EXPECT_EQ(f.checksum, 0x55u);
  for (const auto bit :
       {TreeEntry::kRecorded, TreeEntry::kMode, TreeEntry::kOwner,
        TreeEntry::kSize, TreeEntry::kMtime, TreeEntry::kChecksum}) {
    EXPECT_TRUE(f.Knows(bit)) << bit;
  }
  EXPECT_FALSE(f.Knows(TreeEntry::kTarget));
  EXPECT_EQ(Planned::Named(planned.final, "l").target, "to");
  EXPECT_TRUE(Planned::Named(planned.final, "l").Knows(TreeEntry::kTarget));
  EXPECT_TRUE(Planned::Named(planned.final, "d").Knows(TreeEntry::kRecorded));
  // If it has other names, only its contents are known.
  const TreeEntry& g = Planned::Named(planned.final, "g");
  EXPECT_FALSE(g.Knows(TreeEntry::kRecorded));
  EXPECT_EQ(g.checksum, 0x77u);
  for (const TreeEntry& entry : planned.final) {
    EXPECT_EQ(entry.name.find(".."), entry.name.npos);
  }
}

TEST(PlanStateTest, WhatWasOpenIsOpenedFirst) {
  OpenFile open;
  open.fh = 9;
  open.flags = O_WRONLY | O_APPEND;
  open.path = "/f";
  open.state = StateOf(5, S_IFREG | 0640);
  open.state.st.st_size = 3;
  Event write = Write(5, 10, "xyz");
  write.Set(Field::kFh, 9);
  Event close = Of(Op::release_, 5, 20);
  close.Set(Field::kFh, 9);
  const auto with = [&](const OpenFile& file) {
    return Plan({{write}, {close}}, {},
                [&](TraceBuilder& trace) { TellOpen(trace, file); });
  };
  Planned planned = with(open);
  EXPECT_THAT(planned.actions,
              ElementsAre("open f, made up", "write", "release"));
  EXPECT_EQ(planned.whole[0].arg_flags, uint32_t{O_WRONLY});
  EXPECT_EQ(planned.whole[0].begin_ns, 0u);
  EXPECT_EQ(planned.whole[1].handle, planned.whole[0].handle);
  EXPECT_EQ(planned.initial[0].mode, S_IFREG | 0640u);
  EXPECT_EQ(planned.lacks.handles_known, 1u);
  EXPECT_EQ(planned.lacks.handles_before, 0u);
  // A folder.
  open.path = "/d";
  open.state = StateOf(5, kFolder);
  EXPECT_EQ(with(open).whole[0].op, Op::opendir_);
  // One that had lost its name: it has one until it is open.
  open.path.clear();
  open.state = StateOf(5, S_IFREG | 0640);
  open.state.st.st_nlink = 0;
  open.state.st.st_size = 3;
  open.state.st.st_uid = 6;
  open.state.st.st_gid = 7;
  open.tid = 1;
  open.uid = 8;
  planned = with(open);
  ASSERT_EQ(planned.whole.size(), 4u);
  const TreeEntry& entry = planned.initial[0];
  EXPECT_TRUE(entry.Knows(TreeEntry::kNameless));
  EXPECT_EQ(entry.mode, S_IFREG | 0640u);
  EXPECT_EQ(entry.uid, 6u);
  EXPECT_EQ(entry.gid, 7u);
  EXPECT_EQ(entry.size, 3u);
  EXPECT_EQ(planned.whole[0].op, Op::open_);
  EXPECT_EQ(planned.whole[0].name, entry.name);
  EXPECT_EQ(planned.whole[0].arg_flags, uint32_t{O_RDWR});
  EXPECT_EQ(planned.whole[0].uid, 0u) << "whoever opened it";
  EXPECT_EQ(planned.whole[1].op, Op::unlink_);
  EXPECT_EQ(planned.whole[1].name, entry.name);
  EXPECT_EQ(planned.whole[2].handle, planned.whole[0].handle);
  EXPECT_EQ(planned.header.initial_entries, 1u);
  EXPECT_EQ(planned.header.initial_bytes, 3u);
  EXPECT_THAT(planned.final, IsEmpty());
  // A second handle of it is opened through the first.
  OpenFile second = open;
  second.fh = 10;
  const Planned both = Plan({{write}}, {}, [&](TraceBuilder& trace) {
    TellOpen(trace, open);
    TellOpen(trace, second);
    TellOpen(trace, second);  // once is enough
  });
  ASSERT_EQ(both.whole.size(), 4u);
  EXPECT_EQ(both.whole[2].place, Place::kHandle);
  EXPECT_EQ(both.whole[2].handle_out, both.whole[0].handle);
  // Without a handle, or a name and a number of names, there is nothing to do.
  open.fh = 0;
  EXPECT_EQ(with(open).lacks.handles_known, 0u);
  open.fh = 9;
  open.state.st.st_nlink = 1;
  EXPECT_EQ(with(open).lacks.handles_known, 0u);
}

// --- What it takes to undo.

TEST(PlanMarkTest, WhereWhatWasDestroyedIsKept) {
  Event unlink = Named(Op::unlink_, "f", 5, 10);
  unlink.Set(Field::kKept, 1);
  unlink.Set(Field::kKeptAt, 2);
  unlink.Set(Field::kKeptOffset, 3);
  unlink.Set(Field::kKeptLength, 4);
  unlink.Set(Field::kKeptChanged, 5);
  unlink.Set(Field::kKeptMtime, 6);
  unlink.Set(Field::kNotKept, 7);
  const auto undo = [&](const Event& e) {
    return Plan({{Create("f", 5, 0)}, {e, true, true}}).Of(Op::unlink_);
  };
  Action a = undo(unlink);
  EXPECT_TRUE(a.Has(kWasKept));
  EXPECT_FALSE(a.Has(kKeptCopy));
  EXPECT_TRUE(a.Has(kHasMtime));
  EXPECT_EQ(a.kept, 1u);
  EXPECT_EQ(a.kept_at, 2u);
  EXPECT_EQ(a.kept_offset, 3u);
  EXPECT_EQ(a.kept_length, 4u);
  EXPECT_EQ(a.kept_check, 5u);
  EXPECT_EQ(a.kept_mtime_ns, 6);
  EXPECT_EQ(a.not_kept, 7u);
  unlink.Set(Field::kKeptChecksum, 8);
  a = undo(unlink);
  EXPECT_TRUE(a.Has(kKeptCopy));
  EXPECT_EQ(a.kept_check, 8u);
  for (const Field field :
       {Field::kKeptAt, Field::kKeptOffset, Field::kKeptLength}) {
    Event e = unlink;
    e.Set(field, uint64_t{1} << 63);
    EXPECT_FALSE(undo(e).Has(kWasKept)) << "no file is that long";
    e.Set(field, INT64_MAX);
    EXPECT_TRUE(undo(e).Has(kWasKept));
  }
  Event none = unlink;
  none.present &= ~Bit(Field::kKeptLength) & ~Bit(Field::kKeptMtime);
  EXPECT_FALSE(undo(none).Has(kWasKept));
  EXPECT_FALSE(undo(none).Has(kHasMtime));
  EXPECT_FALSE(undo(Failed(unlink, EPERM)).Has(kWasKept));
}

TEST(PlanMarkTest, WhatStaysOfARemovedFileIsSaid) {
  Event link = Of(Op::link_, 5, 5);
  link.Set(Field::kNewParentInode, kRootInode);
  link.new_name = "other";
  const Event unlink = Named(Op::unlink_, "f", 5, 10);
  const Event over = Moved("g", "f", 6, 10);
  // All is known of a file that was made meanwhile.
  for (const Event& end : {unlink, over}) {
    const Planned planned = Plan(
        {{Create("f", 5, 0)}, {Create("g", 6, 2)}, {link}, {end, true, true}});
    const Action& a = planned.whole.back();
    EXPECT_EQ(a.text, "other");
    EXPECT_FALSE(a.Has(kUnknownAcl));
    EXPECT_FALSE(a.Has(kUnknownNames));
    EXPECT_FALSE(a.Has(kUnknownBytes));
    // The contents and the ACL of one that was there before are not known.
    const Planned there = Plan({{Looked("f", 5, 0, kFile, 3, 2)},
                                {Create("g", 6, 2)},
                                {end, true, true}});
    const Action& b = there.whole.back();
    EXPECT_EQ(b.text, "");
    EXPECT_TRUE(b.Has(kUnknownAcl));
    EXPECT_TRUE(b.Has(kUnknownNames));
    EXPECT_TRUE(b.Has(kUnknownBytes));
    // Nobody asks where it is not undone.
    const Planned kept =
        Plan({{Looked("f", 5, 0, kFile, 3, 2)}, {Create("g", 6, 2)}, {end}});
    EXPECT_FALSE(kept.whole.back().Has(kUnknownAcl));
    EXPECT_FALSE(kept.whole.back().Has(kUnknownBytes));
  }
  // An exchange destroys nothing.
  Event exchange = over;
  exchange.Set(Field::kFlags, RENAME_EXCHANGE);
  const Planned planned = Plan({{Looked("f", 5, 0, kFile, 3, 2)},
                                {Create("g", 6, 2)},
                                {exchange, true, true}});
  EXPECT_FALSE(planned.whole.back().Has(kUnknownBytes));
  EXPECT_FALSE(planned.whole.back().Has(kUnknownAcl));
  EXPECT_EQ(planned.whole.back().file_out, planned.whole.front().file);
  EXPECT_EQ(planned.final.size(), 2u);
}

// Which bytes of a file that was made meanwhile a replay makes up.
TEST(PlanBytesTest, WhatIsMadeUpEndsWhereItIsOverwritten) {
  const auto knows_all = [](const std::vector<Event>& events) {
    std::vector<Told> told = {{Create("f", 5, 0)}};
    for (const Event& e : events) told.push_back({e});
    const Planned planned = Plan(told);
    return Planned::Named(planned.final, "f").Knows(TreeEntry::kAllBytes);
  };
  const auto write = [](uint64_t at, uint64_t offset, size_t length,
                        bool recorded) {
    static const std::string text(100, 't');
    Event e = Write(5, at, std::string_view(text).substr(0, length));
    e.Set(Field::kOffset, offset);
    if (!recorded) e.data = {};
    return e;
  };
  const auto resize = [](uint64_t at, uint64_t size) {
    Event e = Of(Op::setattr_, 5, at);
    e.Set(Field::kValid, FATTR_SIZE);
    e.Set(Field::kNewSize, size);
    return e;
  };
  const auto allocate = [](uint64_t at, int how, uint64_t offset,
                           uint64_t length) {
    Event e = Of(Op::fallocate_, 5, at);
    e.Set(Field::kFh, 5);
    e.Set(Field::kFlags, static_cast<uint64_t>(how));
    e.Set(Field::kOffset, offset);
    e.Set(Field::kLength, length);
    return e;
  };
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  EXPECT_TRUE(knows_all({}));
  EXPECT_TRUE(knows_all({write(10, 5, 10, true)}));
  const Event hidden = write(10, 5, 10, false);
  EXPECT_FALSE(knows_all({hidden}));
  EXPECT_TRUE(knows_all({hidden, write(20, 5, 10, true)}));
  EXPECT_FALSE(knows_all({hidden, write(20, 6, 9, true)}));
  EXPECT_FALSE(knows_all({hidden, write(20, 5, 9, true)}));
  EXPECT_TRUE(knows_all({hidden, resize(20, 5)}));
  EXPECT_FALSE(knows_all({hidden, resize(20, 6)}));
  EXPECT_TRUE(knows_all({hidden, resize(20, 5), resize(30, 50)}))
      << "what comes after a cut are zeros";
  EXPECT_TRUE(knows_all({hidden, allocate(20, kPunch, 5, 10)}));
  EXPECT_FALSE(knows_all({hidden, allocate(20, kPunch, 5, 9)}));
  EXPECT_TRUE(knows_all({hidden, allocate(20, FALLOC_FL_ZERO_RANGE, 0, 100)}));
  EXPECT_FALSE(knows_all({hidden, allocate(20, 0, 0, 100)}));
  // Where bytes are moved it is not followed which are made up.
  for (const int moves : {FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE}) {
    const Event far = write(15, 9000, 10, true);
    const Event move = allocate(20, moves, 0, 4096);
    EXPECT_FALSE(knows_all({hidden, far, move}));
    EXPECT_TRUE(knows_all({write(10, 5, 10, true), far, move}));
    EXPECT_TRUE(knows_all({hidden, far, move, resize(30, 0)}));
  }
}

TEST(PlanBytesTest, SizesFollowWhatWasDone) {
  const auto size = [](int how, uint64_t offset, uint64_t length) {
    Event e = Of(Op::fallocate_, 5, 20);
    e.Set(Field::kFh, 5);
    e.Set(Field::kFlags, static_cast<uint64_t>(how));
    e.Set(Field::kOffset, offset);
    e.Set(Field::kLength, length);
    const std::string text(100, 't');
    const Planned planned =
        Plan({{Create("f", 5, 0)}, {Write(5, 10, text)}, {e}});
    return Planned::Named(planned.final, "f").size;
  };
  EXPECT_EQ(size(0, 90, 5), 100u);
  EXPECT_EQ(size(0, 90, 15), 105u);
  EXPECT_EQ(size(FALLOC_FL_KEEP_SIZE, 90, 15), 100u);
  EXPECT_EQ(size(FALLOC_FL_COLLAPSE_RANGE, 10, 30), 70u);
  EXPECT_EQ(size(FALLOC_FL_COLLAPSE_RANGE, 10, 130), 0u);
  EXPECT_EQ(size(FALLOC_FL_INSERT_RANGE, 10, 30), 130u);
  EXPECT_EQ(size(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 200), 100u);
}

// A file that was there: of which bytes the plan has what it held.
TEST(PlanBytesTest, WhatWasReadIsThereToBeginWith) {
  Event open = Of(Op::open_, 5, 5);
  open.Set(Field::kFlags, O_RDWR);
  open.Set(Field::kFh, 5);
  const auto plan = [&](const std::vector<Told>& more) {
    std::vector<Told> told = {{Looked("f", 5, 0, kFile, 6)}, {open}};
    told.insert(told.end(), more.begin(), more.end());
    return Plan(told);
  };
  EXPECT_THAT(plan({}).unknown_files, ElementsAre("f"));
  Planned planned = plan({{Read(5, 10, "abcdef")}});
  EXPECT_THAT(planned.unknown_files, IsEmpty());
  ASSERT_EQ(planned.data.size(), 1u);
  EXPECT_EQ(AsText(planned.data[0].bytes), "abcdef");
  EXPECT_FALSE(planned.Of(Op::read_).Has(kInitialData));
  // Only what was not there yet, or was not written meanwhile.
  Event middle = Write(5, 7, "XY");
  middle.Set(Field::kOffset, 2);
  planned = plan({{middle}, {Read(5, 10, "abXYef")}});
  ASSERT_EQ(planned.data.size(), 2u);
  EXPECT_EQ(planned.data[0].offset, 0u);
  EXPECT_EQ(AsText(planned.data[0].bytes), "ab");
  EXPECT_EQ(planned.data[1].offset, 4u);
  EXPECT_EQ(AsText(planned.data[1].bytes), "ef");
  // Under the name that it had then.
  planned = plan({{Moved("f", "g", 5, 7)}, {Read(5, 10, "abcdef")}});
  ASSERT_EQ(planned.data.size(), 1u);
  EXPECT_EQ(planned.data[0].name, "f");
  planned = plan({{Named(Op::unlink_, "f", 5, 7)}, {Read(5, 10, "abcdef")}});
  ASSERT_EQ(planned.data.size(), 1u);
  EXPECT_EQ(planned.data[0].name, "f");
  // Without its bytes it is said that they are made up.
  Event silent = Read(5, 10, "abcdef");
  silent.data = {};
  planned = plan({{silent}});
  EXPECT_TRUE(planned.Of(Op::read_).Has(kInitialData));
  EXPECT_EQ(planned.header.unknown_sources, 1u);
  EXPECT_EQ(planned.header.unknown_content, 1u);
  EXPECT_EQ(planned.lacks.reads_without_hash, 1u);
  // Whatever becomes of the file.
  planned = plan({{silent}, {Named(Op::unlink_, "f", 5, 20)}});
  EXPECT_THAT(planned.unknown_files, ElementsAre("f"));
  EXPECT_EQ(planned.header.unknown_content, 1u);
}

}  // namespace
}  // namespace tracefs::replay
