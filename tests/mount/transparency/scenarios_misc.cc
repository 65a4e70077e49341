// ioctls, inode flags, notification, handles, and the habits of programs.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// The inode flags that programs set; the others are the file system's own.
constexpr unsigned kSettable =
    FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL | FS_SYNC_FL;

int GetFlags(int fd, unsigned* flags) {
  long value = 0;
  const int result = ::ioctl(fd, FS_IOC_GETFLAGS, &value);
  *flags = static_cast<unsigned>(value) & kSettable;
  return result;
}

// Sets or clears one flag; the others stay.
int ChangeFlag(const char* path, unsigned flag, bool on) {
  const int fd = ::open(path, O_RDONLY);
  if (fd < 0) return -1;
  long value = 0;
  int result = ::ioctl(fd, FS_IOC_GETFLAGS, &value);
  if (result == 0) {
    value =
        on ? value | static_cast<long>(flag) : value & ~static_cast<long>(flag);
    result = ::ioctl(fd, FS_IOC_SETFLAGS, &value);
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return result;
}

// All that can be tried on a file with such a flag.
void TryOnFlagged(Run& run) {
  for (const int flags :
       {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_APPEND,
        O_WRONLY | O_APPEND | O_TRUNC, O_WRONLY | O_TRUNC, O_RDONLY | O_TRUNC,
        O_RDWR | O_TRUNC, O_RDONLY | O_TRUNC | O_DIRECTORY}) {
    const int fd = FD(::open("f", flags));
    if (fd < 0) continue;
    CALL(::write(fd, "w", 1));
    CALL(::pwrite(fd, "p", 1, 0));
    CALL(::ftruncate(fd, 1));
    CALL(::fallocate(fd, 0, 0, 100));
    CALL(::fchmod(fd, 0600));
    CALL(::close(fd));
  }
  CALL(::truncate("f", 1));
  CALL(::chmod("f", 0600));
  CALL(::utimensat(AT_FDCWD, "f", nullptr, 0));
  const timespec times[2] = {{1, 1}, {1, 1}};
  CALL(::utimensat(AT_FDCWD, "f", times, 0));
  CALL(::link("f", "g"));
  CALL(::rename("f", "h"));
  CALL(::unlink("f"));
  run.Content("f");
}

// Events of a directory watch as "mask name".
void LogEvents(Run& run, int fd) {
  char buffer[8192];
  pollfd ready = {fd, POLLIN, 0};
  std::vector<std::string> lines;
  while (::poll(&ready, 1, 50) == 1) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    for (ssize_t at = 0; at < n;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      char text[512];
      std::snprintf(text, sizeof text, "%08x %s", event.mask,
                    event.len > 0 ? buffer + at + sizeof event : "-");
      lines.emplace_back(text);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  for (const std::string& line : lines) run.Note("event %s", line.c_str());
}

constexpr Scenario kScenarios[] = {
    {"misc.ioctl_on_a_file", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       const int fd = FD(::open("f", O_RDWR));
       int n = 0;
       CALL(::ioctl(fd, FIONREAD, &n));
       run.Note("n %d", n);
       CALL(::lseek(fd, 100, SEEK_SET));
       CALL(::ioctl(fd, FIONREAD, &n));
       run.Note("n %d", n);
       termios t;
       CALL(::ioctl(fd, TCGETS, &t));
       CALL(::ioctl(fd, BLKGETSIZE64, &t));
       CALL(::ioctl(fd, 0xdeadbeef, &t));
       CALL(::isatty(fd));
       const int on = 1;
       CALL(::ioctl(fd, FIONBIO, &on));
       CALL(::fcntl(fd, F_GETFL) & O_NONBLOCK);
       CALL(::ioctl(fd, FIOCLEX));
       CALL(::fcntl(fd, F_GETFD));
       const int p = FD(::open("f", O_PATH));
       CALL(::ioctl(p, FIONREAD, &n));
     }},
    {"misc.ioctl_for_the_block_size", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_RDWR | O_CREAT, 0644));
       int block = 0;
       CALL(::ioctl(fd, FIGETBSZ, &block));
       run.Note("block %d", block);
     }},
    {"misc.get_and_set_flags", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       for (const char* path : {"f", "d"}) {
         const int fd = ::open(path, O_RDONLY);
         unsigned flags = 0;
         const int got = GetFlags(fd, &flags);
         run.Ret("FS_IOC_GETFLAGS", got);
         if (got != 0) continue;
         run.Note("flags %#x", flags);
         run.Ret("nodump on", ChangeFlag(path, FS_NODUMP_FL, true));
         run.Ret("noatime on", ChangeFlag(path, FS_NOATIME_FL, true));
         run.Ret("get", GetFlags(fd, &flags));
         run.Note("flags %#x", flags);
         run.Ret("nodump off", ChangeFlag(path, FS_NODUMP_FL, false));
         run.Ret("get", GetFlags(fd, &flags));
         run.Note("flags %#x", flags);
         ChangeFlag(path, FS_NOATIME_FL, false);
         ::close(fd);
       }
       CALL(::mkfifo("p", 0644));
       run.Ret("on a fifo", ChangeFlag("missing", FS_NODUMP_FL, true));
     }},
    {"misc.flags_by_non_owner", kUsersOnly,
     [](Run& run) {
       run.Ret("nodump", ChangeFlag("f", FS_NODUMP_FL, true));
       WriteFile("mine", "x");
       run.Ret("immutable", ChangeFlag("mine", FS_IMMUTABLE_FL, true));
       run.Ret("append", ChangeFlag("mine", FS_APPEND_FL, true));
     },
     [](Run&) { WriteFile("f", "x"); }},
    {"misc.fsxattr", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDWR));
       fsxattr attributes = {};
       CALL(::ioctl(fd, FS_IOC_FSGETXATTR, &attributes));
       run.Note("flags %#x project %u", attributes.fsx_xflags,
                attributes.fsx_projid);
       attributes.fsx_xflags |= FS_XFLAG_NODUMP;
       CALL(::ioctl(fd, FS_IOC_FSSETXATTR, &attributes));
       CALL(::ioctl(fd, FS_IOC_FSGETXATTR, &attributes));
       run.Note("flags %#x", attributes.fsx_xflags);
     }},
    {"misc.immutable_file", kRootOnly,
     [](Run& run) {
       WriteFile("f", "0123");
       const long result = ChangeFlag("f", FS_IMMUTABLE_FL, true);
       run.Ret("chattr +i", result);
       if (result != 0) return;
       TryOnFlagged(run);
       run.Ret("chattr -i", ChangeFlag("f", FS_IMMUTABLE_FL, false));
       CALL(::unlink("f"));
     }},
    {"misc.append_only_file", kRootOnly,
     [](Run& run) {
       WriteFile("f", "0123");
       const long result = ChangeFlag("f", FS_APPEND_FL, true);
       run.Ret("chattr +a", result);
       if (result != 0) return;
       TryOnFlagged(run);
       run.Ret("chattr -a", ChangeFlag("f", FS_APPEND_FL, false));
       CALL(::unlink("f"));
     }},
    {"misc.access_to_immutable_file", kRootOnly,
     [](Run& run) {
       WriteFile("f", "0123");
       const long result = ChangeFlag("f", FS_IMMUTABLE_FL, true);
       run.Ret("chattr +i", result);
       if (result != 0) return;
       CALL(::access("f", W_OK));
       run.Ret("chattr -i", ChangeFlag("f", FS_IMMUTABLE_FL, false));
     }},
    {"misc.append_flag_of_append_only_file", kRootOnly,
     [](Run& run) {
       WriteFile("f", "0123");
       const long result = ChangeFlag("f", FS_APPEND_FL, true);
       run.Ret("chattr +a", result);
       if (result != 0) return;
       const int fd = FD(::open("f", O_WRONLY | O_APPEND));
       CALL(::fcntl(fd, F_SETFL, 0));
       run.Ret("chattr -a", ChangeFlag("f", FS_APPEND_FL, false));
     }},
    {"misc.append_only_file_is_never_overwritten", kRootOnly,
     [](Run& run) {
       WriteFile("f", "0123");
       const long result = ChangeFlag("f", FS_APPEND_FL, true);
       run.Ret("chattr +a", result);
       if (result != 0) return;
       const int fd = FD(::open("f", O_WRONLY | O_APPEND));
       ::fcntl(fd, F_SETFL, 0);  // works on some, as it is said elsewhere
       CALL(::pwrite(fd, "X", 1, 0));
       CALL(::write(fd, "Y", 1));
       run.Content("f");
       run.Ret("chattr -a", ChangeFlag("f", FS_APPEND_FL, false));
     }},
    {"misc.append_only_file_is_not_mapped", kRootOnly,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       const long result = ChangeFlag("f", FS_APPEND_FL, true);
       run.Ret("chattr +a", result);
       if (result != 0) return;
       const int fd = FD(::open("f", O_RDWR | O_APPEND));
       void* const at =
           ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
       run.Ret("mmap", at == MAP_FAILED ? -1 : 0);
       if (at != MAP_FAILED) {
         std::memset(at, 'X', 100);
         ::msync(at, 4096, MS_SYNC);
         ::munmap(at, 4096);
       }
       run.Ret("chattr -a", ChangeFlag("f", FS_APPEND_FL, false));
       run.Content("f");
     }},
    {"misc.flagged_file_opened_before", kRootOnly,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const long result = ChangeFlag("f", FS_IMMUTABLE_FL, true);
       run.Ret("chattr +i", result);
       if (result != 0) return;
       CALL(::write(fd, "still", 5));
       CALL(::fchmod(fd, 0600));
       run.Ret("chattr -i", ChangeFlag("f", FS_IMMUTABLE_FL, false));
       run.Content("f");
     }},
    {"misc.immutable_and_append_only_directories", kRootOnly,
     [](Run& run) {
       for (const unsigned flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
         CALL(::mkdir("d", 0755));
         WriteFile("d/f", "x");
         const long result = ChangeFlag("d", flag, true);
         run.Ret("chattr", result);
         if (result != 0) return;
         FD(::open("d/new", O_CREAT | O_WRONLY, 0644));
         CALL(::mkdir("d/sub", 0755));
         CALL(::unlink("d/f"));
         CALL(::rename("d/f", "d/g"));
         CALL(::rename("d/f", "f"));
         WriteFile("d/f", "content may change");
         CALL(::rmdir("d"));
         CALL(::chmod("d", 0700));
         run.List("d");
         run.Ret("chattr off", ChangeFlag("d", flag, false));
         CALL(::rename("d", flag == FS_APPEND_FL ? "e" : "i"));
       }
     }},
    {"misc.fiemap", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(100000));
       const int fd = FD(::open("f", O_RDONLY));
       CALL(::fsync(fd));
       // Without braces: it ends in an array of no elements.
       struct fiemap map;
       std::memset(&map, 0, sizeof map);
       map.fm_length = ~0ull;
       CALL(::ioctl(fd, FS_IOC_FIEMAP, &map));
     }},
    {"misc.reflink", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(100000));
       const int in = FD(::open("f", O_RDONLY));
       const int out = FD(::open("g", O_CREAT | O_RDWR, 0644));
       CALL(::ioctl(out, FICLONE, in));
       run.Content("g");
     }},
    {"misc.inode_version", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDONLY));
       long version = 0;
       CALL(::ioctl(fd, FS_IOC_GETVERSION, &version));
     }},
    {"misc.file_handles", kRootOnly,
     [](Run& run) {
       WriteFile("f", "x");
       alignas(
           file_handle) char bytes[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
       auto* handle = reinterpret_cast<file_handle*>(bytes);
       handle->handle_bytes = MAX_HANDLE_SZ;
       int mount_id;
       CALL(::name_to_handle_at(AT_FDCWD, "f", handle, &mount_id, 0));
     }},
    {"misc.inotify_of_ones_own_doings", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int fd = FD(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
       const int watch = ::inotify_add_watch(
           fd, "d",
           IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY |
               IN_ATTRIB | IN_CLOSE_WRITE);
       run.Note("watching %d", watch >= 0);
       WriteFile("d/f", "x");
       CALL(::chmod("d/f", 0600));
       CALL(::rename("d/f", "d/g"));
       CALL(::mkdir("d/sub", 0755));
       CALL(::rmdir("d/sub"));
       CALL(::link("d/g", "d/h"));
       CALL(::unlink("d/h"));
       CALL(::truncate("d/g", 0));
       LogEvents(run, fd);
     }},
    {"misc.inotify_of_a_peer", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int fd = FD(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
       ::inotify_add_watch(fd, "d", IN_CREATE | IN_CLOSE_WRITE | IN_DELETE);
       {
         Run::Peer peer(run, [](Run&, Run::Peer&) {
           WriteFile("d/by-peer", "x");
           ::unlink("d/by-peer");
         });
       }
       LogEvents(run, fd);
     }},
    {"misc.fcntl_odds", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::fcntl(fd, F_GETFD));
       CALL(::fcntl(fd, F_GETOWN));
       CALL(::fcntl(fd, F_GETPIPE_SZ));
       uint64_t hint = 2;  // RWH_WRITE_LIFE_SHORT
       CALL(::fcntl(fd, F_SET_RW_HINT, &hint));
       hint = 0;
       CALL(::fcntl(fd, F_GET_RW_HINT, &hint));
       run.Note("hint %d", static_cast<int>(hint));
       CALL(::fcntl(fd, 9999));
       CALL(::fcntl(fd, F_SETFL, O_DIRECT));
       CALL(::fcntl(fd, F_SETFL, O_NOATIME));
       CALL(::fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND));
       CALL(::fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND | O_NOATIME));
     }},
    {"misc.file_seals", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::fcntl(fd, F_GET_SEALS));
     }},
    {"misc.chroot", kRootOnly,
     [](Run& run) {
       CALL(::mkdir("root", 0755));
       CALL(::mkdir("root/sub", 0755));
       WriteFile("root/f", "inside");
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         PEER_CALL(::chroot("root"));
         PEER_CALL(::chdir("/sub"));
         side.Content("/f");
         side.Content("../f");
         side.Content("../../f");
         PEER_FD(::open("/new", O_CREAT | O_RDWR, 0644));
         side.List("/");
       });
     }},
    {"misc.realpath", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::symlink("d", "l"));
       WriteFile("d/f", "x");
       char* path = ::realpath("l/../l/./f", nullptr);
       const std::string text = path != nullptr ? path : "";
       run.Bytes("tail", text.substr(text.size() < 4 ? 0 : text.size() - 4));
       ::free(path);
       path = ::realpath("l/missing", nullptr);
       run.Note("missing %d errno %d", path == nullptr, errno);
     }},
    {"misc.mkstemp", kAll,
     [](Run& run) {
       char name[] = "tmp.XXXXXX";
       const int fd = FD(::mkstemp(name));
       run.FStat(fd);
       CALL(::unlink(name));
       char dir[] = "dir.XXXXXX";
       run.Note("mkdtemp %d", ::mkdtemp(dir) != nullptr);
       struct stat st;
       CALL(::stat(dir, &st));
       run.Note("mode %o", st.st_mode);
       CALL(::rmdir(dir));
       FILE* file = ::tmpfile();
       run.Note("tmpfile %d", file != nullptr);
     }},
    {"misc.stdio", kAll,
     [](Run& run) {
       FILE* file = std::fopen("f", "w+");
       for (int i = 0; i < 1000; ++i) std::fprintf(file, "line %d\n", i);
       std::rewind(file);
       int last = -1;
       char line[64];
       while (std::fgets(line, sizeof line, file) != nullptr) {
         last = std::atoi(line + 5);
       }
       run.Note("last %d at %ld", last, std::ftell(file));
       std::fseek(file, 10, SEEK_SET);
       std::fputs("MIDDLE", file);
       std::fclose(file);
       file = std::fopen("f", "a");
       std::fputs("end\n", file);
       run.Note("at %ld", std::ftell(file));
       std::fclose(file);
       run.Content("f");
       run.Note("x %d", std::fopen("f", "wx") == nullptr);
     }},
    {"misc.journal_as_sqlite_does", kAll,
     [](Run& run) {
       const int db = FD(::open("db", O_CREAT | O_RDWR | O_NOFOLLOW, 0644));
       const std::string page = Pattern(4096);
       for (int i = 0; i < 8; ++i) {
         CALL(::pwrite(db, page.data(), page.size(), i * 4096));
       }
       for (int round = 0; round < 3; ++round) {
         const int journal =
             FD(::open("db-journal", O_CREAT | O_RDWR | O_NOFOLLOW, 0644));
         CALL(::pwrite(journal, page.data(), 512, 0));
         CALL(::fdatasync(journal));
         const int dir = ::open(".", O_RDONLY);
         CALL(::fsync(dir));
         ::close(dir);
         CALL(::pwrite(db, "changed", 7, round * 4096 + 100));
         CALL(::fdatasync(db));
         CALL(::close(journal));
         CALL(::unlink("db-journal"));
         CALL(::access("db-journal", F_OK));
       }
       run.Content("db");
     }},
    {"misc.wal_as_sqlite_does", kAll,
     [](Run& run) {
       const int shm = FD(::open("db-shm", O_CREAT | O_RDWR, 0644));
       CALL(::ftruncate(shm, 32768));
       char* p = static_cast<char*>(
           ::mmap(nullptr, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, shm, 0));
       run.Note("mapped %d", p != MAP_FAILED);
       if (p == MAP_FAILED) return;
       std::memcpy(p, "index", 5);
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int own = PEER_FD(::open("db-shm", O_RDWR));
         char* q = static_cast<char*>(::mmap(
             nullptr, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0));
         if (q == MAP_FAILED) return;
         side.Bytes("index", {q, 5});
         std::memcpy(q + 100, "reader", 6);
       });
       peer.Join();
       run.Bytes("mark", {p + 100, 6});
     }},
    {"misc.objects_as_git_does", kAll,
     [](Run& run) {
       CALL(::mkdir("objects", 0755));
       for (int i = 0; i < 20; ++i) {
         char dir[32], name[64];
         std::snprintf(dir, sizeof dir, "objects/%02x", i % 4);
         std::snprintf(name, sizeof name, "%s/obj%d", dir, i);
         ::mkdir(dir, 0755);
         const std::string temporary = std::string(dir) + "/tmp_obj";
         const int fd =
             ::open(temporary.c_str(), O_CREAT | O_EXCL | O_RDWR, 0444);
         const std::string data = Pattern(300 + i);
         run.Ret("write", ::write(fd, data.data(), data.size()));
         ::fchmod(fd, 0444);
         ::fsync(fd);
         ::close(fd);
         run.Ret("link", ::link(temporary.c_str(), name));
         run.Ret("unlink", ::unlink(temporary.c_str()));
         run.Stat(name);
       }
       FD(::open("index.lock", O_CREAT | O_EXCL | O_RDWR, 0666));
       FD(::open("index.lock", O_CREAT | O_EXCL | O_RDWR, 0666));
       CALL(::rename("index.lock", "index"));
     }},
    {"misc.archive_as_tar_does", kAll,
     [](Run& run) {
       CALL(::mkdir("x", 0700));
       WriteFile("x/file", Pattern(3000), 0600);
       CALL(::symlink("file", "x/link"));
       CALL(::link("x/file", "x/hard"));
       const timespec times[2] = {{12345, 678}, {23456, 789}};
       CALL(::utimensat(AT_FDCWD, "x/link", times, AT_SYMLINK_NOFOLLOW));
       CALL(::utimensat(AT_FDCWD, "x/file", times, 0));
       CALL(::chmod("x/file", 0640));
       CALL(::chmod("x", 0555));
       CALL(::utimensat(AT_FDCWD, "x", times, 0));
       for (const char* n : {"x", "x/file", "x/link", "x/hard"}) {
         run.Stat(n);
         run.Times(n);
       }
       CALL(::chmod("x", 0755));
     }},
    {"misc.shell_commands", kAll,
     [](Run& run) {
       const char* const kCommands[] = {
           "echo hello > a; cat a > b; cmp a b",
           "mkdir -p x/y/z && touch x/y/z/f && find x | sort > found",
           "cp -a x copy && diff -r x copy",
           "ln -s a l && readlink l > target",
           ("tar cf t.tar --sort=name --mtime=@0 --owner=0 --group=0 "
            "--numeric-owner x && tar tf t.tar > names"),
           "mv x moved && ls moved",
           "printf 'b\\na\\n' | sort > sorted",
           "sed -i s/hello/bye/ a && cat a",
           "dd if=/dev/zero of=z bs=1000 count=77 status=none && wc -c z",
           "gzip -kn z && zcat z.gz | cmp - z",
           "rm -rf moved copy && ls",
           "test -e moved",
           "chmod u+x a && ./a",
           "install -m 750 b installed && stat -c %a installed",
           "split -b 10000 z part. && cat part.* | cmp - z",
       };
       for (const char* command : kCommands) {
         const std::string quiet =
             std::string("{ ") + command + "; } >out 2>&1";
         const int status = std::system(quiet.c_str());
         run.Ret(command, WIFEXITED(status) ? WEXITSTATUS(status) : -2);
         run.Content("out");
       }
       CALL(::unlink("t.tar"));  // holds the format's own padding and times
     }},
    {"misc.many_small_files", kAll,
     [](Run& run) {
       int failed = 0;
       for (int i = 0; i < 150; ++i) {
         const std::string name = "s" + std::to_string(i);
         WriteFile(name.c_str(), name);
         struct stat st;
         if (::stat(name.c_str(), &st) != 0 ||
             st.st_size != static_cast<off_t>(name.size())) {
           ++failed;
         }
       }
       for (int i = 0; i < 150; i += 3) {
         if (::unlink(("s" + std::to_string(i)).c_str()) != 0) ++failed;
       }
       run.Note("failed %d", failed);
       run.List(".");
     }},
    {"misc.many_open_descriptors", kAll,
     [](Run& run) {
       std::vector<int> fds;
       for (int i = 0; i < 150; ++i) {
         fds.push_back(
             ::open(("o" + std::to_string(i)).c_str(), O_CREAT | O_RDWR, 0644));
       }
       run.Note("failed %ld",
                static_cast<long>(std::count(fds.begin(), fds.end(), -1)));
       for (size_t i = 0; i < fds.size(); ++i) {
         (void)!::write(fds[i], &i, sizeof i);
       }
       for (const int fd : fds) ::close(fd);
       run.List(".");
     }},
    {"misc.big_file", kAll,
     [](Run& run) {
       const std::string data = Pattern(1 << 20);
       const int fd = FD(::open("big", O_CREAT | O_RDWR, 0644));
       for (int i = 0; i < 24; ++i) {
         if (::write(fd, data.data() + i, data.size() - 24) < 0) {
           run.Ret("write", -1);
         }
       }
       run.Content("big");
       CALL(::truncate("big", 5000001));
       run.Content("big");
     }},
};

}  // namespace

std::span<const Scenario> MiscScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
