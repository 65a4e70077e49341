// Who may do what: the checks, not the doing.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// A file and a directory of each mode, owned by root, by the user, by the
// user's groups: made by root before.
template <uid_t owner, gid_t group>
void PrepareModes(Run&) {
  struct stat here = {};
  ::stat(".", &here);
  const uid_t uid = owner == static_cast<uid_t>(-1) ? here.st_uid : owner;
  const gid_t gid = group == static_cast<gid_t>(-1) ? here.st_gid : group;
  for (const mode_t mode :
       {0000, 0004, 0040, 0400, 0002, 0020, 0200, 0001, 0010, 0100,
        0644, 0755, 0666, 0777, 0070, 0007, 0700, 0077, 0707, 0770}) {
    const std::string file = "f" + std::to_string(mode);
    const std::string dir = "d" + std::to_string(mode);
    WriteFile(file.c_str(), "content");
    ::mkdir(dir.c_str(), 0755);
    WriteFile((dir + "/inner").c_str(), "inner");
    for (const std::string& name : {file, dir, dir + "/inner"}) {
      (void)!::chown(name.c_str(), uid, gid);
    }
    ::chmod(file.c_str(), mode);
    ::chmod(dir.c_str(), mode);
  }
}

void TryModes(Run& run) {
  for (const mode_t mode :
       {0000, 0004, 0040, 0400, 0002, 0020, 0200, 0001, 0010, 0100,
        0644, 0755, 0666, 0777, 0070, 0007, 0700, 0077, 0707, 0770}) {
    const std::string file = "f" + std::to_string(mode);
    const std::string dir = "d" + std::to_string(mode);
    run.Note("mode %04o", mode);
    const auto try_open = [&](const char* what, const std::string& path,
                              int flags) {
      const int fd = run.Fd(what, ::open(path.c_str(), flags, 0600));
      if (fd >= 0) ::close(fd);
    };
    try_open("file r", file, O_RDONLY);
    try_open("file w", file, O_WRONLY);
    try_open("file rw", file, O_RDWR);
    try_open("file path", file, O_PATH);
    try_open("dir r", dir, O_RDONLY);
    try_open("inner r", dir + "/inner", O_RDONLY);
    try_open("create", dir + "/new", O_CREAT | O_WRONLY);
    run.Ret("access r", ::access(file.c_str(), R_OK));
    run.Ret("access w", ::access(file.c_str(), W_OK));
    run.Ret("access x", ::access(file.c_str(), X_OK));
    run.Ret("access rwx", ::access(dir.c_str(), R_OK | W_OK | X_OK));
    run.Ret("stat inner", ::access((dir + "/inner").c_str(), F_OK));
    run.Ret("unlink", ::unlink((dir + "/new").c_str()));
    run.Ret("chdir",
            ::syscall(SYS_faccessat2, AT_FDCWD, dir.c_str(), X_OK, AT_EACCESS));
  }
}

constexpr auto kUser = static_cast<uid_t>(-1);
constexpr auto kUserGroup = static_cast<gid_t>(-1);

