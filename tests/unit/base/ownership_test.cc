// Whose file a name leads to, and who else can use it.
#include "tracefs/base/ownership.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr uid_t kStranger = 65534;

class OwnershipTest : public testing::Test {
 protected:
  static std::string Check(const std::string& path,
                           const Ownership& wanted = {}) {
    const UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    EXPECT_TRUE(fd) << path;
    return CheckOwnership(fd.get(), wanted, "it").message();
  }

  TempFolder folder_;
};

TEST_F(OwnershipTest, AFileOfOursIsAccepted) {
  for (const mode_t mode : {0600, 0640, 0644, 0400}) {
    EXPECT_EQ(Check(folder_.Write("f", "", mode)), "ok") << mode;
  }
}

TEST_F(OwnershipTest, OthersMayNotWrite) {
  EXPECT_EQ(Check(folder_.Write("f", "", 0620)),
            "it can be written by others (mode 0620); run chmod 600, and look "
            "who has used it");
  EXPECT_EQ(Check(folder_.Write("f", "", 0602)),
            "it can be written by others (mode 0602); run chmod 600, and look "
            "who has used it");
  EXPECT_NE(Check(folder_.Write("f", "", 0666)), "ok");
}

TEST_F(OwnershipTest, OthersMayNotReadASecret) {
  const Ownership secret = {.forbidden = 077};
  EXPECT_EQ(Check(folder_.Write("f", "", 0600), secret), "ok");
  for (const mode_t mode : {0640, 0604, 0610, 0601}) {
    EXPECT_NE(Check(folder_.Write("f", "", mode), secret).find("read by"),
              std::string::npos)
        << mode;
  }
}

TEST_F(OwnershipTest, TheKindMustBeRight) {
  const std::string file = folder_.Write("f", "ok");
  EXPECT_EQ(Check(file, {.type = S_IFIFO}),
            "it is a regular file, not a FIFO; remove it or choose another "
            "name");
  const std::string fifo = folder_.Path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(Check(fifo, {.type = S_IFIFO}), "ok");
  EXPECT_NE(Check(fifo), "ok");
  EXPECT_NE(Check("/dev/null"), "ok");
  EXPECT_NE(Check(folder_.Path(".")), "ok");
}

TEST_F(OwnershipTest, ALinkIsNotWhatItLeadsTo) {
  folder_.Write("f", "ok");
  ASSERT_EQ(::symlink("f", folder_.Path("link").c_str()), 0);
  EXPECT_NE(Check(folder_.Path("link")).find("a symbolic link"),
            std::string::npos);
}

TEST_F(OwnershipTest, ASecondNameIsRefusedWhereItMatters) {
  const std::string file = folder_.Write("f", "ok");
  EXPECT_EQ(Check(file, {.one_name = true}), "ok");
  ASSERT_EQ(::link(file.c_str(), folder_.Path("g").c_str()), 0);
  EXPECT_EQ(Check(file), "ok");
  EXPECT_NE(Check(file, {.one_name = true}).find("2 names"), std::string::npos);
  // One without any name, as of a file that was replaced meanwhile.
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(file.c_str());
  ::unlink(folder_.Path("g").c_str());
  EXPECT_TRUE(CheckOwnership(fd.get(), {.one_name = true}, "it").ok());
}

TEST_F(OwnershipTest, Malicious_AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string file = folder_.Write("f", "ok");
  ASSERT_EQ(::chown(file.c_str(), kStranger, 0), 0);
  EXPECT_EQ(Check(file),
            "it belongs to user 65534, not to user 0; remove it, chown it or "
            "choose another name");
  EXPECT_EQ(Check(file, {.owner = kStranger}), "ok");
  // A sticky directory helps nobody who looks at the name alone.
  ASSERT_EQ(::mkdir(folder_.Path("tmp").c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder_.Path("tmp").c_str(), 01777), 0);
  const std::string planted = folder_.Write("tmp/f", "ok");
  ASSERT_EQ(::chown(planted.c_str(), kStranger, 0), 0);
  EXPECT_NE(Check(planted), "ok");
}

TEST_F(OwnershipTest, RootsFilesServeEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string file = folder_.Write("f", "", 0644);
  const UniqueFd fd(::open(file.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(CheckOwnership(fd.get(), {.owner = kStranger}, "it").message(),
            "ok");
}

TEST_F(OwnershipTest, WhatIsNoDescriptorSaysSo) {
  EXPECT_EQ(CheckOwnership(-1, {}, "it").error(), EBADF);
}

}  // namespace
}  // namespace tracefs
