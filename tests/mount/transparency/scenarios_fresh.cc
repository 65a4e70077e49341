// A change is seen by the next call, by whatever means it was made: what
// stat(2) says right before and right after it, within any time for which a
// kernel may keep attributes.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

constexpr int kRw = PROT_READ | PROT_WRITE;

// Times that are told apart lie at least so far from each other: the kernel's
// coarse clock has ticks.
void LetTheClockTick() { SleepMs(20); }

// What a change may change. Logs which of it differs after `change`.
class Before {
 public:
  Before(Run& run, const char* path) : run_(run), path_(path) {
    LetTheClockTick();
    ok_ = ::lstat(path, &st_) == 0;
  }

  void After(const char* change) {
    struct stat now {};
    if (!ok_ || ::lstat(path_, &now) != 0) {
      run_.Note("%s: %s is gone", change, path_);
      return;
    }
    std::string changed;
    const auto add = [&](const char* what, bool differs) {
      if (differs) changed += std::string(" ") + what;
    };
    add("mode", now.st_mode != st_.st_mode);
    add("links", !S_ISDIR(now.st_mode) && now.st_nlink != st_.st_nlink);
    add("owner", now.st_uid != st_.st_uid || now.st_gid != st_.st_gid);
    add("size", !S_ISDIR(now.st_mode) && now.st_size != st_.st_size);
    add("atime", Differs(now.st_atim, st_.st_atim));
    add("mtime", Differs(now.st_mtim, st_.st_mtim));
    add("ctime", Differs(now.st_ctim, st_.st_ctim));
    run_.Note("%s changed of %s:%s", change, path_,
              changed.empty() ? " nothing" : changed.c_str());
    run_.Note("mode %o, links %d, size %lld", now.st_mode,
              S_ISDIR(now.st_mode) ? 0 : static_cast<int>(now.st_nlink),
              S_ISDIR(now.st_mode) ? 0LL : static_cast<long long>(now.st_size));
  }

 private:
  static bool Differs(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
  }

  Run& run_;
  const char* path_;
  struct stat st_ {};
  bool ok_ = false;
};

