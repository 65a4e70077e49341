// What the backing file system makes of creations under AsCaller, and of
// writes without CAP_FSETID. The kernel is the judge; most need root.
#include "tracefs/fs/credentials.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/own_rights.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr uint32_t kAlice = 61234;
constexpr uint32_t kBob = 61235;
constexpr uint32_t kUsers = 61300;
constexpr uint32_t kProject = 61301;

uint32_t FsUid() {
  return static_cast<uint32_t>(::syscall(SYS_setfsuid, 0xffffffffu));
}
uint32_t FsGid() {
  return static_cast<uint32_t>(::syscall(SYS_setfsgid, 0xffffffffu));
}

bool HasEffective(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  ::syscall(SYS_capget, &header, data);
  return ((data[capability / 32].effective >> (capability % 32)) & 1) != 0;
}

// Each test runs on a thread of its own, so that it starts with the state of a
// fresh worker and leaves the others' alone.
class CredentialsTest : public testing::Test {
 protected:
  // The daemon's umask is the one of its first thread.
  static void SetUpTestSuite() { ::umask(022); }
  void SetUp() override {
    char name[] = "/tmp/tracefs_credentials.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
    dir_.Reset(::open(name, O_DIRECTORY | O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(dir_.valid());
  }
  void TearDown() override {
    const std::string command = "rm -rf " + path_;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  template <typename F>
  static void OnFreshThread(F body) {
    std::thread(body).join();
  }

  struct stat Stat(const char* name) const {
    struct stat st = {};
    EXPECT_EQ(::fstatat(dir_.get(), name, &st, AT_SYMLINK_NOFOLLOW), 0)
        << name << ": " << std::strerror(errno);
    return st;
  }
  void ExpectOwned(const char* name, uint32_t uid, uint32_t gid,
                   mode_t mode) const {
    const struct stat st = Stat(name);
    EXPECT_EQ(st.st_uid, uid) << name;
    EXPECT_EQ(st.st_gid, gid) << name;
    EXPECT_EQ(st.st_mode & 07777, mode) << name;
  }

  std::string path_;
  UniqueFd dir_;
};

class CredentialsAsRootTest : public CredentialsTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !HasEffective(CAP_SETUID)) {
      GTEST_SKIP() << "needs root: creates files for other users";
    }
    CredentialsTest::SetUp();
  }
  void TearDown() override {
    if (!path_.empty()) CredentialsTest::TearDown();
  }
};

TEST_F(CredentialsAsRootTest, EveryCreatingCallGivesOwnerGroupAndMaskedMode) {
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 027);
    ASSERT_EQ(as.error(), 0);
    const int dir = dir_.get();
    EXPECT_EQ(::mkdirat(dir, "dir", as.Mode(0777)), 0);
    UniqueFd file(::openat(dir, "file", O_CREAT | O_EXCL, as.Mode(0666)));
    EXPECT_TRUE(file.valid());
    EXPECT_EQ(::symlinkat("x", dir, "link"), 0);
    EXPECT_EQ(::mknodat(dir, "fifo", S_IFIFO | as.Mode(0666), 0), 0);
    EXPECT_EQ(::mknodat(dir, "socket", S_IFSOCK | as.Mode(0777), 0), 0);
    EXPECT_EQ(::mknodat(dir, "null", S_IFCHR | as.Mode(0666), makedev(1, 3)),
              0);
    UniqueFd unnamed(::openat(dir, ".", O_TMPFILE | O_RDWR, as.Mode(0666)));
    if (unnamed.valid()) {  // not every file system has them
      struct stat st;
      ASSERT_EQ(::fstat(unnamed.get(), &st), 0);
      EXPECT_EQ(st.st_uid, kAlice);
      EXPECT_EQ(st.st_gid, kUsers);
      EXPECT_EQ(st.st_mode & 07777, 0640u);
    }
  });
  ExpectOwned("dir", kAlice, kUsers, 0750);
  ExpectOwned("file", kAlice, kUsers, 0640);
  ExpectOwned("link", kAlice, kUsers, 0777);
  ExpectOwned("fifo", kAlice, kUsers, 0640);
  ExpectOwned("socket", kAlice, kUsers, 0750);
  ExpectOwned("null", kAlice, kUsers, 0640);
}

