#include "tracefs/export/strace_asked.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tracefs/format/record.h"

namespace tracefs {
namespace {

class AskedTest : public ::testing::Test {
 protected:
  struct Told {
    uint64_t fh = 0;
    uint64_t inode = 0;
    uint64_t flags = 0;
    bool mapped = false;
    bool inferred = false;
    uint32_t call = 0;
    std::string_view xattr = {};
  };

  Asked By(Op op, const Told& told) {
    format::Record record;
    record.trace = &trace_;
    Event& event = record.event;
    event.op = op;
    event.Set(Field::kFh, told.fh);
    event.Set(Field::kInode, told.inode);
    event.Set(Field::kFlags, told.flags);
    event.Set(Field::kMapped, told.mapped ? 1 : 0);
    event.Set(Field::kInferred, told.inferred ? 1 : 0);
    if (told.call != 0) event.Set(Field::kSyscall, told.call);
    event.xattr_name = told.xattr;
    return asked_.By(TableRow(record));
  }

  static constexpr uint32_t kOpenat = 1, kReadlink = 2, kStat = 3, kMsync = 4,
                            kFsync = 5, kGetxattr = 6;
  format::TraceContext trace_;
  AskedRequests asked_;

  AskedTest() {
    trace_.calls = {{kOpenat, "openat"},   {kReadlink, "readlinkat"},
                    {kStat, "newfstatat"}, {kMsync, "msync"},
                    {kFsync, "fdatasync"}, {kGetxattr, "getxattr"}};
  }
};

TEST_F(AskedTest, TheCallersSystemCallDecides) {
  EXPECT_EQ(By(Op::readlink_, {.call = kReadlink}), Asked::kByCall);
  EXPECT_EQ(By(Op::readlink_, {.call = kOpenat}), Asked::kByWalk);
  EXPECT_EQ(By(Op::getattr_, {.call = kStat}), Asked::kByCall);
  EXPECT_EQ(By(Op::getattr_, {.call = kOpenat}), Asked::kByWalk);
  EXPECT_EQ(By(Op::fsync_, {.call = kFsync}), Asked::kByCall);
  EXPECT_EQ(By(Op::fsync_, {.call = kMsync}), Asked::kByWalk);
  EXPECT_EQ(
      By(Op::getxattr_, {.call = kGetxattr, .xattr = "security.capability"}),
      Asked::kByCall);
}

TEST_F(AskedTest, WithoutItWhatNeedNotBeACallIsNone) {
  EXPECT_EQ(By(Op::readlink_, {}), Asked::kByWalk);
  EXPECT_EQ(By(Op::lookup_, {}), Asked::kByWalk);
  EXPECT_EQ(By(Op::getattr_, {}), Asked::kByStatPerhaps);
  EXPECT_EQ(By(Op::getattr_, {.fh = 3}), Asked::kByNobody);
  EXPECT_EQ(By(Op::getxattr_, {.xattr = "security.capability"}),
            Asked::kByWalk);
  EXPECT_EQ(By(Op::getxattr_, {.xattr = "user.mine"}), Asked::kByCall);
  EXPECT_EQ(By(Op::release_, {.fh = 3}), Asked::kByClosePerhaps);
  EXPECT_EQ(By(Op::setattr_, {.inferred = true}), Asked::kByNobody);
  EXPECT_EQ(By(Op::unlink_, {}), Asked::kByCall);
}

TEST_F(AskedTest, PagesOfMappedFilesAreNobodys) {
  EXPECT_EQ(By(Op::fsync_, {.inode = 7, .flags = 1}), Asked::kByCall);
  EXPECT_EQ(By(Op::read_, {.inode = 7, .mapped = true}), Asked::kByNobody);
  EXPECT_EQ(By(Op::write_, {.inode = 7, .inferred = true}), Asked::kByNobody);
  EXPECT_EQ(By(Op::read_, {.inode = 7}), Asked::kByCall);
  // msync asks for the same.
  EXPECT_EQ(By(Op::fsync_, {.inode = 7, .flags = 1}), Asked::kByWalk);
  EXPECT_EQ(By(Op::fsync_, {.inode = 7}), Asked::kByCall);
}

TEST_F(AskedTest, ProgramsThatExecveOpensAreNobodysUntilTheirHandleIsFree) {
  EXPECT_EQ(By(Op::open_, {.fh = 4, .flags = 040}), Asked::kByNobody);
  EXPECT_EQ(By(Op::read_, {.fh = 4}), Asked::kByNobody);
  EXPECT_EQ(By(Op::read_, {.fh = 5}), Asked::kByCall);
  EXPECT_EQ(By(Op::release_, {.fh = 4}), Asked::kByNobody);
  EXPECT_EQ(By(Op::read_, {.fh = 4}), Asked::kByCall);
}

TEST_F(AskedTest, WritesThatWaitForTheDiskSyncByThemselves) {
  EXPECT_EQ(By(Op::create_, {.fh = 4, .flags = O_WRONLY | O_SYNC}),
            Asked::kByCall);
  EXPECT_EQ(By(Op::fsync_, {.fh = 4}), Asked::kByWalk);
  EXPECT_EQ(By(Op::open_, {.fh = 4, .flags = O_WRONLY}), Asked::kByCall);
  EXPECT_EQ(By(Op::fsync_, {.fh = 4}), Asked::kByCall);
}

TEST_F(AskedTest, EveryLineThatStraceWroteItselfWasACall) {
  trace_.description.header.Set("visibility", "imported");
  EXPECT_EQ(By(Op::readlink_, {}), Asked::kByCall);
  EXPECT_EQ(By(Op::getattr_, {.fh = 3}), Asked::kByCall);
  EXPECT_EQ(By(Op::release_, {.fh = 3}), Asked::kByCall);
}

}  // namespace
}  // namespace tracefs
