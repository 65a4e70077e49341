// What the table of mounts says, in a mount namespace of the test's own with
// mounts that no daemon serves: nothing here may ask one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/mount_table.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/client.h"
#include "tracefs/control/mount_note.h"
#include "tracefs/control/place.h"
#include "tracefs/control/wish_json.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {
namespace {

constexpr int kCannot = 77;

class MountedTest : public testing::Test {
 protected:
  // Runs `body` in a process of its own whose mounts end with it.
  void Apart(const std::function<void()>& body) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
    std::fflush(nullptr);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        ::_exit(kCannot);
      }
      body();
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : cannot_ ? kCannot : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "mounts are refused";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  // A mount without a daemon. False if there can be none here.
  bool Mount(const std::string& source, const std::string& point, uid_t owner,
             const std::string& more = "", const char* type = "fuse.tracefs") {
    UniqueFd fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    ::mkdir(point.c_str(), 0755);
    const std::string options =
        "fd=" + std::to_string(fd.get()) +
        ",rootmode=40000,user_id=" + std::to_string(owner) +
        ",group_id=" + std::to_string(owner + 5) + more;
    const bool mounted =
        fd && ::mount(source.c_str(), point.c_str(), type, MS_NOSUID | MS_NODEV,
                      options.c_str()) == 0;
    if (!mounted) cannot_ = true;
    held_.push_back(std::move(fd));
    return mounted;
  }

  TempFolder folder_;
  const std::string one_ = folder_.Path("one");
  const std::string two_ = folder_.Path("two \"b\" ");
  std::vector<UniqueFd> held_;
  bool cannot_ = false;
};

TEST_F(MountedTest, AMountIsKnownByItsDeviceAndItsOwner) {
  Apart([&] {
    if (!Mount("/src", one_, 1234) || !Mount("/other", two_, 0)) return;
    const Result<MountIdentity> one = IdentifyMount(one_);
    ASSERT_TRUE(one.ok()) << one.status().message();
    EXPECT_EQ(one->owner, 1234u);
    EXPECT_EQ(one->group, 1239u);
    const Result<MountIdentity> two = IdentifyMount(two_);
    ASSERT_TRUE(two.ok()) << two.status().message();
    EXPECT_EQ(two->owner, 0u);
    EXPECT_EQ(two->group, 5u);
    EXPECT_NE(one->SocketName(), two->SocketName());
    EXPECT_EQ(MountPointsOf(*one), std::vector{one_});
    EXPECT_EQ(MountPointsOf(*two), std::vector{two_});
    // The first in the table has its own, too.
    const std::vector<MountLine> all = MountTable();
    unsigned major = 0;
    unsigned minor = 0;
    ASSERT_EQ(std::sscanf(all[0].device.c_str(), "%u:%u", &major, &minor), 2);
    EXPECT_EQ(MountPointsOf({.major = major, .minor = minor})[0], all[0].point);
    // A device that nobody has.
    EXPECT_TRUE(MountPointsOf({.major = 4000, .minor = 1}).empty());
  });
}

TEST_F(MountedTest, OtherTypesAreNoMountsOfOurs) {
  Apart([&] {
    if (!Mount("/src", one_, 0, "", "fuse.sshfs")) return;
    EXPECT_EQ(IdentifyMount(one_).status().code(), StatusCode::kInvalid);
    EXPECT_TRUE(CheckNotMountedTwice("/src", one_).ok());
    for (const std::string& point : MountsOf(std::nullopt)) {
      EXPECT_NE(point, one_);
    }
  });
}

TEST_F(MountedTest, MountsAreListedOnceAndByTheirOwner) {
  Apart([&] {
    const std::string bind = folder_.Path("bind");
    if (!Mount("/src", one_, 1234) || !Mount("/other", two_, 4321)) return;
    ASSERT_EQ(::mkdir(bind.c_str(), 0755), 0);
    ASSERT_EQ(::mount(one_.c_str(), bind.c_str(), nullptr, MS_BIND, nullptr),
              0);
    EXPECT_EQ(MountsOf(1234), std::vector{one_});
    EXPECT_EQ(MountsOf(4321), std::vector{two_});
    EXPECT_TRUE(MountsOf(123).empty());
    EXPECT_TRUE(MountsOf(12345).empty());
    std::vector<std::string> ours;
    for (const std::string& point : MountsOf(std::nullopt)) {
      if (point.starts_with(folder_.Path(""))) ours.push_back(point);
    }
    EXPECT_EQ(ours, (std::vector{one_, two_}));
    const Result<MountIdentity> mount = IdentifyMount(bind);
    ASSERT_TRUE(mount.ok());
    EXPECT_EQ(MountPointsOf(*mount), (std::vector{one_, bind}));
  });
}