#define CHANGES(path, expression) \
  do {                            \
    Before before(run, path);     \
    CALL(expression);             \
    before.After(#expression);    \
  } while (false)

// The same for two files that one call changes.
#define CHANGES_BOTH(path, other, expression) \
  do {                                        \
    Before before(run, path);                 \
    Before before_other(run, other);          \
    CALL(expression);                         \
    before.After(#expression);                \
    before_other.After(#expression);          \
  } while (false)

char* Map(int fd, size_t size, int protection, int flags) {
  void* p = ::mmap(nullptr, size, protection, flags, fd, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

// Besides those that it has: ext4 refuses to do without some.
long AddFlag(int fd, int flag) {
  int flags = 0;
  const long rc = ::ioctl(fd, FS_IOC_GETFLAGS, &flags);
  if (rc != 0) return rc;
  flags |= flag;
  return ::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

long WithoutFlag(int fd, uint32_t flag) {
  struct fsxattr value {};
  const long rc = ::ioctl(fd, FS_IOC_FSGETXATTR, &value);
  if (rc != 0) return rc;
  value.fsx_xflags &= ~flag;
  return ::ioctl(fd, FS_IOC_FSSETXATTR, &value);
}

long SetTimes(const char* path, time_t second) {
  const std::array<timespec, 2> times = {timespec{second, 1},
                                         timespec{second, 2}};
  return ::utimensat(AT_FDCWD, path, times.data(), 0);
}

// A file that was read since it was written: its access time stays as it is, by
// whatever means its pages are read (relatime).
void WriteAndRead(Run& run, const char* path) {
  WriteFile(path, Pattern(9000));
  LetTheClockTick();
  run.Content(path);
}

// Runs `body` in a process of its own and waits for it.
template <typename Body>
int Elsewhere(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

constexpr Scenario kScenarios[] = {
    {"fresh.write", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       const int fd = FD(::open("f", O_RDWR));
       CHANGES("f", ::write(fd, "x", 1));
       CHANGES("f", ::pwrite(fd, "x", 1, 20000));
       CHANGES("f", ::pwrite(fd, "x", 0, 0));
       const int append = FD(::open("f", O_WRONLY | O_APPEND));
       CHANGES("f", ::write(append, "end", 3));
       CHANGES("f", ::fsync(append));
       CHANGES("f", ::close(append));
       CHANGES("f", Elsewhere([&] { return ::write(fd, "y", 1) == 1; }));
     }},
    {"fresh.write_by_another_open", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       const int watched = FD(::open("f", O_RDONLY));
       CHANGES("f", Elsewhere([] {
                 const int fd = ::open("f", O_WRONLY);
                 return ::write(fd, Pattern(9000).data(), 9000) == 9000;
               }));
       struct stat st {};
       CALL(::fstat(watched, &st));
       run.Note("size %lld", static_cast<long long>(st.st_size));
     }},
    {"fresh.write_to_set_id_file", kUsersOnly,
     [](Run& run) {
       WriteFile("f", Pattern(10), 0755);
       CALL(::chmod("f", 06755));
       const int fd = FD(::open("f", O_RDWR));
       CHANGES("f", ::write(fd, "x", 1));
       CALL(::fchmod(fd, 04755));
       CHANGES("f", ::ftruncate(fd, 3));
     }},
    {"fresh.truncate", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       CHANGES("f", ::truncate("f", 100));
       const int fd = FD(::open("f", O_RDWR));
       CHANGES("f", ::ftruncate(fd, 7000));
       CHANGES("f", ::close(::open("f", O_WRONLY | O_TRUNC)));
       CHANGES("f", ::close(::open("f", O_WRONLY | O_TRUNC)));
     }},
    {"fresh.fallocate", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       const int fd = FD(::open("f", O_RDWR));
       CHANGES("f", ::fallocate(fd, 0, 0, 20000));
       CHANGES("f", ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 90000));
       CHANGES("f", ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                0, 4096));
     }},
    {"fresh.copy_file_range", kAll,
     [](Run& run) {
       WriteFile("from", Pattern(9000));
       WriteFile("to", "");
       const int from = FD(::open("from", O_RDONLY));
       const int to = FD(::open("to", O_WRONLY));
       CHANGES_BOTH("from", "to",
                    ::copy_file_range(from, nullptr, to, nullptr, 5000, 0));
       CHANGES_BOTH("from", "to",
                    ::copy_file_range(from, nullptr, to, nullptr, 5000, 0));
     }},
    {"fresh.sendfile", kAll,
     [](Run& run) {
       WriteFile("from", Pattern(9000));
       WriteFile("to", "");
       const int from = FD(::open("from", O_RDONLY));
       const int to = FD(::open("to", O_WRONLY));
       CHANGES_BOTH("from", "to", ::sendfile(to, from, nullptr, 9000));
     }},
    {"fresh.read", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(9000));
       const int fd = FD(::open("f", O_RDONLY));
       std::array<char, 100> b;
       CHANGES("f", ::read(fd, b.data(), b.size()));
       CHANGES("f", ::read(fd, b.data(), b.size()));
     }},
    {"fresh.mapped_read", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(9000));
       const int fd = FD(::open("f", O_RDONLY));
       const char* p = nullptr;
       CHANGES("f", (p = Map(fd, 9000, PROT_READ, MAP_SHARED)) != nullptr);
       if (p == nullptr) return;
       volatile char sink = p[5000];
       static_cast<void>(sink);
       struct stat st {};
       CALL(::lstat("f", &st));
       run.Note("read since written: %d",
                st.st_atim.tv_sec > st.st_mtim.tv_sec ||
                    (st.st_atim.tv_sec == st.st_mtim.tv_sec &&
                     st.st_atim.tv_nsec > st.st_mtim.tv_nsec));
     }},
    {"fresh.mapped_store", kAll,
     [](Run& run) {
       WriteAndRead(run, "f");
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 9000, kRw, MAP_SHARED);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       CHANGES("f", p[10] = 'x');
     }},
    {"fresh.mapped_store_synced", kAll,
     [](Run& run) {
       WriteAndRead(run, "f");
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 9000, kRw, MAP_SHARED);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       CHANGES("f", (p[10] = 'x', ::msync(p, 9000, MS_SYNC)));
     }},
    {"fresh.mapped_store_fsynced", kAll,
     [](Run& run) {
       WriteAndRead(run, "f");
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 9000, kRw, MAP_SHARED);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       CHANGES("f", (p[10] = 'x', ::fsync(fd)));
     }},
    {"fresh.mapped_store_unmapped", kAll,
     [](Run& run) {
       WriteAndRead(run, "f");
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 9000, kRw, MAP_SHARED);
       CALL(::close(fd));
       if (p == nullptr) return;
       CHANGES("f", (p[10] = 'x', ::munmap(p, 9000)));
     }},
    {"fresh.mapped_store_elsewhere", kAll,
     [](Run& run) {
       WriteAndRead(run, "f");
       CHANGES("f", Elsewhere([] {
                 const int fd = ::open("f", O_RDWR);
                 char* p = Map(fd, 9000, kRw, MAP_SHARED);
                 if (p == nullptr) return false;
                 p[10] = 'x';
                 return true;
               }));
       run.Content("f");
     }},
    {"fresh.attributes", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CHANGES("f", ::chmod("f", 0600));
       const int fd = FD(::open("f", O_RDONLY));
       CHANGES("f", ::fchmod(fd, 0640));
       CHANGES("f", ::fchown(fd, static_cast<uid_t>(-1), ::getegid()));
       CHANGES("f", SetTimes("f", 1000000000));
       CHANGES("f", ::futimens(fd, nullptr));
       CHANGES("f", Elsewhere([] { return ::chmod("f", 0604) == 0; }));
     }},
    {"fresh.xattrs", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CHANGES("f", ::setxattr("f", "user.a", "1", 1, 0));
       CHANGES("f", ::setxattr("f", "user.a", "2", 1, XATTR_REPLACE));
       CHANGES("f", ::removexattr("f", "user.a"));
       CHANGES("f", ::removexattr("f", "user.a"));
       // A mode and nothing else: rwx, r--, ---.
       constexpr unsigned char kAcl[] = {
           2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 4,   0,
           4, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
       CHANGES("f", ::setxattr("f", "system.posix_acl_access", kAcl,
                               sizeof kAcl, 0));
     }},
    {"fresh.inode_flags", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDONLY));
       CHANGES("f", AddFlag(fd, FS_NODUMP_FL));
       CHANGES("f", WithoutFlag(fd, FS_XFLAG_NODUMP));
       CALL(::mkdir("d", 0755));
       const int dir = FD(::open("d", O_RDONLY));
       CHANGES("d", AddFlag(dir, FS_NODUMP_FL));
     }},
    {"fresh.link_and_unlink", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       CHANGES_BOTH("f", "d", ::link("f", "d/g"));
       CHANGES("d/g", ::link("f", "h"));
       CHANGES_BOTH("f", "d", ::unlink("d/g"));
       CHANGES("h", ::unlink("f"));
     }},
    {"fresh.rename", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       WriteFile("g", "y");
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("e", 0755));
       CALL(::link("g", "kept"));
       CALL(::rename("f", "d/f"));
       CHANGES_BOTH("d", "e", ::rename("d/f", "e/f"));
       // Replaces one of two names.
       CHANGES_BOTH("kept", "e", ::rename("e/f", "g"));
       CALL(::mkdir("d/sub", 0755));
       CHANGES_BOTH("d", "e", ::rename("d/sub", "e/sub"));
       WriteFile("i", "i");
       CHANGES_BOTH(
           "i", "e/sub",
           ::renameat2(AT_FDCWD, "i", AT_FDCWD, "e/sub", RENAME_EXCHANGE));
     }},
    {"fresh.names_in_a_directory", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CHANGES("d", ::close(::open("d/f", O_CREAT | O_EXCL | O_WRONLY, 0644)));
       CHANGES("d", ::close(::open("d/f", O_CREAT | O_WRONLY, 0644)));
       CHANGES("d", ::mkdir("d/sub", 0755));
       CHANGES("d", ::symlink("f", "d/s"));
       CHANGES("d", ::mknod("d/n", S_IFIFO | 0644, 0));
       CHANGES("d", ::link("d/f", "d/l"));
       CHANGES("d", ::rename("d/l", "d/m"));
       CHANGES("d", ::unlink("d/m"));
       CHANGES("d", ::rmdir("d/sub"));
       CHANGES("d", ::close(::open("d", O_TMPFILE | O_RDWR, 0600)));
     }},
    {"fresh.unlinked_while_open", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDWR));
       run.FStat(fd);
       CALL(::unlink("f"));
       run.FStat(fd);
       CALL(::write(fd, "longer", 6));
       run.FStat(fd);
       CALL(::fchmod(fd, 0600));
       run.FStat(fd);
     }},
};

}  // namespace

std::span<const Scenario> FreshScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
