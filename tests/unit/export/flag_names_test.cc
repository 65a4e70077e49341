// Names of flags and modes.
#include "tracefs/text/flag_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <string>

namespace tracefs {
namespace {

TEST(FlagNamesTest, OpenFlagsAreSpelled) {
  EXPECT_EQ(FlagsText(Op::open_, O_RDONLY), "O_RDONLY");
  EXPECT_EQ(FlagsText(Op::open_, O_RDWR | O_CLOEXEC), "O_RDWR|O_CLOEXEC");
  EXPECT_EQ(FlagsText(Op::create_, O_WRONLY | O_CREAT | O_EXCL),
            "O_WRONLY|O_CREAT|O_EXCL");
  EXPECT_EQ(FlagsText(Op::open_, O_SYNC), "O_RDONLY|O_SYNC");
  EXPECT_EQ(FlagsText(Op::open_, O_DSYNC), "O_RDONLY|O_DSYNC");
  EXPECT_EQ(FlagsText(Op::tmpfile_, O_TMPFILE | O_RDWR), "O_RDWR|O_TMPFILE");
  EXPECT_EQ(FlagsText(Op::opendir_, O_DIRECTORY), "O_RDONLY|O_DIRECTORY");
  EXPECT_EQ(FlagsText(Op::open_, 0100000), "O_RDONLY");  // O_LARGEFILE
  EXPECT_EQ(FlagsText(Op::open_, 0x80000000), "O_RDONLY|0x80000000");
}

TEST(FlagNamesTest, EachOperationHasItsOwn) {
  EXPECT_EQ(FlagsText(Op::rename_, 1), "RENAME_NOREPLACE");
  EXPECT_EQ(FlagsText(Op::rename_, 0), "0");
  EXPECT_EQ(FlagsText(Op::lseek_, SEEK_HOLE), "SEEK_HOLE");
  EXPECT_EQ(FlagsText(Op::lseek_, 77), "0x4d");
  EXPECT_EQ(FlagsText(Op::fallocate_, 3),
            "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE");
  EXPECT_EQ(FlagsText(Op::fsync_, 1), "data");
  EXPECT_EQ(FlagsText(Op::setxattr_, 2), "XATTR_REPLACE");
}

TEST(FlagNamesTest, EveryValueFitsItsRoom) {
  for (size_t op = 0; op < kOpCount; ++op) {
    for (const uint32_t flags : {0u, 0xffffffffu, 0x55555555u, 0xaaaaaaaau}) {
      std::array<char, kMaxFlagText> text;
      char* const end = PutFlags(text.data(), static_cast<Op>(op), flags);
      EXPECT_LE(end, text.data() + text.size());
      EXPECT_GT(end, text.data());
    }
  }
}

TEST(FlagNamesTest, ModesReadAsInLs) {
  const auto letters = [](uint32_t mode) {
    std::array<char, 16> text;
    return std::string(text.data(), PutModeLetters(text.data(), mode));
  };
  EXPECT_EQ(letters(S_IFREG | 0644), "-rw-r--r--");
  EXPECT_EQ(letters(S_IFDIR | 01777), "drwxrwxrwt");
  EXPECT_EQ(letters(S_IFREG | 04711), "-rws--x--x");
  EXPECT_EQ(letters(S_IFREG | 02640), "-rw-r-S---");
  EXPECT_EQ(letters(S_IFLNK | 0777), "lrwxrwxrwx");
  EXPECT_EQ(letters(0), "?---------");
}

TEST(FlagNamesTest, ErrorsAndTypesHaveNames) {
  EXPECT_EQ(ErrnoName(ENOENT), "ENOENT");
  EXPECT_EQ(ErrnoName(0), "");
  EXPECT_EQ(ErrnoName(4000), "");
  EXPECT_EQ(ErrnoName(UINT64_MAX), "");
  EXPECT_EQ(FileTypeName(S_IFDIR >> 12), "dir");
  EXPECT_EQ(FileTypeName(3), "");
}

}  // namespace
}  // namespace tracefs
