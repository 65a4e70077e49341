// A descriptor of a directory that leads nowhere else.
#include "tracefs/base/enclosed_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/filters/output/temp_folder.h"

namespace tracefs {
namespace {

class EnclosedFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    folder_.Write("secret", "x");
    ASSERT_EQ(::mkdir(folder_.Path("out").c_str(), 0700), 0);
    fd_ = EncloseFolder(UniqueFd(
        ::open(folder_.Path("out").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  }

  TempFolder folder_;
  UniqueFd fd_;
};

TEST_F(EnclosedFolderTest, FilesAreMadeThereAsInTheDirectory) {
  const UniqueFd file(::openat(fd_.get(), "f", O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(file);
  struct stat here, there;
  ASSERT_EQ(::fstat(file.get(), &here), 0);
  ASSERT_EQ(::stat(folder_.Path("out/f").c_str(), &there), 0);
  EXPECT_EQ(here.st_dev, there.st_dev);
  EXPECT_EQ(here.st_ino, there.st_ino);
  EXPECT_EQ(::renameat(fd_.get(), "f", fd_.get(), "g"), 0);
  EXPECT_EQ(::unlinkat(fd_.get(), "g", 0), 0);
}

TEST_F(EnclosedFolderTest, Malicious_ThereIsNoWayUp) {
  EXPECT_FALSE(UniqueFd(::openat(fd_.get(), "../secret", O_RDONLY)));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(UniqueFd(::openat(fd_.get(), "../../etc/passwd", O_RDONLY)));
  struct stat here, up;
  ASSERT_EQ(::fstatat(fd_.get(), ".", &here, 0), 0);
  ASSERT_EQ(::fstatat(fd_.get(), "../..", &up, 0), 0);
  EXPECT_EQ(here.st_ino, up.st_ino);
}

TEST_F(EnclosedFolderTest, Malicious_DevicesMadeThereDoNotOpen) {
  ASSERT_EQ(::mknodat(fd_.get(), "null", S_IFCHR | 0600, ::makedev(1, 3)), 0);
  EXPECT_FALSE(UniqueFd(::openat(fd_.get(), "null", O_RDONLY)));
  EXPECT_EQ(errno, EACCES);
}

TEST_F(EnclosedFolderTest, WhatIsNoDirectoryStaysAsItIs) {
  EXPECT_FALSE(EncloseFolder(UniqueFd()));
  UniqueFd file(::open(folder_.Path("secret").c_str(), O_RDONLY | O_CLOEXEC));
  const int number = file.get();
  EXPECT_EQ(EncloseFolder(std::move(file)).get(), number);
}

}  // namespace
}  // namespace tracefs
