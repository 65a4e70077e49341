// Where sockets lie, and directories that cannot be trusted.
#include "tracefs/control/place.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace tracefs {
namespace {

class ControlPlaceTest : public ::testing::Test {
 protected:
  ControlPlaceTest() {
    char name[] = "/tmp/tracefs-place-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~ControlPlaceTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(ControlPlaceTest, SocketIsNamedAfterTheDevice) {
  EXPECT_EQ((MountIdentity{0, 53, 0}).SocketName(), "0:53.sock");
}

TEST_F(ControlPlaceTest, RootAndUsersHaveTheirOwnDirectories) {
  EXPECT_EQ(ControlDirectories(0).front(), "/run/tracefs");
  EXPECT_EQ(ControlDirectories(1000).front(), "/run/user/1000/tracefs");
  EXPECT_EQ(ControlDirectories(1000).back(), "/tmp/tracefs-1000");
}

TEST_F(ControlPlaceTest, OfTheEnvironmentOnlyWhatIsOursAndClosedIsTaken) {
  const auto front = [](const std::string& value) {
    ::setenv("XDG_RUNTIME_DIR", value.c_str(), 1);
    const std::string first = ControlDirectories(::geteuid()).front();
    ::unsetenv("XDG_RUNTIME_DIR");
    return first;
  };
  if (::geteuid() == 0) {
    EXPECT_EQ(front(directory_), "/run/tracefs");
  }
  const std::string theirs = directory_ + "/theirs";
  ASSERT_EQ(::mkdir(theirs.c_str(), 0700), 0);
  const uid_t root = ::geteuid();
  const uid_t user = root == 0 ? 4321 : root;
  if (root == 0) {
    ASSERT_EQ(::chown(directory_.c_str(), user, user), 0);
    ASSERT_EQ(::seteuid(user), 0);
  }
  const std::string usual = "/run/user/" + std::to_string(user) + "/tracefs";
  EXPECT_EQ(front(directory_), directory_ + "/tracefs");  // mkdtemp: 0700
  EXPECT_EQ(ControlDirectories(user).front(), usual);
  EXPECT_EQ(ControlDirectories(user).size(), 2u);
  const std::string link = directory_ + "/link";
  ASSERT_EQ(::symlink(directory_.c_str(), link.c_str()), 0);
  for (const std::string& other : {link, directory_ + "/none", std::string(),
                                   directory_.substr(1), std::string("/tmp")}) {
    EXPECT_EQ(front(other), usual) << other;
  }
  if (root == 0) {
    EXPECT_EQ(front(theirs), usual);
  }
  for (const mode_t mode : {0750, 0704, 0701}) {
    ASSERT_EQ(::chmod(directory_.c_str(), mode), 0);
    EXPECT_EQ(front(directory_), usual) << mode;
  }
  if (root == 0) {
    ASSERT_EQ(::seteuid(root), 0);
  }
}

TEST_F(ControlPlaceTest, APlaceIsWhereALinkLeads) {
  const std::string link = directory_ + "/link";
  ASSERT_EQ(::symlink(directory_.c_str(), link.c_str()), 0);
  EXPECT_EQ(PlaceOf(link), directory_);
  EXPECT_EQ(PlaceOf(directory_ + "/none"), directory_ + "/none");
  EXPECT_EQ(PlaceOf(-1), "");
}

TEST_F(ControlPlaceTest, AnotherUsersDirectoryIsAskedForInItsOwnPlaces) {
  ::setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  EXPECT_EQ(ControlDirectories(1000).front(), "/run/user/1000/tracefs");
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(ControlPlaceTest, OtherFileSystemsAreNoTracefsMounts) {
  EXPECT_EQ(IdentifyMount(directory_).status().code(), StatusCode::kInvalid);
  EXPECT_EQ(IdentifyMount(directory_ + "/none").status().error(), ENOENT);
}

TEST_F(ControlPlaceTest, DirectoryIsMadeWithTheRightMode) {
  const uid_t me = ::geteuid();
  const std::string path = directory_ + "/control";
  EXPECT_EQ(OpenControlDirectory(path, me, false).status().error(), ENOENT);
  ASSERT_TRUE(OpenControlDirectory(path, me, true).ok());
  ASSERT_TRUE(OpenControlDirectory(path, me, true).ok());  // again
  ASSERT_TRUE(OpenControlDirectory(path, me, false).ok());
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, me == 0 ? 0755u : 0700u);
}

TEST_F(ControlPlaceTest, Malicious_DirectoriesOfOthersAreRefused) {
  const uid_t me = ::geteuid();
  const std::string path = directory_ + "/control";
  ASSERT_EQ(::mkdir(path.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_EQ(OpenControlDirectory(path, me, true).status().error(), EPERM);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_TRUE(OpenControlDirectory(path, me, true).ok());
  const std::string link = directory_ + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_FALSE(OpenControlDirectory(link, me, true).ok());
  if (me != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(OpenControlDirectory(path, 0, true).status().error(), EPERM);
  EXPECT_TRUE(OpenControlDirectory(path, 65534, true).ok());
}

TEST_F(ControlPlaceTest, Malicious_ADirectoryOfAGroupIsRefused) {
  const uid_t me = ::geteuid();
  const std::string path = directory_ + "/control";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  for (const mode_t mode : {0720, 0702, 0770, 01777}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const Result<UniqueFd> opened = OpenControlDirectory(path, me, true);
    EXPECT_EQ(opened.status().error(), EPERM) << mode;
    EXPECT_NE(opened.status().message().find("can be written by others"),
              std::string::npos)
        << opened.status().message();
  }
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  EXPECT_TRUE(OpenControlDirectory(path, me, false).ok());
}

TEST_F(ControlPlaceTest, Malicious_AFileInItsPlaceIsRefused) {
  const std::string path = directory_ + "/control";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(OpenControlDirectory(path, ::geteuid(), true).ok());
}

}  // namespace
}  // namespace tracefs