TEST_F(MountedTest, ASourceIsNotMountedTwiceAtAPlace) {
  Apart([&] {
    const std::string source = folder_.Path("source");
    ASSERT_EQ(::mkdir(source.c_str(), 0755), 0);
    if (!Mount(source, one_, 0)) return;
    const Status twice = CheckNotMountedTwice(source, one_);
    EXPECT_EQ(twice.error(), EBUSY);
    EXPECT_NE(twice.message().find("'" + one_ + "' already"), std::string::npos)
        << twice.message();
    EXPECT_TRUE(CheckNotMountedTwice(folder_.Path(""), one_).ok());
    ASSERT_EQ(::mkdir(two_.c_str(), 0755), 0);
    EXPECT_TRUE(CheckNotMountedTwice(source, two_).ok());
    EXPECT_FALSE(UppermostAt(two_));
    // What lies upon it counts, not what it covers.
    if (!Mount("/elsewhere", one_, 0)) return;
    EXPECT_TRUE(CheckNotMountedTwice(source, one_).ok());
    const auto upper = UppermostAt(one_);
    ASSERT_TRUE(upper);
    EXPECT_EQ(upper->source, "/elsewhere");
  });
}

TEST_F(MountedTest, WhatHasNoSocketIsSaidToBeWithoutADaemon) {
  Apart([&] {
    if (!Mount("/src", one_, 0) || !Mount("/other", two_, 1234)) return;
    // Nobody else's sockets.
    if (::mount("none", "/run", "tmpfs", 0, nullptr) != 0) return;
    const auto mine = ControlClient::Connect(one_, std::chrono::seconds(5));
    EXPECT_EQ(mine.status().error(), ENOENT) << mine.status().message();
    EXPECT_NE(mine.status().message().find("has no control socket"),
              std::string::npos);
    const auto other = ControlClient::Connect(two_, std::chrono::seconds(5));
    EXPECT_EQ(other.status().error(), EPERM);
    EXPECT_NE(other.status().message().find("--as-owner"), std::string::npos);
    EXPECT_EQ(
        ControlClient::Connect("/", std::chrono::seconds(5)).status().code(),
        StatusCode::kInvalid);
    // To a user, another one's mount is nobody's to act on.
    ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(4321), 0);
    const auto user = ControlClient::Connect(one_, std::chrono::seconds(5));
    EXPECT_EQ(user.status().error(), EACCES);
    EXPECT_NE(user.status().message().find("mounted by user 0"),
              std::string::npos);
  });
}

