#include "tracefs/base/passed_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace tracefs {
namespace {

class PassedFilesTest : public testing::Test {
 protected:
  PassedFilesTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(
        ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()),
        0);
    here_.Reset(ends[0]);
    there_.Reset(ends[1]);
  }

  UniqueFd here_;
  UniqueFd there_;
  std::array<std::byte, 8> bytes_;
  std::vector<UniqueFd> files_;
};

TEST_F(PassedFilesTest, FilesComeWithTheirMessage) {
  const std::vector<int> sent(kMaxPassedFiles, here_.get());
  ASSERT_EQ(SendWithFiles(here_.get(), AsBytes("two"), sent), 3);
  ASSERT_EQ(SendWithFiles(here_.get(), AsBytes("none"), {}), 4);
  bool cut = true;
  ASSERT_EQ(ReceiveWithFiles(there_.get(), bytes_, &files_, &cut), 3);
  EXPECT_FALSE(cut);
  EXPECT_EQ(files_.size(), kMaxPassedFiles);
  for (const UniqueFd& file : files_) {
    EXPECT_EQ(::fcntl(file.get(), F_GETFD), FD_CLOEXEC);
  }
  files_.clear();
  ASSERT_EQ(ReceiveWithFiles(there_.get(), bytes_, &files_), 4);
  EXPECT_TRUE(files_.empty());
}

TEST_F(PassedFilesTest, ErrorsAreInErrno) {
  EXPECT_EQ(
      ReceiveWithFiles(there_.get(), bytes_, &files_, nullptr, MSG_DONTWAIT),
      -1);
  EXPECT_EQ(errno, EAGAIN);
  here_.Reset();
  EXPECT_EQ(SendWithFiles(there_.get(), AsBytes("x"), {}), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(ReceiveWithFiles(there_.get(), bytes_, &files_), 0);
}

}  // namespace
}  // namespace tracefs