constexpr Scenario kScenarios[] = {
    {"perm.modes_of_own_files", kAll, TryModes,
     PrepareModes<kUser, kUserGroup>},
    {"perm.modes_of_roots_files", kAll, TryModes, PrepareModes<0, 0>},
    {"perm.modes_of_own_groups_files", kAll, TryModes,
     PrepareModes<0, kUserGroup>},
    {"perm.modes_of_extra_groups_files", kAll, TryModes,
     PrepareModes<0, kExtraGroup>},
    {"perm.modes_of_strangers_files", kAll, TryModes,
     PrepareModes<kForeignUser, kForeignGroup>},
    {"perm.modes_of_own_file_in_foreign_group", kAll, TryModes,
     PrepareModes<kUser, kForeignGroup>},

    {"perm.faccessat2_flags", kAll,
     [](Run& run) {
       WriteFile("f", "x", 0600);
       CALL(::symlink("missing", "l"));
       CALL(::syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, 0));
       CALL(::syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, AT_EACCESS));
       CALL(::syscall(SYS_faccessat2, AT_FDCWD, "l", F_OK, 0));
       CALL(
           ::syscall(SYS_faccessat2, AT_FDCWD, "l", F_OK, AT_SYMLINK_NOFOLLOW));
       const int fd = FD(::open("f", O_PATH));
       CALL(::syscall(SYS_faccessat2, fd, "", R_OK, AT_EMPTY_PATH));
       CALL(::syscall(SYS_faccessat2, AT_FDCWD, "f", 99, 0));
       CALL(::access("f/x", F_OK));
       CALL(::access("", F_OK));
     }},
    {"perm.sticky_directory", kUsersOnly,
     [](Run& run) {
       CALL(::unlink("sticky/theirs"));
       CALL(::rename("sticky/theirs", "sticky/x"));
       WriteFile("sticky/mine", "m");
       CALL(::rename("sticky/mine", "sticky/theirs"));
       CALL(::rename("sticky/mine", "sticky/mine2"));
       CALL(::unlink("sticky/mine2"));
       CALL(::rmdir("sticky/theirdir"));
       CALL(::unlink("sticky/given"));
       run.List("sticky");
     },
     [](Run&) {
       struct stat here = {};
       ::stat(".", &here);
       ::mkdir("sticky", 0755);
       ::chmod("sticky", 01777);
       WriteFile("sticky/theirs", "t");
       ::mkdir("sticky/theirdir", 0777);
       WriteFile("sticky/given", "g");
       (void)!::chown("sticky/given", here.st_uid, here.st_gid);
     }},
    {"perm.sticky_directory_of_ones_own", kUsersOnly,
     [](Run& run) {
       CALL(::unlink("sticky/theirs"));
       run.List("sticky");
     },
     [](Run&) {
       struct stat here = {};
       ::stat(".", &here);
       ::mkdir("sticky", 0755);
       ::chmod("sticky", 01777);
       WriteFile("sticky/theirs", "t");
       (void)!::chown("sticky", here.st_uid, here.st_gid);
     }},
    {"perm.delete_others_file_in_own_directory", kUsersOnly,
     [](Run& run) {
       CALL(::unlink("theirs"));
       CALL(::rmdir("dir"));
       CALL(::rename("full", "renamed"));
       CALL(::rmdir("renamed"));
       CALL(::unlink("renamed/x"));
       run.List(".");
     },
     [](Run&) {
       WriteFile("theirs", "x", 0600);
       ::mkdir("dir", 0700);
       ::mkdir("full", 0755);
       WriteFile("full/x", "x");
     }},
    {"perm.search_without_read", kUsersOnly,
     [](Run& run) {
       CALL(::chdir("d"));
       run.List(".");
       run.Content("known");
       FD(::open("unknown", O_RDONLY));
       CALL(::chdir("sub"));
       run.Content("inner");
       CALL(::chdir(".."));
     },
     [](Run&) {
       ::mkdir("d", 0755);
       WriteFile("d/known", "k");
       ::mkdir("d/sub", 0755);
       WriteFile("d/sub/inner", "i");
       ::chmod("d", 0711);
     }},
    {"perm.read_without_search", kUsersOnly,
     [](Run& run) {
       run.List("d");
       run.Stat("d/f");
       FD(::open("d/f", O_RDONLY));
       CALL(::chdir("d"));
     },
     [](Run&) {
       ::mkdir("d", 0755);
       WriteFile("d/f", "f");
       ::chmod("d", 0744);
     }},
    {"perm.directory_loses_permission_below_us", kUsersOnly,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       WriteFile("d/f", "x");
       const int dir = FD(::open("d", O_RDONLY));
       const int fd = FD(::open("d/f", O_RDWR));
       CALL(::chmod("d", 0));
       FD(::open("d/f", O_RDONLY));
       FD(::openat(dir, "f", O_RDONLY));
       CALL(::write(fd, "y", 1));
       run.FStat(fd);
       run.Stat("d/f");
       CALL(::chmod("d", 0755));
       run.Content("d/f");
     }},
    {"perm.changed_by_another_process", kUsersOnly,
     [](Run& run) {
       WriteFile("f", "x", 0644);
       CALL(::access("f", R_OK));
       Run::Peer peer(
           run, [](Run& side, Run::Peer&) { PEER_CALL(::chmod("f", 0)); });
       peer.Join();
       CALL(::access("f", R_OK));
       FD(::open("f", O_RDONLY));
       run.Stat("f");
     }},
    {"perm.root_reads_and_writes_anything", kRootOnly,
     [](Run& run) {
       WriteFile("f", "x", 0);
       CALL(::chown("f", kForeignUser, kForeignGroup));
       run.Content("f");
       WriteFile("f", "written");
       run.Content("f");
       CALL(::access("f", X_OK));
       CALL(::chmod("f", 0001));
       CALL(::access("f", X_OK));
       CALL(::mkdir("d", 0));
       CALL(::chown("d", kForeignUser, kForeignGroup));
       WriteFile("d/f", "in");
       run.List("d");
     }},
    {"perm.fsuid_decides", kRootOnly,
     [](Run& run) {
       WriteFile("secret", "s", 0600);
       ::chmod(".", 0777);
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         // A file server's way of acting for a user.
         ::syscall(SYS_setfsgid, kForeignGroup);
         ::syscall(SYS_setfsuid, kForeignUser);
         PEER_FD(::open("secret", O_RDONLY));
         PEER_FD(::open("mine", O_CREAT | O_RDWR, 0644));
         PEER_CALL(::mkdir("dir", 0755));
         PEER_CALL(::symlink("x", "link"));
         side.Stat("mine");
       });
       peer.Join();
       for (const char* n : {"mine", "dir", "link"}) run.Stat(n);
     }},
    {"perm.owner_and_group_of_what_is_made", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       CALL(::symlink("x", "l"));
       CALL(::mkfifo("p", 0644));
       CALL(::mknod("n", S_IFREG | 0644, 0));
       for (const char* n : {"f", "d", "l", "p", "n"}) run.Stat(n);
     }},
    {"perm.effective_group_decides", kRootOnly,
     [](Run& run) {
       CALL(::setegid(kExtraGroup));
       CALL(::seteuid(kForeignUser));
       FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::seteuid(0));
       FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::mkdir("d", 0755));
       run.Stat("f");
       run.Stat("d");
     }},
};

}  // namespace

std::span<const Scenario> PermissionScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
