// Names: link, rename, symlink, mkdir and their ends.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// rename with `flags` between every two kinds of thing.
template <unsigned flags>
void RenameAll(Run& run) {
  const char* const kKinds[] = {"file", "dir",  "full",   "link",
                                "fifo", "none", "dir/sub"};
  for (const char* from : kKinds) {
    for (const char* to : kKinds) {
      ::mkdir("w", 0755);
      if (::chdir("w") != 0) return;
      WriteFile("file", "file");
      ::mkdir("dir", 0755);
      ::mkdir("dir/sub", 0755);
      ::mkdir("full", 0755);
      WriteFile("full/x", "x");
      ::symlink("file", "link");
      ::mkfifo("fifo", 0644);
      const std::string what = std::string(from) + " -> " + to;
      run.Ret(what.c_str(), ::renameat2(AT_FDCWD, from, AT_FDCWD, to, flags));
      run.List(".");
      run.List("dir");
      run.Stat(from);
      run.Stat(to);
      // The next pair begins anew, in a new directory: the old one stays for
      // the comparison of trees.
      if (::chdir("..") != 0) return;
      std::string name = "done ";
      for (const char c : what) name += c == '/' || c == ' ' ? '_' : c;
      ::rename("w", name.c_str());
    }
  }
}

constexpr Scenario kScenarios[] = {
    {"names.rename_all_kinds", kAll, RenameAll<0>},
    {"names.rename_noreplace_all_kinds", kAll, RenameAll<RENAME_NOREPLACE>},
    {"names.rename_exchange_all_kinds", kAll, RenameAll<RENAME_EXCHANGE>},
    {"names.rename_whiteout", kRootOnly,
     [](Run& run) {
       WriteFile("a", "a");
       CALL(::renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT));
       run.Stat("a");
       run.Stat("b");
       CALL(::renameat2(AT_FDCWD, "b", AT_FDCWD, "a",
                        RENAME_WHITEOUT | RENAME_NOREPLACE));
       CALL(::renameat2(AT_FDCWD, "b", AT_FDCWD, "c",
                        RENAME_WHITEOUT | RENAME_EXCHANGE));
     }},
    {"names.rename_whiteout_by_user", kUsersOnly,
     [](Run& run) {
       WriteFile("a", "a");
       const long result =
           ::renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT);
       run.Ret("renameat2", result);
       run.Stat("a");
     }},
    {"names.rename_bad_flags", kAll,
     [](Run& run) {
       WriteFile("a", "a");
       CALL(::renameat2(AT_FDCWD, "a", AT_FDCWD, "b",
                        RENAME_NOREPLACE | RENAME_EXCHANGE));
       CALL(::renameat2(AT_FDCWD, "a", AT_FDCWD, "b", 0x80));
     }},
    {"names.rename_into_itself", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("d/e", 0755));
       CALL(::rename("d", "d/x"));
       CALL(::rename("d", "d/e/x"));
       CALL(::rename("d/e", "d"));
       CALL(::rename("d", "d"));
       CALL(::rename("d", "."));
       CALL(::rename("d", ".."));
       CALL(::rename(".", "x"));
       CALL(::rename("d/.", "x"));
       run.List("d");
     }},
    {"names.rename_hard_links_of_one_file", kAll,
     [](Run& run) {
       WriteFile("a", "x");
       CALL(::link("a", "b"));
       CALL(::rename("a", "b"));
       run.List(".");
       run.Stat("a");
       CALL(::renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
       CALL(::renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
     }},
    {"names.rename_onto_open_file", kAll,
     [](Run& run) {
       WriteFile("a", "new content");
       WriteFile("b", "old content");
       const int fd = FD(::open("b", O_RDWR));
       CALL(::rename("a", "b"));
       run.FStat(fd);
       char b[32] = {};
       CALL(::read(fd, b, sizeof b));
       run.Bytes("open", b);
       run.Content("b");
       CALL(::write(fd, "!", 1));
       run.Content("b");
       run.FStat(fd);
     }},
    {"names.rename_open_file", kAll,
     [](Run& run) {
       const int fd = FD(::open("a", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "1", 1));
       CALL(::rename("a", "b"));
       CALL(::write(fd, "2", 1));
       CALL(::mkdir("d", 0755));
       CALL(::rename("b", "d/c"));
       CALL(::write(fd, "3", 1));
       CALL(::fchmod(fd, 0600));
       run.Content("d/c");
       run.Stat("d/c");
       run.Stat("a");
       run.Stat("b");
     }},
    {"names.rename_directory_with_open_files", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int fd = FD(::open("d/f", O_CREAT | O_RDWR, 0644));
       CALL(::rename("d", "e"));
       CALL(::write(fd, "x", 1));
       run.Content("e/f");
       WriteFile("e/g", "g");
       run.List("e");
       run.Stat("d/f");
       CALL(::mkdir("d", 0755));
       run.List("d");
     }},
    {"names.rename_across_directories", kAll,
     [](Run& run) {
       CALL(::mkdir("a", 0755));
       CALL(::mkdir("b", 0755));
       CALL(::mkdir("a/sub", 0755));
       WriteFile("a/f", "f");
       CALL(::rename("a/f", "b/g"));
       CALL(::rename("a/sub", "b/sub"));
       run.List("a");
       run.List("b");
       FD(::open("b/sub/..", O_RDONLY));
       WriteFile("b/sub/../up", "up");
       run.List("b");
       struct stat st;
       CALL(::stat("a", &st));
       run.Note("links a %ld", static_cast<long>(st.st_nlink));
       CALL(::stat("b", &st));
       run.Note("links b %ld", static_cast<long>(st.st_nlink));
     }},
    {"names.rename_trailing_slashes", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::mkdir("d", 0755));
       CALL(::rename("f/", "g"));
       CALL(::rename("f", "g/"));
       CALL(::rename("d/", "e/"));
       CALL(::rename("e", "h/"));
       run.List(".");
     }},
    {"names.rename_without_permission", kUsersOnly,
     [](Run& run) {
       CALL(::rename("theirs/f", "f"));
       WriteFile("g", "g");
       CALL(::rename("g", "theirs/g"));
       CALL(::rename("theirs", "t"));
       run.List(".");
       CALL(::mkdir("mine", 0555));
       CALL(::rename("g", "mine/g"));
       CALL(::chmod("mine", 0755));
     },
     [](Run&) {
       ::mkdir("theirs", 0755);
       WriteFile("theirs/f", "f");
     }},
    {"names.rename_directory_one_cannot_write", kUsersOnly,
     [](Run& run) {
       // Moving a directory rewrites its "..": needs write permission on it.
       CALL(::mkdir("a", 0755));
       CALL(::mkdir("a/d", 0555));
       CALL(::mkdir("b", 0755));
       CALL(::rename("a/d", "b/d"));
       CALL(::rename("a/d", "a/e"));
       run.List("a");
       run.List("b");
     }},
    {"names.link", kAll,
     [](Run& run) {
       WriteFile("a", "content");
       CALL(::link("a", "b"));
       CALL(::mkdir("d", 0755));
       CALL(::link("b", "d/c"));
       run.Stat("a");
       run.Stat("d/c");
       CALL(::chmod("b", 0600));
       run.Stat("a");
       CALL(::unlink("a"));
       run.Stat("b");
       WriteFile("d/c", "changed");
       run.Content("b");
       struct stat one, two;
       CALL(::stat("b", &one));
       CALL(::stat("d/c", &two));
       run.Note("one file %d", one.st_ino == two.st_ino);
     }},
    {"names.link_errors", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::mkdir("d", 0755));
       CALL(::link("d", "e"));
       CALL(::link("f", "f"));
       CALL(::link("f", "d"));
       CALL(::link("missing", "x"));
       CALL(::link("f", "missing/x"));
       CALL(::link("f/x", "y"));
       CALL(::link("f", "/proc/self/x"));
       CALL(::link("/proc/self/status", "x"));
       CALL(::linkat(AT_FDCWD, "f", AT_FDCWD, "g", 0x4000));
       run.List(".");
     }},
    {"names.link_to_symlink", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::symlink("f", "l"));
       CALL(::link("l", "hard"));
       run.Stat("hard");
       CALL(::linkat(AT_FDCWD, "l", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
       run.Stat("followed");
       CALL(::symlink("nowhere", "dangling"));
       CALL(::link("dangling", "hard2"));
       run.Stat("hard2");
       CALL(::linkat(AT_FDCWD, "dangling", AT_FDCWD, "x", AT_SYMLINK_FOLLOW));
     }},
    {"names.link_special_files", kAll,
     [](Run& run) {
       CALL(::mkfifo("p", 0644));
       CALL(::link("p", "q"));
       run.Stat("q");
     }},
    {"names.link_files_of_others", kUsersOnly,
     [](Run& run) {
       // fs.protected_hardlinks may forbid some of these.
       CALL(::link("theirs", "a"));
       CALL(::link("writable", "b"));
       CALL(::link("suid", "c"));
       run.List(".");
     },
     [](Run&) {
       WriteFile("theirs", "x", 0600);
       WriteFile("writable", "x");
       ::chmod("writable", 0666);
       WriteFile("suid", "x");
       ::chmod("suid", 04777);
     }},
    {"names.many_links", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       for (int i = 0; i < 200; ++i) {
         ::link("f", ("l" + std::to_string(i)).c_str());
       }
       run.Stat("f");
       for (int i = 0; i < 200; i += 2) {
         ::unlink(("l" + std::to_string(i)).c_str());
       }
       run.Stat("f");
       run.List(".");
     }},
    {"names.linkat_empty_path", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_PATH));
       CALL(::linkat(fd, "", AT_FDCWD, "g", AT_EMPTY_PATH));
       run.List(".");
     }},
    {"names.symlink", kAll,
     [](Run& run) {
       const std::string long_target(4095, 't');
       const std::string too_long(4096, 't');
       CALL(::symlink("target", "a"));
       CALL(::symlink("", "b"));
       CALL(::symlink("x", "a"));
       CALL(::symlink("/absolute/../path//x", "c"));
       run.Ret("long", ::symlink(long_target.c_str(), "d"));
       run.Ret("too long", ::symlink(too_long.c_str(), "e"));
       CALL(::symlink("new\nline \xff", "f"));
       char b[PATH_MAX + 1];
       for (const char* l : {"a", "b", "c", "d", "f", "missing", "."}) {
         const ssize_t n = ::readlink(l, b, sizeof b);
         run.Ret("readlink", n);
         if (n > 0) run.Bytes(l, {b, static_cast<size_t>(n)});
         run.Stat(l);
       }
       CALL(::readlink("a", b, 3));
       CALL(::readlink("a", b, 0));
     }},
    {"names.symlink_chains", kAll,
     [](Run& run) {
       WriteFile("l0", "end");
       for (int i = 1; i <= 45; ++i) {
         ::symlink(("l" + std::to_string(i - 1)).c_str(),
                   ("l" + std::to_string(i)).c_str());
       }
       FD(::open("l39", O_RDONLY));
       FD(::open("l40", O_RDONLY));
       FD(::open("l41", O_RDONLY));
       FD(::open("l45", O_RDONLY));
       CALL(::symlink("loop2", "loop1"));
       CALL(::symlink("loop1", "loop2"));
       FD(::open("loop1", O_RDONLY));
       FD(::open("loop1/x", O_CREAT | O_RDWR, 0644));
       CALL(::mkdir("loop1/x", 0755));
       run.Stat("loop1", 0);
     }},
    {"names.symlink_in_path", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("d/e", 0755));
       CALL(::symlink("d/e", "l"));
       WriteFile("l/f", "through");
       run.Content("d/e/f");
       WriteFile("l/../g", "up");
       run.Content("d/g");
       CALL(::symlink("../../l", "d/e/back"));
       run.Content("d/e/back/f");
       CALL(::unlink("l"));
       CALL(::symlink("d", "l"));
       run.Stat("l/f");
       run.Stat("l/e/f");
     }},
    {"names.symlink_cannot_be_changed", kAll,
     [](Run& run) {
       CALL(::symlink("target", "l"));
       CALL(::fchmodat(AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW));
       CALL(::lchown("l", ::geteuid(), ::getegid()));
       FD(::open("l", O_RDONLY | O_NOFOLLOW));
       const int fd = FD(::open("l", O_PATH | O_NOFOLLOW));
       run.FStat(fd);
       char b[16] = {};
       CALL(::readlinkat(fd, "", b, sizeof b));
       run.Bytes("target", b);
       CALL(::fchmod(fd, 0600));
     }},
    {"names.protected_symlinks_in_sticky_dir", kUsersOnly,
     [](Run& run) {
       FD(::open("sticky/theirs", O_RDONLY));
       CALL(::symlink("../f", "sticky/mine"));
       FD(::open("sticky/mine", O_RDONLY));
       FD(::open("sticky/file", O_RDWR | O_CREAT, 0644));
       FD(::open("sticky/fifo", O_RDWR | O_CREAT | O_NONBLOCK, 0644));
     },
     [](Run&) {
       WriteFile("f", "f");
       ::mkdir("sticky", 0755);
       ::chmod("sticky", 01777);
       ::symlink("../f", "sticky/theirs");
       WriteFile("sticky/file", "x");
       ::chmod("sticky/file", 0666);
       ::mkfifo("sticky/fifo", 0644);
       ::chmod("sticky/fifo", 0666);
     }},
    {"names.mkdir_errors", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("f", 0755));
       CALL(::mkdir("f/x", 0755));
       CALL(::mkdir("missing/x", 0755));
       CALL(::mkdir(".", 0755));
       CALL(::mkdir("..", 0755));
       CALL(::mkdir("d/.", 0755));
       CALL(::mkdir("slash/", 0755));
       CALL(::mkdir("", 0755));
       CALL(::symlink("nowhere", "l"));
       CALL(::mkdir("l", 0755));
       CALL(::mkdir("l/", 0755));
       run.List(".");
     }},
    {"names.mkdir_modes", kAll,
     [](Run& run) {
       ::umask(0);
       for (const mode_t mode : {0755, 0700, 01777, 02755, 04755, 07777}) {
         const std::string name = "d" + std::to_string(mode);
         CALL(::mkdir(name.c_str(), mode));
         run.Stat(name.c_str());
       }
     }},
    {"names.rmdir_errors", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::mkdir("d", 0755));
       WriteFile("d/x", "x");
       CALL(::rmdir("d"));
       CALL(::rmdir("f"));
       CALL(::rmdir("missing"));
       CALL(::rmdir("f/x"));
       CALL(::rmdir("d/."));
       CALL(::rmdir("d/.."));
       CALL(::rmdir("."));
       CALL(::symlink("d", "l"));
       CALL(::rmdir("l"));
       CALL(::rmdir("l/"));
       CALL(::unlink("d/x"));
       CALL(::rmdir("d/"));
       run.List(".");
     }},
    {"names.unlink_errors", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       WriteFile("f", "f");
       CALL(::unlink("d"));
       CALL(::unlink("missing"));
       CALL(::unlink("f/"));
       CALL(::unlink("f/x"));
       CALL(::unlink("."));
       CALL(::unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
       CALL(::unlinkat(AT_FDCWD, "d", 0));
       CALL(::unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
       CALL(::unlinkat(AT_FDCWD, "f", 0x80));
       CALL(::symlink("f", "l"));
       CALL(::unlink("l"));
       run.List(".");
     }},
    {"names.rmdir_of_the_current_directory", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::chdir("d"));
       CALL(::rmdir("../d"));
       FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::mkdir("x", 0755));
       FD(::open(".", O_RDONLY));
       run.List(".");
       char b[PATH_MAX];
       run.Note("getcwd fails %d", ::getcwd(b, sizeof b) == nullptr);
       CALL(::chdir(".."));
       run.List(".");
     }},
    {"names.reuse_after_removal", kAll,
     [](Run& run) {
       for (int i = 0; i < 5; ++i) {
         CALL(::mkdir("x", 0755));
         run.Stat("x");
         CALL(::rmdir("x"));
         run.Stat("x");
         WriteFile("x", "file");
         run.Stat("x");
         CALL(::unlink("x"));
         CALL(::symlink("y", "x"));
         run.Stat("x");
         CALL(::unlink("x"));
         CALL(::mkfifo("x", 0600));
         run.Stat("x");
         CALL(::unlink("x"));
       }
     }},
    {"names.missing_then_made_by_another", kAll,
     [](Run& run) {
       run.Stat("x");
       FD(::open("x", O_RDONLY));
       Run::Peer peer(run, [](Run&, Run::Peer&) { WriteFile("x", "made"); });
       peer.Join();
       run.Stat("x");
       run.Content("x");
     }},
    {"names.remove_while_peer_walks", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         PEER_CALL(::chdir("d"));
         turn.Signal();
         turn.Wait();
         PEER_CALL(::access(".", F_OK));
         PEER_FD(::open("../e", O_RDONLY));
         PEER_FD(::open("x", O_CREAT | O_RDWR, 0644));
       });
       peer.Wait();
       CALL(::rename("d", "e"));
       CALL(::rmdir("e"));
       peer.Signal();
       peer.Join();
     }},
    {"names.getcwd_follows_renames", kAll,
     [](Run& run) {
       CALL(::mkdir("a", 0755));
       CALL(::mkdir("a/b", 0755));
       CALL(::chdir("a/b"));
       CALL(::rename("../../a", "../../z"));
       char b[PATH_MAX];
       const std::string cwd = ::getcwd(b, sizeof b) != nullptr ? b : "";
       run.Bytes("tail", cwd.substr(cwd.size() < 4 ? 0 : cwd.size() - 4));
     }},
    {"names.exdev", kAll,
     [](Run& run) {
       WriteFile("f", "f");
       CALL(::rename("f", "/dev/shm/../../proc/f"));
       CALL(::link("/proc/version", "v"));
       run.List(".");
     }},
    {"names.remove_rename_create", kAll,
     [](Run& run) {
       // As editors save: write beside, rename over, again and again.
       for (int i = 0; i < 20; ++i) {
         WriteFile("f.tmp", "version " + std::to_string(i));
         CALL(::rename("f.tmp", "f"));
         run.Content("f");
         run.Stat("f");
       }
       run.List(".");
     }},
    {"names.backup_by_link", kAll,
     [](Run& run) {
       WriteFile("f", "first");
       CALL(::link("f", "f~"));
       WriteFile("f.new", "second");
       CALL(::rename("f.new", "f"));
       run.Content("f");
       run.Content("f~");
       run.Stat("f~");
     }},
};

}  // namespace

std::span<const Scenario> NameScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
