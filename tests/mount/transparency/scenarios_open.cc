// open(2), openat2(2), creat, O_TMPFILE, descriptors and their flags.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// One of each kind that a name can lead to.
void MakeKinds() {
  WriteFile("file", "content of the file");
  WriteFile("readonly", "cannot be written", 0444);
  WriteFile("hidden", "cannot be read", 0000);
  ::mkdir("dir", 0755);
  ::mkdir("locked", 0000);
  WriteFile("dir/inner", "inner");
  ::symlink("file", "link");
  ::symlink("dir", "dirlink");
  ::symlink("missing-target", "dangling");
  ::symlink("loop", "loop");
  ::mkfifo("fifo", 0644);
}

// Every kind opened with the same flags.
template <int flags>
void OpenAll(Run& run) {
  MakeKinds();
  for (const char* name :
       {"file", "readonly", "hidden", "dir", "locked", "locked/x", "link",
        "dirlink", "dangling", "loop", "missing", "missing/x", "file/x",
        "file/", "dir/", "link/", "dirlink/inner", "."}) {
    const int fd = run.Fd(name, ::open(name, flags | O_CLOEXEC, 0640));
    if (fd < 0) continue;
    run.FStat(fd);
    char bytes[8];
    run.Ret("  read", ::read(fd, bytes, sizeof bytes));
    run.Ret("  write", ::write(fd, "new", 3));
    run.Ret("  lseek", ::lseek(fd, 0, SEEK_CUR));
    run.Ret("  F_GETFL", ::fcntl(fd, F_GETFL) & ~O_LARGEFILE);
    run.Ret("  close", ::close(fd));
  }
  for (const char* name : {"file", "readonly", "missing", "missing-target"}) {
    run.Stat(name);
    run.Content(name);
  }
}