TEST_F(CredentialsAsRootTest, CallersFollowOneAnotherOnOneThread) {
  OnFreshThread([&] {
    const struct {
      const char* name;
      uint32_t uid, gid;
      mode_t umask, expected;
    } kCalls[] = {
        {"a", kAlice, kUsers, 022, 0755}, {"b", kAlice, kUsers, 077, 0700},
        {"c", kBob, kUsers, 077, 0700},   {"d", 0, 0, 0, 0777},
        {"e", kBob, kProject, 0, 0777},   {"f", kAlice, kUsers, 022, 0755},
    };
    for (const auto& call : kCalls) {
      AsCaller as(call.uid, call.gid, call.umask);
      ASSERT_EQ(as.error(), 0);
      ASSERT_EQ(::mkdirat(dir_.get(), call.name, as.Mode(0777)), 0);
      ExpectOwned(call.name, call.uid, call.gid, call.expected);
    }
  });
}

TEST_F(CredentialsAsRootTest, SetGidDirectoryGivesItsGroup) {
  ASSERT_EQ(::mkdirat(dir_.get(), "shared", 0777), 0);
  ASSERT_EQ(::fchownat(dir_.get(), "shared", 0, kProject, 0), 0);
  ASSERT_EQ(::fchmodat(dir_.get(), "shared", 02777, 0), 0);
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 022);
    EXPECT_EQ(::mkdirat(dir_.get(), "shared/dir", as.Mode(0777)), 0);
    UniqueFd file(
        ::openat(dir_.get(), "shared/file", O_CREAT | O_EXCL, as.Mode(0666)));
    EXPECT_TRUE(file.valid());
    // The kernel has already judged the caller's right to the bit before it
    // sent the request: CAP_FSETID of the daemon must let it through.
    UniqueFd setgid(
        ::openat(dir_.get(), "shared/sgid", O_CREAT | O_EXCL, as.Mode(02755)));
    EXPECT_TRUE(setgid.valid());
  });
  ExpectOwned("shared/dir", kAlice, kProject, 02755);
  ExpectOwned("shared/file", kAlice, kProject, 0644);
  ExpectOwned("shared/sgid", kAlice, kProject, 02755);
}

TEST_F(CredentialsAsRootTest, DefaultAclReplacesTheUmask) {
  // linux/include/uapi/linux/posix_acl_xattr.h: version 2, then entries of
  // {tag, perm, id}: user::rwx, user:bob:rwx, group::r-x, mask::rwx, other::---
  struct Entry {
    uint16_t tag, perm;
    uint32_t id;
  };
  struct {
    uint32_t version = 2;
    Entry entries[5] = {{0x01, 7, 0xffffffff},
                        {0x02, 7, kBob},
                        {0x04, 5, 0xffffffff},
                        {0x10, 7, 0xffffffff},
                        {0x20, 0, 0xffffffff}};
  } acl;
  ASSERT_EQ(::mkdirat(dir_.get(), "acl", 0777), 0);
  const std::string path = path_ + "/acl";
  if (::setxattr(path.c_str(), "system.posix_acl_default", &acl, sizeof acl,
                 0) != 0) {
    ASSERT_EQ(errno, EOPNOTSUPP);
    GTEST_SKIP() << "no ACLs in /tmp";
  }
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 077);
    if (!ThreadCredentials::Current().private_umask()) return;
    UniqueFd file(
        ::openat(dir_.get(), "acl/file", O_CREAT | O_EXCL, as.Mode(0666)));
    EXPECT_TRUE(file.valid());
    EXPECT_EQ(::mkdirat(dir_.get(), "acl/dir", as.Mode(0777)), 0);
  });
  // The umask 077 plays no part; the group bits show the ACL's mask.
  ExpectOwned("acl/file", kAlice, kUsers, 0660);
  ExpectOwned("acl/dir", kAlice, kUsers, 0770);
}

TEST_F(CredentialsAsRootTest, CapabilitiesStayWhoeverTheCaller) {
  ASSERT_EQ(::mkdirat(dir_.get(), "private", 0700), 0);
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 022);
    EXPECT_EQ(::mkdirat(dir_.get(), "private/sub", as.Mode(0777)), 0)
        << std::strerror(errno);
    EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE));
    EXPECT_TRUE(HasEffective(CAP_FSETID));
    // Others' files can still be changed: what the kernel allowed is done.
    EXPECT_EQ(::fchmodat(dir_.get(), "private", 0711, 0), 0);
  });
  ExpectOwned("private/sub", kAlice, kUsers, 0755);
}

