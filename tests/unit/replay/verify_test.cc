// What an operation came to against what was recorded: the table of what is a
// mismatch, and what explains one.
#include "tracefs/replay/verify.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>
#include <string>

namespace tracefs::replay {
namespace {

Action Of(Op op, uint32_t error = 0, int64_t result = 0, uint32_t flags = 0) {
  Action a;
  a.op = op;
  a.error = error;
  a.result = result;
  a.flags = flags;
  return a;
}

Done Came(int error, int64_t result = 0) {
  Done done;
  done.error = error;
  done.result = result;
  done.st = {};
  return done;
}

// "same", "mismatch: text", or "why: text".
std::string Say(const Action& action, const Done& done,
                const VerifyOptions& options = {}) {
  const Verdict verdict = Verify(action, done, options);
  if (verdict.matches) {
    EXPECT_EQ(verdict.text, "");
    return "same";
  }
  return (verdict.explained ? std::string(ExplainedName(*verdict.explained))
                            : std::string("mismatch")) +
         ": " + verdict.text;
}

TEST(VerifyTest, ErrorsAreComparedAndNamed) {
  EXPECT_EQ(Say(Of(Op::unlink_), Came(0)), "same");
  EXPECT_EQ(Say(Of(Op::unlink_, ENOENT), Came(ENOENT)), "same");
  EXPECT_EQ(Say(Of(Op::unlink_, ENOENT), Came(0)),
            "mismatch: result ENOENT then, success now");
  EXPECT_EQ(Say(Of(Op::unlink_), Came(EISDIR)),
            "mismatch: result success then, EISDIR now");
  EXPECT_EQ(ErrorName(ENOSPC), "ENOSPC");
  EXPECT_EQ(ErrorName(100000), "100000");
}

TEST(VerifyTest, WhatExplainsAnotherError) {
  const std::string text = ": result success then, ";
  EXPECT_EQ(Say(Of(Op::unlink_, 0, 0, kRacing), Came(ENOENT)),
            "raced when recorded" + text + "ENOENT now");
  for (const int error : {EOPNOTSUPP, ENODATA, ENOSPC, ERANGE, E2BIG}) {
    for (const Op op :
         {Op::setxattr_, Op::getxattr_, Op::listxattr_, Op::removexattr_}) {
      EXPECT_TRUE(Say(Of(op), Came(error)).starts_with("not supported here"));
      EXPECT_TRUE(Say(Of(op, static_cast<uint32_t>(error)), Came(0))
                      .starts_with("not supported here"));
    }
  }
  EXPECT_TRUE(Say(Of(Op::write_), Came(ENOSPC)).starts_with("mismatch"));
  EXPECT_TRUE(Say(Of(Op::setxattr_), Came(ENOENT)).starts_with("mismatch"));
  for (const int error : {EOPNOTSUPP, ENOSYS}) {
    EXPECT_TRUE(
        Say(Of(Op::fallocate_), Came(error)).starts_with("not supported here"));
  }
  EXPECT_TRUE(Say(Of(Op::lseek_), Came(ENXIO))
                  .starts_with("layout of the file system"));
  EXPECT_TRUE(Say(Of(Op::open_), Came(ENXIO)).starts_with("mismatch"));
  EXPECT_TRUE(Say(Of(Op::copy_file_range_), Came(EXDEV))
                  .starts_with("not supported here"));
  EXPECT_TRUE(Say(Of(Op::rename_), Came(EXDEV)).starts_with("mismatch"));
}

TEST(VerifyTest, RightsExplainOnlyWhereUsersAreNotAsRecorded) {
  VerifyOptions owners;
  owners.grants.Add(Privilege::kOwner);
  for (const int error : {EACCES, EPERM}) {
    EXPECT_TRUE(
        Say(Of(Op::unlink_), Came(error)).starts_with("another user's rights"));
    EXPECT_TRUE(
        Say(Of(Op::unlink_), Came(error), owners).starts_with("mismatch"));
  }
}

TEST(VerifyTest, WhatWasLeftOutIsNoMismatch) {
  Done done = Came(0);
  done.skipped = true;
  EXPECT_EQ(Say(Of(Op::mknod_), done), "devices are not made: not done");
  done.left_out = Privilege::kSetId;
  EXPECT_EQ(Say(Of(Op::mknod_), done),
            "left out, not asked for: not asked for");
}

TEST(VerifyTest, BytesOfReadsAndWrites) {
  for (const Op op : {Op::read_, Op::write_}) {
    EXPECT_EQ(Say(Of(op, 0, 7), Came(0, 7)), "same");
    EXPECT_EQ(Say(Of(op, 0, 7), Came(0, 5)), "mismatch: bytes 7 then, 5 now");
    EXPECT_EQ(Say(Of(op, 0, 7, kRacing), Came(0, 5)),
              "raced when recorded: bytes 7 then, 5 now");
  }
  for (const Op op : {Op::read_, Op::copy_file_range_}) {
    Action a = Of(op, 0, 7, kHasHash);
    a.hash = 1;
    Done done = Came(0, 7);
    done.hash = 1;
    EXPECT_EQ(Say(a, done), "same");
    done.hash = 2;
    EXPECT_EQ(Say(a, done), "mismatch: other bytes than then");
    EXPECT_EQ(Say(a, done, {.has_bytes = false, .grants = {}}),
              "bytes not in the trace: other bytes than then");
    a.flags |= kInitialData;
    EXPECT_EQ(Say(a, done), "bytes not in the trace: other bytes than then");
    a.flags |= kRacing;
    EXPECT_EQ(Say(a, done), "raced when recorded: other bytes than then");
    a.flags = 0;
    EXPECT_EQ(Say(a, done), "same") << "nothing is known of them";
  }
  Action write = Of(Op::write_, 0, 7, kHasHash);
  write.hash = 1;
  EXPECT_EQ(Say(write, Came(0, 7)), "same");
}

TEST(VerifyTest, NumbersThatEachFileSystemHasOfItsOwn) {
  for (const Op op :
       {Op::lseek_, Op::getxattr_, Op::listxattr_, Op::copy_file_range_}) {
    EXPECT_EQ(Say(Of(op, 0, 7), Came(0, 7)), "same");
    EXPECT_EQ(Say(Of(op, 0, 7), Came(0, 8)),
              "layout of the file system: result 7 then, 8 now");
  }
  EXPECT_EQ(Say(Of(Op::readdir_, 0, 7), Came(0, 8)), "same");
}

TEST(VerifyTest, TargetsOfLinks) {
  Action a = Of(Op::readlink_);
  Done done = Came(0);
  done.text = "b\n";
  EXPECT_EQ(Say(a, done), "same") << "it is not in the trace";
  a.text = "b\n";
  EXPECT_EQ(Say(a, done), "same");
  a.text = "a";
  EXPECT_EQ(Say(a, done), "mismatch: target a then, b\\n now");
}

class StatTest : public testing::Test {
 protected:
  StatTest() {
    action_.flags = kHasStat;
    action_.place = Place::kName;
    action_.stat_mode = S_IFREG | 0644;
    action_.stat_size = 10;
    action_.stat_nlink = 2;
    done_.has_stat = true;
    done_.st.st_mode = S_IFREG | 0644;
    done_.st.st_size = 10;
    done_.st.st_nlink = 2;
  }
  std::string Said(const VerifyOptions& options = {}) {
    return Say(action_, done_, options);
  }
  Action action_ = Of(Op::getattr_);
  Done done_ = Came(0);
};

TEST_F(StatTest, TheSameIsTheSame) {
  EXPECT_EQ(Said(), "same");
  done_.st.st_size = 11;
  done_.has_stat = false;
  EXPECT_EQ(Said(), "same");
  done_.has_stat = true;
  action_.flags = 0;
  EXPECT_EQ(Said(), "same");
}

TEST_F(StatTest, Types) {
  done_.st.st_mode = S_IFDIR | 0644;
  EXPECT_EQ(Said(), "mismatch: type 8 then, 4 now");
  for (const uint32_t type : {S_IFCHR, S_IFBLK}) {
    action_.stat_mode = type | 0644;
    EXPECT_TRUE(Said().starts_with("devices are not made: type"));
  }
}

TEST_F(StatTest, Sizes) {
  done_.st.st_size = 11;
  EXPECT_EQ(Said(), "mismatch: size 10 then, 11 now");
  action_.flags |= kSizeRaces;
  EXPECT_EQ(Said(), "raced when recorded: size 10 then, 11 now");
  action_.stat_mode = S_IFDIR | 0644;
  done_.st.st_mode = S_IFDIR | 0644;
  EXPECT_EQ(Said(), "same") << "of folders each file system has its own";
}

TEST_F(StatTest, Modes) {
  done_.st.st_mode = S_IFREG | 0640;
  EXPECT_EQ(Said(), "mismatch: mode 420 then, 416 now");
  action_.flags |= kSizeRaces;
  EXPECT_TRUE(Said().starts_with("raced when recorded"));
  action_.flags &= ~static_cast<uint32_t>(kSizeRaces);
  action_.place = Place::kDir;
  action_.dir = kRootSlot;
  EXPECT_EQ(Said(), "same") << "DIR itself is as its owner has made it";
  action_.dir = 1;
  EXPECT_NE(Said(), "same");
  action_.place = Place::kName;
  action_.dir = kRootSlot;
  EXPECT_NE(Said(), "same");
  action_.stat_mode = S_IFLNK | 0777;
  done_.st.st_mode = S_IFLNK | 0700;
  EXPECT_EQ(Said(), "same");
}

TEST_F(StatTest, SetIdBitsThatWereNotAskedFor) {
  action_.stat_mode = S_IFREG | 06644;
  EXPECT_TRUE(Said().starts_with("left out, not asked for: mode"));
  VerifyOptions granted;
  granted.grants.Add(Privilege::kSetId);
  EXPECT_TRUE(Said(granted).starts_with("mismatch: mode"));
  action_.stat_mode = S_IFREG | 06640;
  EXPECT_TRUE(Said().starts_with("mismatch: mode")) << "not these bits alone";
}

TEST_F(StatTest, Links) {
  done_.st.st_nlink = 3;
  EXPECT_EQ(Said(), "mismatch: links 2 then, 3 now");
  action_.flags |= kUnknownNames;
  EXPECT_EQ(Said(), "mismatch: links 2 then, 3 now") << "more than there were";
  done_.st.st_nlink = 1;
  EXPECT_EQ(Said(), "names not in the trace: links 2 then, 1 now");
  action_.flags &= ~kUnknownNames;
  EXPECT_EQ(Said(), "mismatch: links 2 then, 1 now");
  action_.stat_nlink = 0;
  EXPECT_EQ(Said(), "same") << "not known";
  action_.stat_nlink = 2;
  action_.stat_mode = done_.st.st_mode = S_IFDIR | 0644;
  EXPECT_EQ(Said(), "same");
}

}  // namespace
}  // namespace tracefs::replay