int OpenAt2(const char* path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  open_how how = {};
  how.flags = flags;
  how.mode = mode;
  how.resolve = resolve;
  return static_cast<int>(
      ::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

constexpr Scenario kScenarios[] = {
    {"open.rdonly", kAll, OpenAll<O_RDONLY>},
    {"open.wronly", kAll, OpenAll<O_WRONLY>},
    {"open.rdwr", kAll, OpenAll<O_RDWR>},
    {"open.accmode3", kAll, OpenAll<O_ACCMODE>},
    {"open.creat", kAll, OpenAll<O_RDWR | O_CREAT>},
    {"open.creat_rdonly", kAll, OpenAll<O_RDONLY | O_CREAT>},
    {"open.creat_excl", kAll, OpenAll<O_RDWR | O_CREAT | O_EXCL>},
    {"open.excl_alone", kAll, OpenAll<O_RDWR | O_EXCL>},
    {"open.creat_trunc", kAll, OpenAll<O_RDWR | O_CREAT | O_TRUNC>},
    {"open.trunc_rdwr", kAll, OpenAll<O_RDWR | O_TRUNC>},
    {"open.trunc_rdonly", kAll, OpenAll<O_RDONLY | O_TRUNC>},
    {"open.append", kAll, OpenAll<O_RDWR | O_APPEND>},
    {"open.append_creat_trunc", kAll,
     OpenAll<O_WRONLY | O_APPEND | O_CREAT | O_TRUNC>},
    {"open.directory", kAll, OpenAll<O_RDONLY | O_DIRECTORY>},
    {"open.directory_rdwr", kAll, OpenAll<O_RDWR | O_DIRECTORY>},
    {"open.directory_creat", kAll, OpenAll<O_RDONLY | O_DIRECTORY | O_CREAT>},
    {"open.nofollow", kAll, OpenAll<O_RDONLY | O_NOFOLLOW>},
    {"open.nofollow_creat", kAll, OpenAll<O_RDWR | O_NOFOLLOW | O_CREAT>},
    {"open.nofollow_directory", kAll,
     OpenAll<O_RDONLY | O_NOFOLLOW | O_DIRECTORY>},
    {"open.path", kAll, OpenAll<O_PATH>},
    {"open.path_nofollow", kAll, OpenAll<O_PATH | O_NOFOLLOW>},
    {"open.path_directory", kAll, OpenAll<O_PATH | O_DIRECTORY>},
    {"open.path_creat_trunc", kAll, OpenAll<O_PATH | O_CREAT | O_TRUNC>},
    {"open.tmpfile_rdwr", kAll, OpenAll<O_TMPFILE | O_RDWR>},
    {"open.tmpfile_wronly", kAll, OpenAll<O_TMPFILE | O_WRONLY>},
    {"open.tmpfile_rdonly", kAll, OpenAll<O_TMPFILE | O_RDONLY>},
    {"open.tmpfile_excl", kAll, OpenAll<O_TMPFILE | O_RDWR | O_EXCL>},
    {"open.direct", kAll, OpenAll<O_RDONLY | O_DIRECT>},
    {"open.sync", kAll, OpenAll<O_RDWR | O_SYNC>},
    {"open.dsync", kAll, OpenAll<O_RDWR | O_DSYNC>},
    {"open.noatime", kAll, OpenAll<O_RDONLY | O_NOATIME>},
    {"open.nonblock", kAll, OpenAll<O_RDWR | O_NONBLOCK>},
    {"open.noctty_async", kAll, OpenAll<O_RDWR | O_NOCTTY | O_ASYNC>},

    {"open.noatime_of_others", kUsersOnly,
     [](Run& run) { FD(::open("theirs", O_RDONLY | O_NOATIME)); },
     [](Run&) { WriteFile("theirs", "x", 0644); }},
    {"open.creat_over_hard_link", kAll,
     [](Run& run) {
       WriteFile("a", "aaa");
       CALL(::link("a", "b"));
       FD(::open("b", O_RDWR | O_CREAT | O_TRUNC, 0600));
       run.Stat("a");
       FD(::open("b", O_RDWR | O_CREAT | O_EXCL, 0600));
     }},
    {"open.creat_through_dangling_link", kAll,
     [](Run& run) {
       CALL(::symlink("target", "link"));
       FD(::open("link", O_RDWR | O_CREAT | O_EXCL, 0600));
       FD(::open("link", O_RDWR | O_CREAT, 0600));
       run.Stat("target");
       run.Stat("link");
     }},
    {"open.creat_mode_bits_above_0777", kAll,
     [](Run& run) {
       ::umask(0);
       FD(::open("suid", O_RDWR | O_CREAT, 04755));
       FD(::open("sgid", O_RDWR | O_CREAT, 02755));
       FD(::open("sticky", O_RDWR | O_CREAT, 01755));
       FD(::open("all", O_RDWR | O_CREAT, 07777));
       for (const char* f : {"suid", "sgid", "sticky", "all"}) run.Stat(f);
     }},
    {"open.umask", kAll,
     [](Run& run) {
       for (const mode_t mask : {0, 022, 027, 077, 0777, 0123}) {
         ::umask(mask);
         const std::string file = "f" + std::to_string(mask);
         const std::string dir = "d" + std::to_string(mask);
         const int fd = FD(::open(file.c_str(), O_CREAT | O_RDWR, 0777));
         // The opener may write whatever the mode says.
         CALL(::write(fd, "x", 1));
         CALL(::close(fd));
         CALL(::mkdir(dir.c_str(), 0777));
         run.Stat(file.c_str());
         run.Stat(dir.c_str());
         CALL(::chmod(dir.c_str(), 0700));
       }
     }},
    {"open.creat_mode_0_is_writable_by_the_opener", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0));
       CALL(::write(fd, "data", 4));
       FD(::open("f", O_RDWR));
       CALL(::pread(fd, &errno, 0, 0));
       run.FStat(fd);
     }},
    {"open.creat_readonly_dir", kUsersOnly,
     [](Run& run) {
       CALL(::mkdir("d", 0555));
       FD(::open("d/f", O_CREAT | O_RDWR, 0644));
       CALL(::chmod("d", 0333));
       FD(::open("d/f", O_CREAT | O_RDWR, 0644));
       FD(::open("d/f", O_RDONLY));
       FD(::open("d", O_RDONLY));
       CALL(::chmod("d", 0666));
       FD(::open("d/f", O_RDONLY));
       FD(::open("d", O_RDONLY));
       CALL(::chmod("d", 0755));
     }},
    {"open.many_descriptors_of_one_file", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       int fds[20];
       for (int& fd : fds) fd = ::open("f", O_RDWR);
       for (int i = 0; i < 20; ++i) {
         char c = static_cast<char>('a' + i % 10);
         CALL(::pwrite(fds[i], &c, 1, i % 10));
       }
       for (const int fd : fds) {
         char b[11] = {};
         CALL(::read(fd, b, 10));
         run.Bytes("read", b);
       }
       for (const int fd : fds) ::close(fd);
       run.Content("f");
     }},
    {"open.offset_is_shared_by_dup_only", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int a = ::open("f", O_RDWR);
       const int b = ::dup(a);
       const int c = ::open("f", O_RDWR);
       char x[4] = {};
       CALL(::read(a, x, 3));
       CALL(::read(b, x, 3));
       run.Bytes("b", x);
       CALL(::read(c, x, 3));
       run.Bytes("c", x);
       CALL(::lseek(a, 0, SEEK_CUR));
     }},
    {"open.append_taken_back", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_WRONLY | O_APPEND));
       CALL(::fcntl(fd, F_SETFL, 0));
       CALL(::lseek(fd, 2, SEEK_SET));
       CALL(::write(fd, "ab", 2));
       run.Content("f");
     }},
    {"open.setfl_append_and_back", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::fcntl(fd, F_SETFL, O_APPEND));
       CALL(::write(fd, "END", 3));
       CALL(::fcntl(fd, F_SETFL, 0));
       CALL(::lseek(fd, 0, SEEK_SET));
       CALL(::write(fd, "AB", 2));
       run.Content("f");
     }},
    {"open.append_ignores_offsets", kAll,
     [](Run& run) {
       WriteFile("f", "01234");
       const int fd = FD(::open("f", O_RDWR | O_APPEND));
       CALL(::lseek(fd, 0, SEEK_SET));
       CALL(::write(fd, "a", 1));
       CALL(::pwrite(fd, "b", 1, 0));  // Linux: appends all the same
       CALL(::lseek(fd, 0, SEEK_CUR));
       run.Content("f");
     }},
    {"open.append_by_two", kAll,
     [](Run& run) {
       const int a = ::open("f", O_CREAT | O_WRONLY | O_APPEND, 0644);
       const int b = ::open("f", O_WRONLY | O_APPEND);
       for (int i = 0; i < 5; ++i) {
         CALL(::write(a, "a", 1));
         CALL(::write(b, "bb", 2));
       }
       run.Content("f");
     }},
    {"open.append_after_truncate", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_WRONLY | O_APPEND));
       CALL(::ftruncate(fd, 3));
       CALL(::write(fd, "x", 1));
       CALL(::truncate("f", 0));
       CALL(::write(fd, "y", 1));
       run.Content("f");
     }},
    {"open.wronly_cannot_read", kAll,
     [](Run& run) {
       WriteFile("f", "abc");
       const int w = FD(::open("f", O_WRONLY));
       const int r = FD(::open("f", O_RDONLY));
       char c;
       CALL(::read(w, &c, 1));
       CALL(::write(r, "x", 1));
       CALL(::ftruncate(r, 0));
       CALL(::fallocate(r, 0, 0, 10));
       CALL(::pread(w, &c, 1, 0));
     }},
    {"open.tmpfile_linked_in", kAll,
     [](Run& run) {
       const int fd = FD(::open(".", O_TMPFILE | O_RDWR, 0640));
       CALL(::write(fd, "linked in", 9));
       run.FStat(fd);
       const std::string proc = "/proc/self/fd/" + std::to_string(fd);
       run.Ret("linkat", ::linkat(AT_FDCWD, proc.c_str(), AT_FDCWD, "named",
                                  AT_SYMLINK_FOLLOW));
       run.FStat(fd);
       run.Stat("named");
       run.Content("named");
       run.Ret("again", ::linkat(AT_FDCWD, proc.c_str(), AT_FDCWD, "twice",
                                 AT_SYMLINK_FOLLOW));
       run.Stat("twice");
     }},
    {"open.tmpfile_excl_cannot_be_linked", kAll,
     [](Run& run) {
       const int fd = FD(::open(".", O_TMPFILE | O_RDWR | O_EXCL, 0640));
       const std::string proc = "/proc/self/fd/" + std::to_string(fd);
       run.Ret("linkat", ::linkat(AT_FDCWD, proc.c_str(), AT_FDCWD, "named",
                                  AT_SYMLINK_FOLLOW));
       run.FStat(fd);
     }},
    {"open.tmpfile_leaves_nothing", kAll,
     [](Run& run) {
       const int fd = FD(::open(".", O_TMPFILE | O_RDWR, 0600));
       CALL(::write(fd, "x", 1));
       run.List(".");
       CALL(::close(fd));
       run.List(".");
       FD(::open("missing", O_TMPFILE | O_RDWR, 0600));
       WriteFile("f", "");
       FD(::open("f", O_TMPFILE | O_RDWR, 0600));
     }},
    {"open.reopen_through_proc", kAll,
     [](Run& run) {
       WriteFile("f", "abc", 0444);
       const int path = FD(::open("f", O_PATH));
       const std::string proc = "/proc/self/fd/" + std::to_string(path);
       const int r = run.Fd("reopen r", ::open(proc.c_str(), O_RDONLY));
       run.Fd("reopen rw", ::open(proc.c_str(), O_RDWR));
       run.Fd("reopen trunc", ::open(proc.c_str(), O_RDONLY | O_NOFOLLOW));
       CALL(::unlink("f"));
       const int again = run.Fd("unlinked", ::open(proc.c_str(), O_RDONLY));
       char c = 0;
       CALL(::read(again, &c, 1));
       CALL(::read(r, &c, 1));
     }},
    {"open.dir_fd_relative", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int d = FD(::open("d", O_RDONLY | O_DIRECTORY));
       const int f = FD(::openat(d, "f", O_CREAT | O_RDWR, 0644));
       CALL(::write(f, "1", 1));
       CALL(::renameat(AT_FDCWD, "d", AT_FDCWD, "e"));
       FD(::openat(d, "f", O_RDONLY));
       FD(::openat(d, "g", O_CREAT | O_WRONLY, 0644));
       FD(::openat(d, "../e/f", O_RDONLY));
       FD(::openat(d, "..", O_RDONLY));
       FD(::openat(f, "x", O_RDONLY));
       run.List("e");
     }},
    {"open.removed_directory", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int d = FD(::open("d", O_RDONLY | O_DIRECTORY));
       CALL(::rmdir("d"));
       run.FStat(d);
       FD(::openat(d, "f", O_CREAT | O_RDWR, 0644));
       CALL(::mkdirat(d, "x", 0755));
       CALL(::faccessat(d, ".", F_OK, 0));
       CALL(::symlinkat("x", d, "y"));
     }},
    {"open.exclusive_race_of_two", kAll,
     [](Run& run) {
       int won = 0;
       for (int i = 0; i < 30; ++i) {
         const std::string name = "f" + std::to_string(i);
         Run::Peer peer(run, [&](Run&, Run::Peer&) {
           const int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0644);
           ::_exit(fd >= 0 ? 0 : errno == EEXIST ? 0 : 9);
         });
         const int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0644);
         if (fd >= 0 || errno == EEXIST) ++won;
         if (fd >= 0) ::close(fd);
         peer.Join();
         struct stat st;
         if (::stat(name.c_str(), &st) != 0 || st.st_nlink != 1) --won;
       }
       run.Note("settled %d", won);
     }},
    {"open.openat2_resolve", kAll,
     [](Run& run) {
       MakeKinds();
       FD(OpenAt2("link", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
       FD(OpenAt2("file", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
       FD(OpenAt2("../x", O_RDONLY, 0, RESOLVE_BENEATH));
       FD(OpenAt2("dirlink/inner", O_RDONLY, 0, RESOLVE_BENEATH));
       FD(OpenAt2("/file", O_RDONLY, 0, RESOLVE_IN_ROOT));
       FD(OpenAt2("file", O_RDONLY, 0, RESOLVE_NO_XDEV));
       FD(OpenAt2("file", O_RDONLY, 0644, 0));
       FD(OpenAt2("new", O_CREAT | O_RDWR, 010000, 0));
       FD(OpenAt2("new", O_CREAT | O_RDWR, 0644, 0));
       FD(OpenAt2("file", O_PATH | O_RDWR | O_TRUNC, 0, 0));
     }},
    {"open.long_names", kAll,
     [](Run& run) {
       const std::string n255(255, 'n');
       const std::string n256(256, 'n');
       run.Fd("255", ::open(n255.c_str(), O_CREAT | O_RDWR, 0644));
       run.Fd("256", ::open(n256.c_str(), O_CREAT | O_RDWR, 0644));
       run.Ret("stat 256", ::access(n256.c_str(), F_OK));
       run.Ret("mkdir 256", ::mkdir(n256.c_str(), 0755));
       run.Ret("unlink 256", ::unlink(n256.c_str()));
       run.Ret("rename", ::rename(n255.c_str(), n256.c_str()));
       run.Ret("link", ::link(n255.c_str(), n256.c_str()));
       run.Ret("symlink", ::symlink("x", n256.c_str()));
       run.Ret("mknod", ::mknod(n256.c_str(), S_IFREG | 0644, 0));
     }},
    {"open.long_paths", kAll,
     [](Run& run) {
       std::string path;
       while (path.size() + 2 < 4096) path += "./";
       path += "f";  // 4095 bytes with the terminator
       run.Note("length %zu", path.size());
       run.Fd("4095", ::open(path.c_str(), O_CREAT | O_RDWR, 0644));
       path = "./" + path;
       run.Fd("4097", ::open(path.c_str(), O_CREAT | O_RDWR, 0644));
       run.Fd("empty", ::open("", O_RDONLY));
     }},
    {"open.deep_tree", kAll,
     [](Run& run) {
       // Deeper than PATH_MAX in all.
       int dir = ::open(".", O_RDONLY | O_DIRECTORY);
       const std::string name(200, 'd');
       for (int i = 0; i < 30; ++i) {
         run.Ret("mkdirat", ::mkdirat(dir, name.c_str(), 0755));
         const int next = ::openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY);
         ::close(dir);
         dir = next;
       }
       const int fd = FD(::openat(dir, "f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "deep", 4));
       FD(::openat(dir, "../f", O_RDONLY));
       run.FStat(fd);
     }},
    {"open.odd_names", kAll,
     [](Run& run) {
       for (const char* name :
            {"with space", "new\nline", "tab\t", "\x01\x02", "\xff\xfe", "..x",
             ".x", "...", "-rf", "*", "a\\b", "\"", "\xc3\xa9"}) {
         run.Fd(name, ::open(name, O_CREAT | O_RDWR, 0644));
         run.Stat(name);
       }
       run.List(".");
     }},
};

}  // namespace

std::span<const Scenario> OpenScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