TEST_F(CredentialsAsRootTest, WithoutOverridesTheDirectoryDecides) {
  ASSERT_EQ(::mkdirat(dir_.get(), "private", 0700), 0);
  ASSERT_EQ(::mkdirat(dir_.get(), "sticky", 0777), 0);
  ASSERT_EQ(::fchmodat(dir_.get(), "sticky", 01777, 0), 0);
  ASSERT_EQ(::mkdirat(dir_.get(), "sticky/others", 0777), 0);
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 022);
    ThreadCredentials& thread = ThreadCredentials::Current();
    thread.AllowOverrides(0);
    errno = ERANGE;
    thread.AllowOverrides(0);
    EXPECT_EQ(errno, ERANGE);
    EXPECT_EQ(::mkdirat(dir_.get(), "private/sub", 0777), -1);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(::unlinkat(dir_.get(), "sticky/others", AT_REMOVEDIR), -1);
    EXPECT_EQ(errno, EPERM);
    // Looking up goes on, and what creators asked for is still kept.
    EXPECT_EQ(::faccessat(dir_.get(), "private/.", F_OK, AT_EACCESS), 0);
    EXPECT_TRUE(HasEffective(CAP_FSETID));
    thread.AllowFsetid(false);
    EXPECT_FALSE(HasEffective(CAP_DAC_OVERRIDE));
    thread.AllowFsetid(true);
    EXPECT_FALSE(HasEffective(CAP_DAC_OVERRIDE));
    thread.AllowOverrides(kDacOverride);
    EXPECT_EQ(::mkdirat(dir_.get(), "private/sub", 0777), 0);
    EXPECT_EQ(::unlinkat(dir_.get(), "sticky/others", AT_REMOVEDIR), -1);
    thread.AllowOverrides(kOverrides);
    EXPECT_EQ(::unlinkat(dir_.get(), "sticky/others", AT_REMOVEDIR), 0);
  });
}

TEST_F(CredentialsAsRootTest, TheProcessTakesItsRightsBack) {
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 022);
    ThreadCredentials::Current().AllowOverrides(0);
    TakeBackOwnRights();
    EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE));
    EXPECT_TRUE(HasEffective(CAP_FOWNER));
    // And they can be given up again.
    ThreadCredentials::Current().AllowOverrides(0);
    EXPECT_FALSE(HasEffective(CAP_FOWNER));
    AsDaemon as_daemon;
    EXPECT_TRUE(HasEffective(CAP_FOWNER));
  });
}

// libfuse starts workers from workers.
TEST_F(CredentialsAsRootTest, AThreadMadeByOneThatActsForACallerIsTheDaemons) {
  const mode_t before = ::umask(022);
  OnFreshThread([&] {
    { AsDaemon as_daemon; }
    AsCaller as(kAlice, kUsers, 0777);
    ThreadCredentials::Current().AllowOverrides(0);
    ThreadCredentials::Current().AllowFsetid(false);
    std::thread([&] {
      ThreadCredentials::Current().AllowFsetid(true);
      EXPECT_TRUE(HasEffective(CAP_FSETID));
    }).join();
    std::thread([&] {
      EXPECT_EQ(ThreadCredentials::Current().BecomeDaemon(), 0);
      EXPECT_TRUE(HasEffective(CAP_FSETID));
      EXPECT_EQ(FsUid(), ::geteuid());
      EXPECT_EQ(FsGid(), ::getegid());
      EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE));
      EXPECT_TRUE(HasEffective(CAP_FOWNER));
      const mode_t mask = ::umask(0);
      EXPECT_EQ(mask, 022u);
    }).join();
    std::thread([&] {
      ThreadCredentials::Current();
      TakeBackOwnRights();
      EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE)) << "also if never asked for";
    }).join();
    std::thread([&] {
      TakeBackOwnRights();
      EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE))
          << "also if it does just that";
    }).join();
  });
  ::umask(before);
}

TEST_F(CredentialsAsRootTest, OtherThreadsKeepTheirIdsAndUmask) {
  const mode_t before = ::umask(022);
  ::umask(before);
  OnFreshThread([&] {
    AsCaller as(kAlice, kUsers, 0123);
    EXPECT_EQ(FsUid(), kAlice);
    EXPECT_EQ(FsGid(), kUsers);
    std::thread([] {
      // A new thread inherits from its maker, then goes its own way.
      AsCaller bob(kBob, kProject, 0);
      EXPECT_EQ(FsUid(), kBob);
    }).join();
    EXPECT_EQ(FsUid(), kAlice);
    const mode_t mine = ::umask(0);
    EXPECT_EQ(mine, 0123u);
  });
  EXPECT_EQ(FsUid(), ::geteuid());
  EXPECT_EQ(FsGid(), ::getegid());
  const mode_t after = ::umask(before);
  EXPECT_EQ(after, before);
}

