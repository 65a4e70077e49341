// Extended attributes and POSIX ACLs.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

void ListXattrs(Run& run, const char* path) {
  char names[4096];
  const ssize_t n = ::llistxattr(path, names, sizeof names);
  std::vector<std::string> sorted;
  for (ssize_t at = 0; at < n;) {
    sorted.emplace_back(names + at);
    at += static_cast<ssize_t>(sorted.back().size()) + 1;
  }
  std::sort(sorted.begin(), sorted.end());
  std::string all;
  for (const std::string& name : sorted) all += " " + name;
  run.Ret("listxattr", n);
  run.Note("xattrs of %s:%s", path, all.c_str());
}

void GetXattr(Run& run, const char* path, const char* name) {
  char value[4096];
  const ssize_t n = ::lgetxattr(path, name, value, sizeof value);
  run.Ret(name, n);
  if (n >= 0) run.Bytes("value", {value, static_cast<size_t>(n)});
}

// linux/include/uapi/linux/posix_acl_xattr.h
struct AclEntry {
  uint16_t tag;
  uint16_t perm;
  uint32_t id;
};
constexpr uint16_t kUserObj = 1, kUser = 2, kGroupObj = 4, kGroup = 8,
                   kMask = 16, kOther = 32;
constexpr uint32_t kNoId = 0xffffffff;

int SetAcl(const char* path, const char* name,
           const std::vector<AclEntry>& entries) {
  const uint32_t version = 2;
  std::string value(reinterpret_cast<const char*>(&version), 4);
  value.append(reinterpret_cast<const char*>(entries.data()),
               entries.size() * sizeof(AclEntry));
  return ::setxattr(path, name, value.data(), value.size(), 0);
}
constexpr char kAccess[] = "system.posix_acl_access";
constexpr char kDefault[] = "system.posix_acl_default";

void LogAcl(Run& run, const char* path, const char* name) {
  std::string value(4096, '\0');
  const ssize_t n = ::getxattr(path, name, value.data(), value.size());
  if (n < 4) {
    run.Ret(name, n);
    return;
  }
  std::string text;
  for (ssize_t at = 4; at + 8 <= n; at += 8) {
    AclEntry entry;
    std::memcpy(&entry, value.data() + at, sizeof entry);
    text += " " + std::to_string(entry.tag) + ":" +
            (entry.id == kNoId ? "" : std::to_string(entry.id)) + ":" +
            std::to_string(entry.perm);
  }
  run.Note("%s of %s:%s", name, path, text.c_str());
}

// One namespace on every kind of file.
void Namespace(Run& run, const char* name) {
  WriteFile("file", "x");
  ::mkdir("dir", 0755);
  ::symlink("file", "link");
  ::mkfifo("fifo", 0644);
  for (const char* path : {"file", "dir", "link", "fifo", "missing"}) {
    run.Note("%s", path);
    run.Ret("lsetxattr", ::lsetxattr(path, name, "value", 5, 0));
    GetXattr(run, path, name);
    ListXattrs(run, path);
    run.Ret("lremovexattr", ::lremovexattr(path, name));
    run.Ret("lremovexattr", ::lremovexattr(path, name));
    run.Ret("lsetxattr", ::lsetxattr(path, name, "again", 5, 0));
  }
}

// Two set-gid files, one of a group that the user is not in.
void MakeSetgidFiles(Run&) {
  struct stat here = {};
  ::stat(".", &here);
  WriteFile("foreign", "x");
  WriteFile("own", "x");
  (void)!::chown("foreign", here.st_uid, kForeignGroup);
  (void)!::chown("own", here.st_uid, here.st_gid);
  ::chmod("foreign", 02755);
  ::chmod("own", 02755);
}