TEST_F(MountedTest, NotesAreReadWhereOnlyTheirOwnerCanPutThem) {
  Apart([&] {
    if (!Mount("/src", one_, 0) || !Mount("/other", two_, 0)) return;
    if (::mount("none", "/run", "tmpfs", 0, "mode=0755") != 0) return;
    const Result<MountIdentity> mount = IdentifyMount(one_);
    const Result<MountIdentity> other = IdentifyMount(two_);
    ASSERT_TRUE(mount.ok() && other.ok());
    EXPECT_EQ(ReadMountNote(*mount).status().code(), StatusCode::kInvalid);
    const auto control = OpenOwnControlFolder(one_);
    ASSERT_TRUE(control.ok()) << control.status().message();
    const auto folder = OpenNoteFolder(*control, one_);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    const std::string place = PlaceOf(folder->get());
    EXPECT_EQ(place, "/run/tracefs-configs");
    ASSERT_TRUE(
        WriteMountNote(folder->get(), *mount, one_, {.config = "/a"}).ok());
    const auto note = ReadMountNote(*mount);
    ASSERT_TRUE(note.ok()) << note.status().message();
    EXPECT_EQ(note->config, "/a");
    EXPECT_FALSE(ReadMountNote(*other).ok());
    // That of a mount that had this number before.
    ASSERT_TRUE(
        WriteMountNote(folder->get(), *mount, two_, {.config = "/b"}).ok());
    EXPECT_FALSE(ReadMountNote(*mount).ok());
    // A second name, or another owner, and it may be anybody's.
    ASSERT_TRUE(
        WriteMountNote(folder->get(), *mount, one_, {.config = "/c"}).ok());
    ASSERT_TRUE(ReadMountNote(*mount).ok());
    const std::string file = place + '/' + std::to_string(mount->major) + ':' +
                             std::to_string(mount->minor) + ".config";
    struct stat st {};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode, S_IFREG | 0600u);
    ASSERT_EQ(::link(file.c_str(), (place + "/second").c_str()), 0);
    EXPECT_FALSE(ReadMountNote(*mount).ok());
    ASSERT_EQ(::unlink((place + "/second").c_str()), 0);
    ASSERT_TRUE(ReadMountNote(*mount).ok());
    ASSERT_EQ(::chown(file.c_str(), 4321, 4321), 0);
    EXPECT_FALSE(ReadMountNote(*mount).ok());
  });
}

// Where its usual places cannot be used, one of its own is made.
TEST_F(MountedTest, AControlFolderIsFoundWhateverOthersHaveMade) {
  Apart([&] {
    if (::mount("none", "/run", "tmpfs", 0, "mode=0755") != 0 ||
        ::mount("none", "/tmp", "tmpfs", 0, "mode=1777") != 0) {
      cannot_ = true;
      return;
    }
    const auto place = [](const std::string& mount_point) {
      const auto folder = OpenOwnControlFolder(mount_point);
      return folder.ok() ? folder->path : folder.status().message();
    };
    EXPECT_EQ(place("/mnt"), "/run/tracefs");
    EXPECT_EQ(place("/run"), "/tmp/tracefs-0");
    ASSERT_EQ(::rmdir("/tmp/tracefs-0"), 0);
    ASSERT_EQ(::mkdir("/tmp/tracefs-0", 0777), 0);
    ASSERT_EQ(::chown("/tmp/tracefs-0", 4321, 4321), 0);
    // Others by the same name.
    ASSERT_EQ(::mkdir("/tmp/tracefs-0-theirs", 0700), 0);
    ASSERT_EQ(::chown("/tmp/tracefs-0-theirs", 4321, 4321), 0);
    const std::string spare = place("/run");
    EXPECT_TRUE(spare.starts_with("/tmp/tracefs-0-")) << spare;
    EXPECT_NE(spare, "/tmp/tracefs-0-theirs");
    EXPECT_EQ(place("/run"), spare) << "it is found again";
    const std::vector<std::string> every = EveryControlDirectory(0);
    EXPECT_EQ(every, (std::vector<std::string>{"/run/tracefs", "/tmp/tracefs-0",
                                               spare}));
    // Nothing lies where the mount goes.
    const Result<ControlFolder> none =
        OpenControlFolder({"/run/tracefs", "/tmp/tracefs-0"}, 0, "/run");
    EXPECT_FALSE(none.ok());
    EXPECT_FALSE(OpenControlFolder({}, 0, "/mnt").ok());
  });
}

TEST(WishJsonTest, FilesAreListedWithBytesThatJsonCannotHold) {
  EXPECT_EQ(WishesJson({}).dump(), "[]");
  const Wish utf8 = {.path = "/a \"b\"\xc3\xa9", .sync = true};
  const Wish other = {.path = "/\xff", .sync = false};
  const auto files = WishesJson({utf8, other});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0]["path"], utf8.path);
  EXPECT_EQ(files[0]["sync"], true);
  EXPECT_EQ(files[0]["kind"], WishKindName(utf8.kind));
  EXPECT_FALSE(files[0].contains("path_bytes"));
  EXPECT_EQ(files[1]["sync"], false);
  EXPECT_EQ(files[1]["path_bytes"].dump(), "[47,255]");
}

}  // namespace
}  // namespace tracefs