TEST_F(CredentialsAsRootTest, AsDaemonUndoesACaller) {
  const mode_t before = ::umask(022);
  OnFreshThread([&] {
    { AsCaller as(kAlice, kUsers, 0); }
    EXPECT_EQ(FsUid(), kAlice) << "the switch back is lazy";
    AsDaemon as_daemon;
    EXPECT_EQ(as_daemon.error(), 0);
    UniqueFd file(::openat(dir_.get(), "own", O_CREAT | O_EXCL, 0666));
    EXPECT_TRUE(file.valid());
  });
  ::umask(before);
  ExpectOwned("own", ::geteuid(), ::getegid(), 0644);
}

TEST_F(CredentialsAsRootTest, IdsThatAreNoneAreRefused) {
  OnFreshThread([&] {
    { AsCaller as(kAlice, kUsers); }
    EXPECT_EQ(AsCaller(0xffffffff, kUsers).error(), EOVERFLOW);
    EXPECT_EQ(AsCaller(kAlice, 0xffffffff).error(), EOVERFLOW);
    EXPECT_EQ(FsUid(), kAlice);
    EXPECT_EQ(AsCaller(kBob, kUsers).error(), 0);
    EXPECT_EQ(FsUid(), kBob);
  });
}

TEST_F(CredentialsAsRootTest, WriteWithoutFsetidClearsSetIdBits) {
  auto make = [&](const char* name) {
    UniqueFd fd(::openat(dir_.get(), name, O_CREAT | O_RDWR, 0777));
    EXPECT_EQ(::fchmod(fd.get(), 06777), 0);
    return fd;
  };
  UniqueFd kept = make("kept");
  UniqueFd written = make("written");
  UniqueFd truncated = make("truncated");
  UniqueFd opened = make("opened");
  UniqueFd as_alice = make("as_alice");
  UniqueFd kept_later = make("kept_later");
  OnFreshThread([&] {
    EXPECT_EQ(::pwrite(kept.get(), "x", 1, 0), 1);
    ThreadCredentials& thread = ThreadCredentials::Current();
    thread.AllowFsetid(false);
    EXPECT_EQ(::pwrite(written.get(), "x", 1, 0), 1);
    EXPECT_EQ(::ftruncate(truncated.get(), 100), 0);
    UniqueFd fd(::openat(dir_.get(), "opened", O_WRONLY | O_TRUNC));
    EXPECT_TRUE(fd.valid());
    EXPECT_FALSE(HasEffective(CAP_FSETID));
    // A change of caller must not bring it back.
    { AsCaller as(kAlice, kUsers); }
    EXPECT_FALSE(HasEffective(CAP_FSETID));
    EXPECT_EQ(::pwrite(as_alice.get(), "x", 1, 0), 1);
    thread.AllowFsetid(true);
    EXPECT_TRUE(HasEffective(CAP_FSETID));
    EXPECT_EQ(::pwrite(kept_later.get(), "x", 1, 0), 1);
  });
  EXPECT_EQ(Stat("kept").st_mode & 07777, 06777u);
  EXPECT_EQ(Stat("written").st_mode & 07777, 0777u);
  EXPECT_EQ(Stat("truncated").st_mode & 07777, 0777u);
  EXPECT_EQ(Stat("opened").st_mode & 07777, 0777u);
  EXPECT_EQ(Stat("as_alice").st_mode & 07777, 0777u);
  EXPECT_EQ(Stat("kept_later").st_mode & 07777, 06777u);
}

TEST_F(CredentialsAsRootTest, AllowFsetidKeepsErrno) {
  OnFreshThread([&] {
    ThreadCredentials& thread = ThreadCredentials::Current();
    errno = EBADF;
    thread.AllowFsetid(false);
    thread.AllowFsetid(true);
    EXPECT_EQ(errno, EBADF);
  });
}

TEST_F(CredentialsAsRootTest, TheDaemonHasFsetidAgain) {
  OnFreshThread([&] {
    ThreadCredentials::Current().AllowFsetid(false);
    AsDaemon as_daemon;
    EXPECT_TRUE(HasEffective(CAP_FSETID));
  });
}

