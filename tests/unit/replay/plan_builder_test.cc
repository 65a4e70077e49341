// Plans of single operations, told as a trace would: what a trace lacks, which
// rights it asks for, what was first where two ran at once, and what becomes of
// operations that are not selected.
#include "tracefs/replay/plan_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/unit/replay/told_plan.h"

namespace tracefs::replay {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;

// --- What a trace lacks.

TEST(PlanLacksTest, EachFieldThatIsMissingIsCountedAlone) {
  const std::vector<uint64_t Lacks::*> all = {
      &Lacks::without_time,       &Lacks::without_duration,
      &Lacks::without_result,     &Lacks::without_thread,
      &Lacks::without_user,       &Lacks::without_handle,
      &Lacks::without_arguments,  &Lacks::writes_without_data,
      &Lacks::reads_without_hash, &Lacks::xattrs_without_value};
  const auto only = [&](const Planned& planned, uint64_t Lacks::*expected) {
    for (const auto lack : all) {
      EXPECT_EQ(planned.lacks.*lack, lack == expected ? 1u : 0u);
    }
  };
  const Event create = Create("f", 5, 0);
  only(Plan({{create}, {Write(5, 2, "abc")}}), nullptr);
  const std::vector<std::pair<Field, uint64_t Lacks::*>> rows = {
      {Field::kLatency, &Lacks::without_duration},
      {Field::kTid, &Lacks::without_thread},
      {Field::kUid, &Lacks::without_user},
      {Field::kFh, &Lacks::without_handle},
      {Field::kOffset, &Lacks::without_arguments}};
  for (const auto& [field, lack] : rows) {
    Event write = Write(5, 2, "abc");
    write.present &= ~Bit(field);
    only(Plan({{create}, {write}}), lack);
  }
  Event write = Write(5, 2, "abc");
  write.data = {};
  only(Plan({{create}, {write}}), &Lacks::writes_without_data);
  only(Plan({{create}, {Failed(write, ENOSPC)}}), nullptr);
  Event read = Write(5, 2, "abc");
  read.op = Op::read_;
  only(Plan({{create}, {read}}), nullptr);
  read.data = {};
  only(Plan({{create}, {read}}), &Lacks::reads_without_hash);
  only(Plan({{create}, {Failed(read, EIO)}}), nullptr);
  Event chmod = Of(Op::setattr_, 5, 3);
  only(Plan({{create}, {chmod}}), &Lacks::without_arguments);
  chmod.Set(Field::kValid, 0);
  only(Plan({{create}, {chmod}}), nullptr);
  read.Set(Field::kDataChecksum, 1);
  only(Plan({{create}, {read}}), nullptr);
  Event release = Whole(Op::release_, 3);
  release.Set(Field::kInode, 5);
  only(Plan({{create}, {release}}), &Lacks::without_handle);
  release.Set(Field::kFh, 5);
  only(Plan({{create}, {release}}), nullptr);
  Event look = Whole(Op::getattr_, 3);
  look.Set(Field::kInode, 5);
  only(Plan({{create}, {look}}), nullptr);
  Event xattr = Whole(Op::setxattr_, 3);
  xattr.Set(Field::kInode, 5);
  xattr.xattr_name = "user.a";
  only(Plan({{create}, {xattr}}), &Lacks::xattrs_without_value);
  only(Plan({{create}, {Failed(xattr, ENOSPC)}}), nullptr);
}

TEST(PlanLacksTest, Malicious_NamesThatAreNoneAreNotDone) {
  for (const char* name : {"..", ".", "a/b", ""}) {
    const Planned planned = Plan({{Create(name, 5, 0)}});
    EXPECT_EQ(planned.lacks.unplaced, 1u) << name;
    EXPECT_EQ(planned.lacks.unplaced_changes, 1u);
    EXPECT_TRUE(planned.actions.empty());
    const Planned moved =
        Plan({{Create("f", 5, 0)}, {Moved("f", name, 5, 10)}});
    EXPECT_EQ(moved.lacks.unplaced_changes, 1u) << name;
  }
  EXPECT_EQ(Plan({{Looked("..", 5, 0, kFile)}}).lacks.unplaced, 1u);
}

TEST(PlanLacksTest, FilesThatNobodyCanNameAreNotDone) {
  Event write = Write(99, 2, "abc");
  const Planned planned = Plan({{Create("f", 5, 0)}, {write}});
  EXPECT_EQ(planned.lacks.unplaced, 1u);
  EXPECT_EQ(planned.lacks.unplaced_changes, 1u);
  EXPECT_THAT(planned.actions, ElementsAre("create f"));
  Event look = Whole(Op::getattr_, 2);
  look.Set(Field::kInode, 99);
  EXPECT_EQ(Plan({{look}}).lacks.unplaced_changes, 0u);
  EXPECT_EQ(Plan({{look}}).lacks.unplaced, 1u);
}

TEST(PlanLacksTest, WhatIsNotReplayedIsCounted) {
  for (const Op op : {Op::ioctl_, Op::poll_, Op::getlk_}) {
    Event e = Whole(op, 2);
    e.Set(Field::kInode, 5);
    e.Set(Field::kFh, 5);
    const Planned planned = Plan({{Create("f", 5, 0)}, {e}});
    EXPECT_EQ(planned.lacks.not_replayed, 1u);
    EXPECT_THAT(planned.actions, ElementsAre("create f"));
  }
}

// --- Rights.

TEST(PlanPrivilegeTest, RightsThatATraceAsksForAreCounted) {
  const auto count = [](const std::vector<Told>& told, Privilege privilege) {
    return Plan(told).lacks.privileges[static_cast<size_t>(privilege)];
  };
  Event program = Create("f", 5, 0);
  EXPECT_EQ(count({{program}}, Privilege::kSetId), 0u);
  program.Set(Field::kArgMode, S_IFREG | 04755);
  EXPECT_EQ(count({{program}}, Privilege::kSetId), 1u);
  EXPECT_EQ(count({{Failed(program, EACCES)}}, Privilege::kSetId), 0u);
  Event node = Named(Op::mknod_, "n", 6, 0);
  node.Set(Field::kArgMode, S_IFCHR | 0600);
  EXPECT_EQ(count({{node}}, Privilege::kDevice), 1u);
  node.Set(Field::kArgMode, S_IFIFO | 0600);
  EXPECT_EQ(count({{node}}, Privilege::kDevice), 0u);
  Event xattr = Whole(Op::setxattr_, 3);
  xattr.Set(Field::kInode, 5);
  xattr.xattr_name = "trusted.a";
  xattr.data = AsBytes("1");
  const Event f = Create("f", 5, 0);
  EXPECT_EQ(count({{f}, {xattr}}, Privilege::kTrustedXattr), 1u);
  xattr.xattr_name = "security.a";
  EXPECT_EQ(count({{f}, {xattr}}, Privilege::kSecurityXattr), 1u);
  xattr.xattr_name = "user.a";
  EXPECT_EQ(count({{f}, {xattr}}, Privilege::kTrustedXattr), 0u);
}

TEST(PlanPrivilegeTest, OfWhatWasThereAndOfNewAttributes) {
  const auto count = [](const std::vector<Told>& told, Privilege privilege) {
    return Plan(told).lacks.privileges[static_cast<size_t>(privilege)];
  };
  const auto there = [&](uint32_t mode, uint32_t uid, uint32_t gid,
                         Privilege privilege) {
    Event e = Looked("f", 5, 0, mode);
    e.Set(Field::kFuid, uid);
    e.Set(Field::kFgid, gid);
    return count({{e}}, privilege);
  };
  EXPECT_EQ(there(kFile, 0, 0, Privilege::kOwner), 0u);
  EXPECT_EQ(there(kFile, 7, 0, Privilege::kOwner), 1u);
  EXPECT_EQ(there(kFile, 0, 7, Privilege::kOwner), 1u);
  EXPECT_EQ(there(kFile, 0, 0, Privilege::kSetId), 0u);
  EXPECT_EQ(there(kFile | S_ISGID, 0, 0, Privilege::kSetId), 1u);
  EXPECT_EQ(there(kFile | S_ISUID, 0, 0, Privilege::kSetId), 1u);
  EXPECT_EQ(there(S_IFCHR | 0600, 0, 0, Privilege::kDevice), 1u);
  EXPECT_EQ(there(S_IFBLK | 0600, 0, 0, Privilege::kDevice), 1u);
  EXPECT_EQ(there(S_IFIFO | 0600, 0, 0, Privilege::kDevice), 0u);
  EXPECT_EQ(count({{Looked("f", 5, 0, kFile)}}, Privilege::kOwner), 0u)
      << "whose it is was not told";
  const Event f = Create("f", 5, 0);
  const auto set = [&](uint32_t valid, Privilege privilege) {
    Event e = Of(Op::setattr_, 5, 10);
    e.Set(Field::kValid, valid);
    e.Set(Field::kArgMode, 04755);
    return count({{f}, {e}}, privilege);
  };
  EXPECT_EQ(set(FATTR_MODE, Privilege::kSetId), 1u);
  EXPECT_EQ(set(FATTR_SIZE, Privilege::kSetId), 0u);
  EXPECT_EQ(set(FATTR_UID, Privilege::kOwner), 1u);
  EXPECT_EQ(set(FATTR_GID, Privilege::kOwner), 1u);
  EXPECT_EQ(set(FATTR_MODE, Privilege::kOwner), 0u);
  Event theirs = f;
  theirs.Set(Field::kGid, 5);
  EXPECT_EQ(count({{theirs}}, Privilege::kOwner), 1u);
}

// --- Set-id bits, and whose a file is.

TEST(PlanFinalTest, ANewOwnerEndsSetIdBits) {
  const auto mode_after = [](uint32_t mode, uint32_t valid) {
    Event make = Create("f", 5, 0);
    make.Set(Field::kArgMode, S_IFREG | mode);
    Event e = Of(Op::setattr_, 5, 10);
    e.Set(Field::kValid, valid);
    e.Set(Field::kArgMode, 06755);
    e.Set(Field::kNewUid, 3);
    const Planned planned = Plan({{make}, {e}});
    return Planned::Named(planned.final, "f").mode & 07777;
  };
  EXPECT_EQ(mode_after(06755, FATTR_UID), 0755u);
  EXPECT_EQ(mode_after(06755, FATTR_GID), 0755u);
  EXPECT_EQ(mode_after(06745, FATTR_UID), 02745u) << "a mandatory lock";
  EXPECT_EQ(mode_after(06755, FATTR_SIZE), 06755u);
  EXPECT_EQ(mode_after(0755, FATTR_UID | FATTR_MODE), 06755u);
  Event folder = Named(Op::mkdir_, "d", 6, 0);
  folder.Set(Field::kArgMode, 02755);
  Event e = Of(Op::setattr_, 6, 10);
  e.Set(Field::kValid, FATTR_UID);
  EXPECT_EQ(Planned::Named(Plan({{folder}, {e}}).final, "d").mode & 07777,
            02755u);
}

// --- Who was first.

TEST(PlanOrderTest, WhatFoundNothingCameBeforeTheMaking) {
  const Event look = Failed(Named(Op::lookup_, "f", 0, 0, 20), ENOENT);
  EXPECT_THAT(Plan({{look}, {Create("f", 5, 5, 2)}}).actions,
              ElementsAre("lookup f", "create f"));
  const Event found = Named(Op::lookup_, "f", 5, 0, 20);
  EXPECT_THAT(Plan({{found}, {Create("f", 5, 5, 2)}}).actions,
              ElementsAre("create f", "lookup f"))
      << "it found what was made after its begin";
}

TEST(PlanOrderTest, ASecondMakingWaitsForTheRemoval) {
  EXPECT_THAT(Plan({{Create("f", 5, 0)},
                    {Create("f", 6, 10, 20)},
                    {Named(Op::unlink_, "f", 5, 12)}})
                  .actions,
              ElementsAre("create f", "unlink f", "create f"));
}

TEST(PlanOrderTest, WhoFoundItThereCameAfterTheMaking) {
  const Planned planned =
      Plan({{Failed(Create("f", 0, 0, 20), EEXIST)}, {Create("f", 5, 5, 2)}});
  ASSERT_EQ(planned.whole.size(), 2u);
  EXPECT_EQ(planned.whole[0].error, 0u);
  EXPECT_EQ(planned.whole[1].error, uint32_t{EEXIST});
  // A create that failed in another way may have come first.
  const Planned other =
      Plan({{Failed(Create("f", 0, 0, 20), EACCES)}, {Create("f", 5, 5, 2)}});
  ASSERT_EQ(other.whole.size(), 2u);
  EXPECT_EQ(other.whole[0].error, uint32_t{EACCES});
}

// --- What is not selected.

TEST(PlanClosureTest, WhatOthersMadeIsThereOrIsDone) {
  const std::vector<Told> told = {{Create("theirs", 5, 0), false},
                                  {Write(5, 2, "abc"), false},
                                  {Named(Op::lookup_, "theirs", 5, 4)},
                                  {Write(5, 6, "defg")}};
  const auto with = [&](Closure closure) {
    BuilderOptions options;
    options.closure = closure;
    return Plan(told, options);
  };
  const Planned there = with(Closure::kInit);
  EXPECT_THAT(there.actions,
              ElementsAre("lookup theirs", "open theirs, made up", "write"));
  EXPECT_EQ(there.header.initial_entries, 1u);
  EXPECT_EQ(there.header.operations, 2u);
  const Planned done = with(Closure::kInclude);
  EXPECT_THAT(done.actions,
              ElementsAre("create theirs, not selected", "write, not selected",
                          "lookup theirs", "write"));
  EXPECT_EQ(done.header.initial_entries, 0u);
  EXPECT_EQ(done.header.written_bytes, 7u);
}

// --- What is to be undone.

TEST(PlanMarkTest, BytesThatTheTraceDoesNotHaveAreMarked) {
  EXPECT_THAT(Plan({{Create("f", 5, 0)},
                    {Write(5, 2, "abc")},
                    {Write(5, 4, "xyz"), true, true}})
                  .actions,
              ElementsAre("create f", "write", "write, to be undone"));
  EXPECT_THAT(
      Plan({{Named(Op::lookup_, "g", 6, 0)}, {Write(6, 4, "xyz"), true, true}})
          .actions,
      ElementsAre("lookup g", "open g, made up",
                  "write, to be undone, of unknown bytes"));
  Event unlink = Named(Op::unlink_, "g", 6, 9);
  EXPECT_THAT(
      Plan({{Named(Op::lookup_, "g", 6, 0)}, {unlink, true, true}}).actions,
      ElementsAre("lookup g", "unlink g, to be undone, of unknown bytes"));
  EXPECT_THAT(Plan({{Create("g", 6, 0)}, {unlink, true, true}}).actions,
              ElementsAre("create g", "unlink g, to be undone"));
}

}  // namespace
}  // namespace tracefs::replay
