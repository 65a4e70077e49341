#include "tracefs/base/file_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

class FileIoTest : public testing::Test {
 protected:
  UniqueFd fd_{::memfd_create("file_io_test", MFD_CLOEXEC)};
};

TEST_F(FileIoTest, WhatIsWrittenIsReadAgain) {
  const std::string text(100'000, 'x');
  ASSERT_TRUE(WriteAll(fd_.get(), AsBytes(text), "it").ok());
  ASSERT_TRUE(WriteAllAt(fd_.get(), AsBytes("end"), text.size(), "it").ok());
  ::lseek(fd_.get(), 0, SEEK_SET);
  EXPECT_EQ(*ReadText(fd_.get(), 1'000'000, "it"), text + "end");
}

TEST_F(FileIoTest, TextIsReadUpToItsBound) {
  ASSERT_TRUE(WriteAll(fd_.get(), AsBytes("0123456789"), "it").ok());
  ::lseek(fd_.get(), 0, SEEK_SET);
  EXPECT_EQ(*ReadText(fd_.get(), 4, "it"), "0123");
}

TEST_F(FileIoTest, APipeIsReadToItsEnd) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  ASSERT_TRUE(WriteAll(out.get(), AsBytes("one"), "it").ok());
  ASSERT_TRUE(WriteAll(out.get(), AsBytes("two"), "it").ok());
  out.Reset();
  EXPECT_EQ(*ReadText(in.get(), 100, "it"), "onetwo");
}

TEST_F(FileIoTest, AFileThatEndsEarlyFillsNothing) {
  ASSERT_TRUE(WriteAll(fd_.get(), AsBytes("0123456789"), "it").ok());
  std::array<std::byte, 8> bytes;
  EXPECT_TRUE(ReadAllAt(fd_.get(), bytes, 2));
  EXPECT_EQ(AsText(bytes), "23456789");
  EXPECT_FALSE(ReadAllAt(fd_.get(), bytes, 3));
  EXPECT_EQ(ReadAt(fd_.get(), bytes, 3), 7);
  EXPECT_EQ(ReadAt(fd_.get(), bytes, 11), 0);
}

TEST_F(FileIoTest, ErrorsNameTheFile) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const Status written = WriteAll(full.get(), AsBytes("x"), "disk");
  EXPECT_EQ(written.error(), ENOSPC);
  EXPECT_EQ(written.message().substr(0, 6), "disk: ");
  EXPECT_EQ(WriteAllAt(-1, AsBytes("x"), 0, "it").error(), EBADF);
  const UniqueFd folder(::open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(ReadText(folder.get(), 10, "it").status().error(), EISDIR);
  std::array<std::byte, 8> bytes;
  EXPECT_EQ(ReadAt(folder.get(), bytes, 0), -1);
}

}  // namespace
}  // namespace tracefs