TEST_F(CredentialsAsRootTest, AnOrdinaryThreadIsNotRootAndBecomesItAgain) {
  OnFreshThread([&] {
    ThreadCredentials& thread = ThreadCredentials::Current();
    ASSERT_EQ(thread.Become(0, 0), 0);
    thread.BecomeOrdinary();
    EXPECT_EQ(FsUid(), kNobody);
    EXPECT_TRUE(HasEffective(CAP_DAC_OVERRIDE));
    thread.BecomeOrdinary();
    EXPECT_EQ(FsUid(), kNobody);
    ASSERT_EQ(thread.Become(0, 0), 0);
    EXPECT_EQ(FsUid(), 0u);
    // Some caller's ids will do.
    ASSERT_EQ(thread.Become(kAlice, kUsers), 0);
    thread.BecomeOrdinary();
    EXPECT_EQ(FsUid(), kAlice);
    // And nobody may be a caller, too.
    ASSERT_EQ(thread.Become(0, 0), 0);
    thread.BecomeOrdinary();
    ASSERT_EQ(thread.Become(kNobody, kNobody), 0);
    EXPECT_EQ(FsUid(), kNobody);
    EXPECT_EQ(FsGid(), kNobody);
  });
}

TEST_F(CredentialsAsRootTest, Race_ThreadsCreateForTheirOwnCallers) {
  constexpr int kThreads = 8;
  constexpr int kFiles = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kFiles; ++i) {
        const uint32_t uid = kAlice + static_cast<uint32_t>((t + i) % 5);
        const mode_t mask = (i % 3 == 0) ? 077 : 022;
        AsCaller as(uid, kUsers + static_cast<uint32_t>(t), mask);
        ASSERT_EQ(as.error(), 0);
        const std::string name = std::to_string(t) + "." + std::to_string(i);
        UniqueFd fd(::openat(dir_.get(), name.c_str(), O_CREAT | O_EXCL,
                             as.Mode(0666)));
        ASSERT_TRUE(fd.valid());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kFiles; ++i) {
      const std::string name = std::to_string(t) + "." + std::to_string(i);
      ExpectOwned(name.c_str(), kAlice + static_cast<uint32_t>((t + i) % 5),
                  kUsers + static_cast<uint32_t>(t),
                  (i % 3 == 0) ? 0600 : 0644);
    }
  }
}

// The exit status of a child that runs `body`; it says what went wrong.
template <typename F>
int InChild(F body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST_F(CredentialsAsRootTest, CapabilitiesStayEvenWhereSecurebitsAreLocked) {
  ASSERT_EQ(::mkdirat(dir_.get(), "private", 0700), 0);
  EXPECT_EQ(InChild([&] {
              if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP_LOCKED, 0,
                          0, 0) != 0) {
                return 1;
              }
              AsCaller as(kAlice, kUsers, 0);
              if (as.error() != 0 || FsUid() != kAlice) return 2;
              if (!HasEffective(CAP_DAC_OVERRIDE)) return 3;
              if (::mkdirat(dir_.get(), "private/sub", 0777) != 0) return 4;
              ThreadCredentials::Current().AllowFsetid(false);
              if (HasEffective(CAP_FSETID)) return 5;
              AsCaller bob(kBob, kUsers);
              if (HasEffective(CAP_FSETID)) return 6;
              if (AsDaemon().error() != 0) return 7;
              return HasEffective(CAP_FSETID) ? 0 : 8;
            }),
            0);
  ExpectOwned("private/sub", kAlice, kUsers, 0777);
}

TEST_F(CredentialsTest, WithoutPrivilegeOnlyTheUmaskIsSwitched) {
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(
      InChild([&] {
        if (::geteuid() == 0 &&
            (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
          return 5;
        }
        const uint32_t uid = FsUid();
        AsCaller as(kAlice, kUsers, 0177);
        if (as.error() != 0 || FsUid() != uid) return 1;
        if (ThreadCredentials::Current().switches_ids()) return 2;
        ThreadCredentials::Current().AllowFsetid(false);
        UniqueFd fd(::openat(dir_.get(), "f", O_CREAT | O_EXCL, as.Mode(0777)));
        struct stat st;
        if (::fstat(fd.get(), &st) != 0) return 3;
        if (st.st_uid != uid || (st.st_mode & 07777) != 0600) return 4;
        AsDaemon as_daemon;
        return as_daemon.error();
      }),
      0);
}

}  // namespace
}  // namespace tracefs