constexpr Scenario kScenarios[] = {
    {"xattr.user", kAll, [](Run& run) { Namespace(run, "user.test"); }},
    {"xattr.trusted", kAll, [](Run& run) { Namespace(run, "trusted.test"); }},
    {"xattr.security", kAll, [](Run& run) { Namespace(run, "security.test"); }},
    {"xattr.system", kAll, [](Run& run) { Namespace(run, "system.test"); }},
    {"xattr.no_namespace", kAll, [](Run& run) { Namespace(run, "test"); }},
    {"xattr.empty_suffix", kAll, [](Run& run) { Namespace(run, "user."); }},

    {"xattr.create_and_replace", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::setxattr("f", "user.a", "1", 1, XATTR_REPLACE));
       CALL(::setxattr("f", "user.a", "1", 1, XATTR_CREATE));
       CALL(::setxattr("f", "user.a", "2", 1, XATTR_CREATE));
       CALL(::setxattr("f", "user.a", "33", 2, XATTR_REPLACE));
       CALL(::setxattr("f", "user.a", "4", 1, XATTR_CREATE | XATTR_REPLACE));
       CALL(::setxattr("f", "user.a", "5", 1, 99));
       GetXattr(run, "f", "user.a");
     }},
    {"xattr.sizes", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       char b[16];
       CALL(::setxattr("f", "user.empty", "", 0, 0));
       CALL(::setxattr("f", "user.ten", "0123456789", 10, 0));
       CALL(::getxattr("f", "user.ten", nullptr, 0));
       CALL(::getxattr("f", "user.ten", b, 9));
       CALL(::getxattr("f", "user.ten", b, 10));
       CALL(::getxattr("f", "user.empty", b, 10));
       CALL(::getxattr("f", "user.empty", nullptr, 0));
       CALL(::getxattr("f", "user.missing", b, 10));
       CALL(::listxattr("f", nullptr, 0));
       CALL(::listxattr("f", b, 3));
       ListXattrs(run, "f");
     }},
    {"xattr.lists_that_just_fit", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::setxattr("f", "user.a", "v", 1, 0));
       CALL(::setxattr("f", "user.longer", "v", 1, 0));
       std::string list(64, '?');
       const auto needed = static_cast<size_t>(::listxattr("f", nullptr, 0));
       run.Note("needed %zu", needed);
       for (const size_t room : {needed - 1, needed, needed + 1}) {
         run.Ret("listxattr with that room",
                 ::listxattr("f", list.data(), room));
       }
       const int fd = FD(::open("f", O_RDONLY));
       run.Ret("flistxattr", ::flistxattr(fd, list.data(), needed));
     }},
    {"xattr.binary_values", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::setxattr("f", "user.b", "a\0b\0\xff", 5, 0));
       GetXattr(run, "f", "user.b");
       CALL(::setxattr("f", "user.b", "\n", 1, 0));
       GetXattr(run, "f", "user.b");
     }},
    {"xattr.long_names_and_values", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const std::string n255 = "user." + std::string(250, 'n');
       const std::string n256 = "user." + std::string(251, 'n');
       run.Ret("255", ::setxattr("f", n255.c_str(), "v", 1, 0));
       run.Ret("256", ::setxattr("f", n256.c_str(), "v", 1, 0));
       const std::string v1000 = Pattern(1000);
       const std::string v65537(65537, 'v');
       CALL(::setxattr("f", "user.v", v1000.data(), v1000.size(), 0));
       GetXattr(run, "f", "user.v");
       CALL(::setxattr("f", "user.w", v65537.data(), v65537.size(), 0));
       CALL(::setxattr("f", "", "v", 1, 0));
     }},
    {"xattr.value_that_fills_the_file_systems_room", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const std::string v = Pattern(3500);
       const std::string w = Pattern(60000);
       run.Ret("3500", ::setxattr("f", "user.v", v.data(), v.size(), 0));
       run.Ret("60000", ::setxattr("f", "user.w", w.data(), w.size(), 0));
       run.Ret("again", ::setxattr("f", "user.x", v.data(), v.size(), 0));
       ListXattrs(run, "f");
     }},
    {"xattr.many", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       for (int i = 0; i < 40; ++i) {
         const std::string name = "user.n" + std::to_string(i);
         run.Ret("set", ::setxattr("f", name.c_str(), "v", 1, 0));
       }
       ListXattrs(run, "f");
       for (int i = 0; i < 40; i += 2) {
         const std::string name = "user.n" + std::to_string(i);
         ::removexattr("f", name.c_str());
       }
       ListXattrs(run, "f");
     }},
    {"xattr.by_descriptor", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       char b[16];
       CALL(::fsetxattr(fd, "user.a", "v", 1, 0));
       CALL(::fgetxattr(fd, "user.a", b, 16));
       CALL(::flistxattr(fd, b, 16));
       CALL(::unlink("f"));
       CALL(::fsetxattr(fd, "user.b", "w", 1, 0));
       CALL(::fgetxattr(fd, "user.b", b, 16));
       CALL(::fremovexattr(fd, "user.a"));
       CALL(::flistxattr(fd, b, 16));
       const int p = FD(::open(".", O_PATH));
       CALL(::fgetxattr(p, "user.a", b, 16));
       CALL(::fsetxattr(p, "user.a", "v", 1, 0));
       CALL(::flistxattr(p, b, 16));
       CALL(::fremovexattr(p, "user.a"));
     }},
    {"xattr.survive_rename_and_link", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::setxattr("f", "user.a", "v", 1, 0));
       CALL(::link("f", "g"));
       CALL(::rename("f", "h"));
       GetXattr(run, "g", "user.a");
       GetXattr(run, "h", "user.a");
       CALL(::removexattr("g", "user.a"));
       GetXattr(run, "h", "user.a");
     }},
    {"xattr.permissions", kUsersOnly,
     [](Run& run) {
       for (const char* f : {"readable", "writable", "hidden"}) {
         run.Note("%s", f);
         CALL(::setxattr(f, "user.a", "v", 1, 0));
         GetXattr(run, f, "user.set");
         GetXattr(run, f, "trusted.set");
         GetXattr(run, f, "security.set");
         ListXattrs(run, f);
         CALL(::removexattr(f, "user.set"));
       }
       CALL(::setxattr("stickydir", "user.a", "v", 1, 0));
       CALL(::setxattr("opendir", "user.a", "v", 1, 0));
     },
     [](Run&) {
       for (const char* f : {"readable", "writable", "hidden"}) {
         WriteFile(f, "x");
         ::setxattr(f, "user.set", "1", 1, 0);
         ::setxattr(f, "trusted.set", "2", 1, 0);
         ::setxattr(f, "security.set", "3", 1, 0);
       }
       ::chmod("writable", 0666);
       ::chmod("hidden", 0);
       ::mkdir("stickydir", 0755);
       ::chmod("stickydir", 01777);
       ::mkdir("opendir", 0755);
       ::chmod("opendir", 0777);
     }},
    {"xattr.file_capability_dropped_by_write", kAll,
     [](Run& run) {
       for (const char* f : {"a", "b", "c", "d"}) {
         CALL(::getxattr(f, "security.capability", nullptr, 0));
       }
       const int fd = FD(::open("a", O_WRONLY));
       CALL(::write(fd, "x", 1));
       CALL(::truncate("b", 1));
       CALL(::chown("c", ::geteuid(), ::getegid()));
       FD(::open("d", O_WRONLY | O_TRUNC));
       for (const char* f : {"a", "b", "c", "d"}) {
         CALL(::getxattr(f, "security.capability", nullptr, 0));
         run.Stat(f);
       }
     },
     [](Run&) {
       const uint32_t capability[5] = {0x02000001, 1 << 13, 0, 0, 0};
       struct stat here = {};
       ::stat(".", &here);
       for (const char* f : {"a", "b", "c", "d"}) {
         WriteFile(f, "0123");
         (void)!::chown(f, here.st_uid, here.st_gid);
         ::setxattr(f, "security.capability", capability, sizeof capability, 0);
       }
     }},
    {"xattr.file_capability_set", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const uint32_t capability[5] = {0x02000001, 1 << 13, 0, 0, 0};
       CALL(::setxattr("f", "security.capability", capability,
                       sizeof capability, 0));
       CALL(::setxattr("f", "security.capability", "junk", 4, 0));
       GetXattr(run, "f", "security.capability");
       CALL(::removexattr("f", "security.capability"));
     }},

    {"acl.set_and_get", kAll,
     [](Run& run) {
       WriteFile("f", "x", 0640);
       LogAcl(run, "f", kAccess);
       CALL(SetAcl("f", kAccess,
                   {{kUserObj, 6, kNoId},
                    {kUser, 4, kForeignUser},
                    {kGroupObj, 4, kNoId},
                    {kMask, 6, kNoId},
                    {kOther, 0, kNoId}}));
       LogAcl(run, "f", kAccess);
       run.Stat("f");
       CALL(::chmod("f", 0604));
       LogAcl(run, "f", kAccess);
       run.Stat("f");
       CALL(::removexattr("f", kAccess));
       LogAcl(run, "f", kAccess);
       run.Stat("f");
       ListXattrs(run, "f");
     }},
    {"acl.minimal_becomes_mode", kAll,
     [](Run& run) {
       WriteFile("f", "x", 0640);
       CALL(SetAcl(
           "f", kAccess,
           {{kUserObj, 7, kNoId}, {kGroupObj, 5, kNoId}, {kOther, 1, kNoId}}));
       run.Stat("f");
       LogAcl(run, "f", kAccess);
       ListXattrs(run, "f");
     }},
    {"acl.invalid", kAll,
     [](Run& run) {
       WriteFile("f", "x", 0640);
       CALL(SetAcl("f", kAccess, {}));
       CALL(SetAcl("f", kAccess, {{kUserObj, 7, kNoId}}));
       CALL(SetAcl(
           "f", kAccess,
           {{kOther, 7, kNoId}, {kGroupObj, 7, kNoId}, {kUserObj, 7, kNoId}}));
       CALL(::setxattr("f", kAccess, "x", 1, 0));
       CALL(::setxattr("f", kAccess, nullptr, 0, 0));
       CALL(SetAcl(
           "f", kDefault,
           {{kUserObj, 7, kNoId}, {kGroupObj, 5, kNoId}, {kOther, 1, kNoId}}));
       run.Stat("f");
     }},
    {"acl.denies_what_the_mode_seems_to_grant", kUsersOnly,
     [](Run& run) {
       FD(::open("deny", O_RDONLY));
       CALL(::access("deny", R_OK));
       FD(::open("grant", O_RDONLY));
       FD(::open("grant", O_WRONLY));
       FD(::open("masked", O_RDONLY));
       FD(::open("masked", O_RDWR));
       FD(::open("group", O_RDWR));
       FD(::open("dir/f", O_RDONLY));
       FD(::open("dir/new", O_CREAT | O_RDWR, 0644));
     },
     [](Run&) {
       struct stat here = {};
       ::stat(".", &here);
       const uid_t me = here.st_uid;
       WriteFile("deny", "x", 0644);
       SetAcl("deny", kAccess,
              {{kUserObj, 6, kNoId},
               {kUser, 0, me},
               {kGroupObj, 4, kNoId},
               {kMask, 4, kNoId},
               {kOther, 4, kNoId}});
       WriteFile("grant", "x", 0600);
       SetAcl("grant", kAccess,
              {{kUserObj, 6, kNoId},
               {kUser, 4, me},
               {kGroupObj, 0, kNoId},
               {kMask, 4, kNoId},
               {kOther, 0, kNoId}});
       WriteFile("masked", "x", 0600);
       SetAcl("masked", kAccess,
              {{kUserObj, 6, kNoId},
               {kUser, 6, me},
               {kGroupObj, 0, kNoId},
               {kMask, 4, kNoId},
               {kOther, 0, kNoId}});
       WriteFile("group", "x", 0600);
       SetAcl("group", kAccess,
              {{kUserObj, 6, kNoId},
               {kGroupObj, 0, kNoId},
               {kGroup, 6, kExtraGroup},
               {kMask, 6, kNoId},
               {kOther, 0, kNoId}});
       ::mkdir("dir", 0700);
       WriteFile("dir/f", "x");
       SetAcl("dir", kAccess,
              {{kUserObj, 7, kNoId},
               {kUser, 5, me},
               {kGroupObj, 0, kNoId},
               {kMask, 7, kNoId},
               {kOther, 0, kNoId}});
     }},
    {"acl.default_is_inherited", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(SetAcl("d", kDefault,
                   {{kUserObj, 7, kNoId},
                    {kUser, 6, kForeignUser},
                    {kGroupObj, 5, kNoId},
                    {kMask, 7, kNoId},
                    {kOther, 1, kNoId}}));
       for (const mode_t mask : {0, 022, 077}) {
         ::umask(mask);
         const std::string in = "d/u" + std::to_string(mask);
         for (const mode_t mode : {0666, 0600, 0640, 0777}) {
           const std::string file = in + "f" + std::to_string(mode);
           run.Fd("create", ::open(file.c_str(), O_CREAT | O_RDWR, mode));
           run.Stat(file.c_str());
           LogAcl(run, file.c_str(), kAccess);
         }
         const std::string dir = in + "d";
         run.Ret("mkdir", ::mkdir(dir.c_str(), 0775));
         run.Stat(dir.c_str());
         LogAcl(run, dir.c_str(), kAccess);
         LogAcl(run, dir.c_str(), kDefault);
         const std::string fifo = in + "p";
         run.Ret("mkfifo", ::mkfifo(fifo.c_str(), 0666));
         run.Stat(fifo.c_str());
         const std::string node = in + "n";
         run.Ret("mknod", ::mknod(node.c_str(), S_IFREG | 0664, 0));
         run.Stat(node.c_str());
         LogAcl(run, node.c_str(), kAccess);
       }
       const int t = FD(::open("d", O_TMPFILE | O_RDWR, 0666));
       run.FStat(t);
       CALL(::symlink("x", "d/l"));
       run.Stat("d/l");
     }},
    {"acl.default_removed", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(SetAcl(
           "d", kDefault,
           {{kUserObj, 7, kNoId}, {kGroupObj, 7, kNoId}, {kOther, 7, kNoId}}));
       ::umask(077);
       WriteFile("d/with", "x", 0666);
       run.Stat("d/with");
       CALL(::removexattr("d", kDefault));
       CALL(::removexattr("d", kDefault));
       WriteFile("d/without", "x", 0666);
       run.Stat("d/without");
     }},
    {"acl.setgid_dropped_for_non_member", kUsersOnly,
     [](Run& run) {
       // POSIX: a user outside the group cannot keep its set-gid bit.
       for (const char* f : {"foreign", "own"}) {
         run.Stat(f);
         CALL(SetAcl(f, kAccess,
                     {{kUserObj, 7, kNoId},
                      {kUser, 5, kForeignUser},
                      {kGroupObj, 5, kNoId},
                      {kMask, 5, kNoId},
                      {kOther, 5, kNoId}}));
         run.Stat(f);
       }
     },
     MakeSetgidFiles},
    {"acl.setgid_dropped_with_the_acl_for_non_member", kUsersOnly,
     [](Run& run) {
       for (const char* f : {"foreign", "own"}) {
         CALL(::removexattr(f, kAccess));
         run.Stat(f);
       }
     },
     MakeSetgidFiles},
    {"acl.by_non_owner", kUsersOnly,
     [](Run& run) {
       CALL(SetAcl(
           "f", kAccess,
           {{kUserObj, 7, kNoId}, {kGroupObj, 7, kNoId}, {kOther, 7, kNoId}}));
       LogAcl(run, "f", kAccess);
       CALL(::removexattr("f", kAccess));
     },
     [](Run&) {
       WriteFile("f", "x");
       ::chmod("f", 0666);
     }},
    {"acl.changed_while_open", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(SetAcl("f", kAccess,
                   {{kUserObj, 0, kNoId},
                    {kUser, 4, kForeignUser},
                    {kGroupObj, 0, kNoId},
                    {kMask, 4, kNoId},
                    {kOther, 0, kNoId}}));
       CALL(::write(fd, "x", 1));
       FD(::open("f", O_RDONLY));
       run.FStat(fd);
     }},
};

}  // namespace

std::span<const Scenario> XattrScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
