// Modes, owners, times, and what stat, statx and statfs tell.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include <cerrno>
#include <ctime>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

constexpr timespec kOld[2] = {{1000000000, 123456789}, {900000000, 987654321}};

bool Recent(const timespec& t) {
  const time_t now = ::time(nullptr);
  return t.tv_sec >= now - 100 && t.tv_sec <= now + 2;
}

// Which of the three times a step has moved away from long ago (ctime: from
// before the step).
class Moves {
 public:
  explicit Moves(const char* path) : path_(path) {
    ::utimensat(AT_FDCWD, path, kOld, AT_SYMLINK_NOFOLLOW);
    ::lstat(path, &before_);
    SleepMs(12);  // past a tick of the file system's clock
  }
  void Log(Run& run, const char* step) {
    struct stat now = {};
    ::lstat(path_, &now);
    const auto moved = [](const timespec& a, const timespec& b) {
      return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
    };
    run.Note("%s moved atime %d mtime %d ctime %d", step,
             moved(before_.st_atim, now.st_atim),
             moved(before_.st_mtim, now.st_mtim),
             moved(before_.st_ctim, now.st_ctim));
  }

 private:
  const char* path_;
  struct stat before_ = {};
};

// A set-id file after `touch`.
template <mode_t mode>
void SetIdAfter(Run& run) {
  const struct {
    const char* name;
    void (*step)(const char* path);
  } kSteps[] = {
      {"write",
       [](const char* p) {
         const int fd = ::open(p, O_WRONLY);
         if (::write(fd, "x", 1) != 1) return;
         ::close(fd);
       }},
      {"write nothing",
       [](const char* p) {
         const int fd = ::open(p, O_WRONLY);
         if (::write(fd, "", 0) != 0) return;
         ::close(fd);
       }},
      {"append",
       [](const char* p) {
         const int fd = ::open(p, O_WRONLY | O_APPEND);
         if (::write(fd, "x", 1) != 1) return;
         ::close(fd);
       }},
      {"open only", [](const char* p) { ::close(::open(p, O_WRONLY)); }},
      {"O_TRUNC",
       [](const char* p) { ::close(::open(p, O_WRONLY | O_TRUNC)); }},
      {"truncate", [](const char* p) { (void)!::truncate(p, 1); }},
      {"ftruncate",
       [](const char* p) {
         const int fd = ::open(p, O_WRONLY);
         (void)!::ftruncate(fd, 2);
         ::close(fd);
       }},
      {"truncate to the same", [](const char* p) { (void)!::truncate(p, 4); }},
      {"fallocate",
       [](const char* p) {
         const int fd = ::open(p, O_WRONLY);
         (void)!::fallocate(fd, 0, 0, 100);
         ::close(fd);
       }},
      {"chown to itself",
       [](const char* p) { (void)!::chown(p, ::geteuid(), ::getegid()); }},
      {"chown to nobody in particular",
       [](const char* p) {
         (void)!::chown(p, static_cast<uid_t>(-1), static_cast<gid_t>(-1));
       }},
      {"chmod", [](const char* p) { ::chmod(p, mode | 0111); }},
      {"utimens", [](const char* p) { ::utimensat(AT_FDCWD, p, kOld, 0); }},
      {"link",
       [](const char* p) {
         (void)!::link(p, (std::string(p) + ".link").c_str());
       }},
      {"copy_file_range",
       [](const char* p) {
         WriteFile("source", "0123456789");
         const int from = ::open("source", O_RDONLY);
         const int to = ::open(p, O_WRONLY);
         (void)!::copy_file_range(from, nullptr, to, nullptr, 10, 0);
         ::close(from);
         ::close(to);
       }},
  };
  int number = 0;
  for (const auto& step : kSteps) {
    // The set-up is root's, so that others' files are there to be written to.
    const std::string path = "f" + std::to_string(number++);
    run.Note("%s", step.name);
    run.Stat(path.c_str());
    step.step(path.c_str());
    run.Stat(path.c_str());
  }
}

template <mode_t mode, bool mine>
void PrepareSetId(Run&) {
  struct stat dir = {};
  ::stat(".", &dir);
  for (int i = 0; i < 20; ++i) {
    const std::string path = "f" + std::to_string(i);
    WriteFile(path.c_str(), "0123");
    if (mine) (void)!::chown(path.c_str(), dir.st_uid, dir.st_gid);
    ::chmod(path.c_str(), mode);
  }
}

void Statx(Run& run, const char* path, int flags, unsigned mask) {
  struct statx st = {};
  const int result = ::statx(AT_FDCWD, path, flags, mask, &st);
  run.Ret(path, result);
  if (result != 0) return;
  constexpr unsigned kKnown = STATX_BASIC_STATS | STATX_BTIME;
  run.Note("mask %#x mode %06o uid %u gid %u attributes %#llx",
           st.stx_mask & mask & kKnown, st.stx_mode, st.stx_uid, st.stx_gid,
           st.stx_attributes &
               (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP));
  if ((mask & st.stx_mask & STATX_BTIME) != 0) {
    run.Note("born lately %d", Recent({st.stx_btime.tv_sec, 0}));
  }
  if (!S_ISDIR(st.stx_mode)) {
    run.Note("size %llu nlink %u", st.stx_size, st.stx_nlink);
  }
}

constexpr Scenario kScenarios[] = {
    // The descriptor is older than the bits.
    {"attr.root_writes_to_what_became_setid", kRootOnly,
     [](Run& run) {
       WriteFile("f", "content");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::chmod("f", 06777));
       CALL(::pwrite(fd, "x", 1, 0));
       run.Stat("f");
     }},
    {"attr.user_writes_to_what_became_setid", kUsersOnly,
     [](Run& run) {
       WriteFile("f", "content");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::chmod("f", 06777));
       CALL(::pwrite(fd, "x", 1, 0));
       run.Stat("f");
     }},
    {"attr.setuid_after_steps", kAll, SetIdAfter<04777>,
     PrepareSetId<04777, false>},
    {"attr.setgid_after_steps", kAll, SetIdAfter<02777>,
     PrepareSetId<02777, false>},
    {"attr.setboth_after_steps", kAll, SetIdAfter<06777>,
     PrepareSetId<06777, false>},
    {"attr.setgid_without_exec_after_steps", kAll, SetIdAfter<02766>,
     PrepareSetId<02766, false>},
    {"attr.own_setuid_after_steps", kAll, SetIdAfter<04755>,
     PrepareSetId<04755, true>},
    {"attr.own_setgid_after_steps", kAll, SetIdAfter<02775>,
     PrepareSetId<02775, true>},
    {"attr.own_sticky_after_steps", kAll, SetIdAfter<01777>,
     PrepareSetId<01777, true>},

    {"attr.chmod_all_bits", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       for (mode_t mode = 0; mode <= 07777; mode = mode * 2 + 3) {
         run.Ret("chmod f", ::chmod("f", mode));
         run.Stat("f");
         run.Ret("chmod d", ::chmod("d", mode));
         run.Stat("d");
       }
       CALL(::chmod("f", 0100644));
       CALL(::chmod("f", 0177777));
       run.Stat("f");
       CALL(::chmod("d", 0755));
     }},
    {"attr.chmod_errors", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::symlink("missing", "l"));
       CALL(::chmod("missing", 0644));
       CALL(::chmod("l", 0644));
       CALL(::chmod("f/x", 0644));
       CALL(::fchmod(-1, 0644));
       const int p = FD(::open("f", O_PATH));
       CALL(::fchmod(p, 0644));
       const int r = FD(::open("f", O_RDONLY));
       CALL(::fchmod(r, 0600));
       run.Stat("f");
     }},
    {"attr.chmod_not_owner", kUsersOnly,
     [](Run& run) {
       CALL(::chmod("theirs", 0777));
       CALL(::chmod("dir", 0777));
       CALL(::chmod("writable", 0600));
       run.Stat("theirs");
     },
     [](Run&) {
       WriteFile("theirs", "x");
       ::mkdir("dir", 0755);
       WriteFile("writable", "x");
       ::chmod("writable", 0666);
     }},
    {"attr.chmod_setgid_in_foreign_group", kUsersOnly,
     [](Run& run) {
       // The owner is not in the group: the bit is dropped without an error.
       CALL(::chmod("f", 02755));
       run.Stat("f");
       CALL(::chmod("d", 02755));
       run.Stat("d");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::fchmod(fd, 06755));
       run.Stat("f");
     },
     [](Run&) {
       struct stat dir;
       ::stat(".", &dir);
       WriteFile("f", "x");
       ::mkdir("d", 0755);
       (void)!::chown("f", dir.st_uid, kForeignGroup);
       (void)!::chown("d", dir.st_uid, kForeignGroup);
     }},
    {"attr.chmod_setgid_in_extra_group", kUsersOnly,
     [](Run& run) {
       CALL(::chmod("f", 02755));
       run.Stat("f");
       CALL(::chmod("d", 02755));
       run.Stat("d");
     },
     [](Run&) {
       struct stat dir;
       ::stat(".", &dir);
       WriteFile("f", "x");
       ::mkdir("d", 0755);
       (void)!::chown("f", dir.st_uid, kExtraGroup);
       (void)!::chown("d", dir.st_uid, kExtraGroup);
     }},
    {"attr.chown_by_root", kRootOnly,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::symlink("f", "l"));
       CALL(::chmod("f", 06777));
       CALL(::chown("f", 1000, 1001));
       run.Stat("f");
       CALL(::chown("f", static_cast<uid_t>(-1), 1002));
       CALL(::chown("f", 1003, static_cast<gid_t>(-1)));
       run.Stat("f");
       CALL(::lchown("l", 5, 6));
       run.Stat("l");
       CALL(::chown("l", 7, 8));
       run.Stat("f");
       run.Stat("l");
       const int fd = FD(::open("f", O_RDONLY));
       CALL(::fchown(fd, 9, 10));
       run.FStat(fd);
       CALL(::fchownat(fd, "", 11, 12, AT_EMPTY_PATH));
       run.FStat(fd);
       CALL(::mkdir("d", 02755));
       CALL(::chmod("d", 06755));
       CALL(::chown("d", 5, 5));
       run.Stat("d");
       CALL(::chown("f", 0x7ffffffe, 0x7ffffffe));
       run.Stat("f");
     }},
    {"attr.chown_by_owner", kUsersOnly,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::chown("f", ::geteuid(), ::getegid()));
       CALL(::chown("f", kForeignUser, static_cast<gid_t>(-1)));
       CALL(::chown("f", static_cast<uid_t>(-1), kForeignGroup));
       // Allowed to a member of that group.
       CALL(::chown("f", static_cast<uid_t>(-1), kExtraGroup));
       run.Stat("f");
       CALL(::chown("f", 0, 0));
       CALL(::lchown("f", static_cast<uid_t>(-1), ::getegid()));
       run.Stat("f");
     }},
    {"attr.chown_not_owner", kUsersOnly,
     [](Run& run) {
       CALL(::chown("f", ::geteuid(), ::getegid()));
       CALL(::chown("f", static_cast<uid_t>(-1), static_cast<gid_t>(-1)));
       CALL(::lchown("f", static_cast<uid_t>(-1), ::getegid()));
     },
     [](Run&) { WriteFile("f", "x"); }},

    {"attr.utimens_set", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       CALL(::symlink("f", "l"));
       for (const char* name : {"f", "d", "l"}) {
         CALL(::utimensat(AT_FDCWD, name, kOld, AT_SYMLINK_NOFOLLOW));
         run.Times(name);
       }
       CALL(::utimensat(AT_FDCWD, "l", kOld, 0));
       const timespec before_1970[2] = {{-1000, 5}, {-1, 999999999}};
       CALL(::utimensat(AT_FDCWD, "f", before_1970, 0));
       run.Times("f");
       const timespec far[2] = {{4000000000, 1}, {10000000000, 2}};
       CALL(::utimensat(AT_FDCWD, "f", far, 0));
       run.Times("f");
       const timespec zero[2] = {{0, 0}, {0, 0}};
       CALL(::utimensat(AT_FDCWD, "f", zero, 0));
       run.Times("f");
     }},
    {"attr.utimens_now_and_omit", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::utimensat(AT_FDCWD, "f", kOld, 0));
       const timespec omit_both[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
       CALL(::utimensat(AT_FDCWD, "f", omit_both, 0));
       run.Times("f");
       const timespec only_m[2] = {{0, UTIME_OMIT}, {500, 77}};
       CALL(::utimensat(AT_FDCWD, "f", only_m, 0));
       run.Times("f");
       const timespec only_a[2] = {{600, 88}, {0, UTIME_OMIT}};
       CALL(::utimensat(AT_FDCWD, "f", only_a, 0));
       run.Times("f");
       const timespec a_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
       CALL(::utimensat(AT_FDCWD, "f", a_now, 0));
       struct stat st;
       CALL(::stat("f", &st));
       run.Note("atime now %d, mtime %ld.%ld", Recent(st.st_atim),
                st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
       const timespec m_now[2] = {{700, 0}, {0, UTIME_NOW}};
       CALL(::utimensat(AT_FDCWD, "f", m_now, 0));
       CALL(::stat("f", &st));
       run.Note("mtime now %d, atime %ld", Recent(st.st_mtim),
                st.st_atim.tv_sec);
       CALL(::utimensat(AT_FDCWD, "f", nullptr, 0));
       CALL(::stat("f", &st));
       run.Note("both now %d %d", Recent(st.st_atim), Recent(st.st_mtim));
       const timespec bad[2] = {{0, 1000000000}, {0, 0}};
       CALL(::utimensat(AT_FDCWD, "f", bad, 0));
       const timespec negative[2] = {{0, 0}, {0, -5}};
       CALL(::utimensat(AT_FDCWD, "f", negative, 0));
     }},
    {"attr.utimens_by_descriptor", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDONLY));
       CALL(::futimens(fd, kOld));
       run.Times("f");
       const int p = FD(::open("f", O_PATH));
       CALL(::futimens(p, kOld));
       const timeval old_style[2] = {{10, 20}, {30, 40}};
       CALL(::utimes("f", old_style));
       run.Times("f");
       const utimbuf oldest = {50, 60};
       CALL(::utime("f", &oldest));
       run.Times("f");
     }},
    {"attr.utimens_by_others", kUsersOnly,
     [](Run& run) {
       for (const char* f : {"readable", "writable"}) {
         CALL(::utimensat(AT_FDCWD, f, kOld, 0));
         CALL(::utimensat(AT_FDCWD, f, nullptr, 0));
         const timespec both_now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
         CALL(::utimensat(AT_FDCWD, f, both_now, 0));
         const timespec one_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
         CALL(::utimensat(AT_FDCWD, f, one_now, 0));
         const timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
         CALL(::utimensat(AT_FDCWD, f, omit, 0));
       }
     },
     [](Run&) {
       WriteFile("readable", "x");
       WriteFile("writable", "x");
       ::chmod("writable", 0666);
     }},
    {"attr.times_of_a_file_move", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       char b[4];
       {
         Moves moves("f");
         const int fd = ::open("f", O_RDONLY);
         moves.Log(run, "open");
         CALL(::read(fd, b, 4));
         moves.Log(run, "read");
         ::close(fd);
       }
       {
         Moves moves("f");
         const int fd = ::open("f", O_RDONLY | O_NOATIME);
         CALL(::read(fd, b, 4));
         moves.Log(run, "read without atime");
         ::close(fd);
       }
       {
         Moves moves("f");
         const int fd = ::open("f", O_WRONLY);
         moves.Log(run, "open for writing");
         CALL(::write(fd, "x", 1));
         moves.Log(run, "write");
         ::close(fd);
         moves.Log(run, "close");
       }
       {
         Moves moves("f");
         CALL(::chmod("f", 0600));
         moves.Log(run, "chmod");
       }
       {
         Moves moves("f");
         CALL(::link("f", "g"));
         moves.Log(run, "link");
       }
       {
         Moves moves("f");
         CALL(::unlink("g"));
         moves.Log(run, "unlink");
       }
       {
         Moves moves("f");
         CALL(::truncate("f", 10));
         moves.Log(run, "truncate to the same size");
       }
       {
         Moves moves("f");
         CALL(::truncate("f", 3));
         moves.Log(run, "truncate");
       }
       {
         Moves moves("f");
         ::close(::open("f", O_WRONLY | O_TRUNC));
         moves.Log(run, "O_TRUNC");
       }
       {
         Moves moves("f");
         ::close(::open("f", O_WRONLY | O_TRUNC));
         moves.Log(run, "O_TRUNC of an empty file");
       }
     }},
    {"attr.rename_moves_ctime", kAll,
     [](Run& run) {
       WriteFile("f", "0");
       ::utimensat(AT_FDCWD, "f", kOld, 0);
       struct stat before, after;
       CALL(::stat("f", &before));
       SleepMs(12);
       CALL(::rename("f", "g"));
       CALL(::stat("g", &after));
       run.Note("mtime same %d ctime same %d",
                before.st_mtim.tv_nsec == after.st_mtim.tv_nsec,
                before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
       run.Times("g");
     }},
    {"attr.times_of_a_directory_move", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const struct {
         const char* name;
         void (*step)();
       } kSteps[] = {
           {"create", [] { WriteFile("d/f", ""); }},
           {"write", [] { WriteFile("d/f", "x"); }},
           {"mkdir", [] { ::mkdir("d/e", 0755); }},
           {"rename inside", [] { ::rename("d/f", "d/g"); }},
           {"symlink", [] { (void)!::symlink("x", "d/l"); }},
           {"link", [] { (void)!::link("d/g", "d/h"); }},
           {"failed mkdir", [] { ::mkdir("d/e", 0755); }},
           {"failed unlink", [] { ::unlink("d/missing"); }},
           {"unlink", [] { ::unlink("d/g"); }},
           {"rmdir", [] { ::rmdir("d/e"); }},
           {"rename out", [] { ::rename("d/h", "h"); }},
           {"rename in", [] { ::rename("h", "d/i"); }},
           {"chmod", [] { ::chmod("d", 0700); }},
       };
       for (const auto& step : kSteps) {
         Moves moves("d");
         step.step();
         moves.Log(run, step.name);
       }
     }},
    {"attr.mtime_kept_by_tar_style_restore", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_WRONLY, 0600));
       CALL(::write(fd, "restored", 8));
       CALL(::fchmod(fd, 0644));
       CALL(::futimens(fd, kOld));
       CALL(::close(fd));
       run.Times("f");
       run.Stat("f");
     }},
    {"attr.mtime_after_write_then_set_on_open_file", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0600));
       CALL(::write(fd, "one", 3));
       CALL(::futimens(fd, kOld));
       run.Times("f");
       CALL(::fsync(fd));
       run.Times("f");
       CALL(::write(fd, "two", 3));
       struct stat st;
       CALL(::fstat(fd, &st));
       run.Note("recent %d", Recent(st.st_mtim));
       CALL(::futimens(fd, kOld));
       CALL(::close(fd));
       SleepMs(20);
       run.Times("f");
     }},
    {"attr.statx", kAll,
     [](Run& run) {
       WriteFile("f", "0123");
       CALL(::mkdir("d", 0755));
       CALL(::symlink("f", "l"));
       for (const unsigned mask :
            {0u, unsigned{STATX_MODE}, unsigned{STATX_SIZE},
             unsigned{STATX_BTIME}, unsigned{STATX_BASIC_STATS},
             unsigned{STATX_ALL}}) {
         for (const char* path : {"f", "d", "l", "missing"}) {
           Statx(run, path, 0, mask);
           Statx(run, path, AT_SYMLINK_NOFOLLOW, mask);
         }
         Statx(run, "f", AT_STATX_FORCE_SYNC, mask);
         Statx(run, "f", AT_STATX_DONT_SYNC, mask);
       }
       Statx(run, "f", 0x800000, STATX_ALL);
       Statx(run, "f", 0, 0x80000000);
       Statx(run, "", AT_EMPTY_PATH, STATX_ALL);
     }},
    {"attr.birth_time_stays", kAll,
     [](Run& run) {
       WriteFile("f", "0123");
       struct statx one = {}, two = {};
       CALL(::statx(AT_FDCWD, "f", 0, STATX_BTIME, &one));
       SleepMs(12);
       WriteFile("f", "more");
       CALL(::chmod("f", 0600));
       CALL(::utimensat(AT_FDCWD, "f", kOld, 0));
       CALL(::rename("f", "g"));
       CALL(::statx(AT_FDCWD, "g", 0, STATX_BTIME, &two));
       run.Note("has %d same %d", (two.stx_mask & STATX_BTIME) != 0,
                one.stx_btime.tv_sec == two.stx_btime.tv_sec &&
                    one.stx_btime.tv_nsec == two.stx_btime.tv_nsec);
     }},
    {"attr.fstat_by_path_descriptor", kAll,
     [](Run& run) {
       WriteFile("f", "0123");
       const int p = FD(::open("f", O_PATH));
       run.FStat(p);
       WriteFile("f", "0123456789");
       run.FStat(p);
       CALL(::unlink("f"));
       run.FStat(p);
       struct stat st;
       CALL(::fstatat(p, "", &st, AT_EMPTY_PATH));
       run.Note("nlink %ld", static_cast<long>(st.st_nlink));
     }},
    {"attr.stat_sees_writes_at_once", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_WRONLY, 0644));
       struct stat st;
       for (int i = 0; i < 50; ++i) {
         if (::write(fd, "0123456789", 10) != 10) break;
         if (::stat("f", &st) != 0 || st.st_size != (i + 1) * 10) {
           run.Note("size %ld after %d", static_cast<long>(st.st_size), i + 1);
         }
       }
       run.FStat(fd);
     }},
    {"attr.statfs", kAll,
     [](Run& run) {
       struct statfs st = {};
       CALL(::statfs(".", &st));
       run.Note("bsize %ld blocks %lu namelen %ld frsize %ld",
                static_cast<long>(st.f_bsize),
                static_cast<unsigned long>(st.f_blocks),
                static_cast<long>(st.f_namelen),
                static_cast<long>(st.f_frsize));
       struct statvfs vfs = {};
       CALL(::statvfs(".", &vfs));
       run.Note("namemax %lu files %lu", vfs.f_namemax, vfs.f_files);
       CALL(::statfs("missing", &st));
       WriteFile("f", "x");
       CALL(::statfs("f/x", &st));
     }},
    {"attr.pathconf", kAll,
     [](Run& run) {
       CALL(::pathconf(".", _PC_NAME_MAX));
       CALL(::pathconf(".", _PC_PATH_MAX));
       CALL(::pathconf(".", _PC_NO_TRUNC));
       CALL(::pathconf(".", _PC_CHOWN_RESTRICTED));
       CALL(::pathconf(".", _PC_PIPE_BUF));
     }},
    {"attr.setgid_directory_inherits", kAll,
     [](Run& run) {
       WriteFile("d/f", "x");
       CALL(::mkdir("d/sub", 0755));
       CALL(::symlink("x", "d/l"));
       CALL(::mkfifo("d/p", 0644));
       ::umask(0);
       FD(::open("d/exec", O_CREAT | O_RDWR, 02755));
       FD(::open("d/noexec", O_CREAT | O_RDWR, 02644));
       CALL(::mkdir("d/dir", 02755));
       CALL(::mkdir("d/dir2", 0777));
       const int t = ::open("d", O_TMPFILE | O_RDWR, 02755);
       run.FStat(t);
       for (const char* n : {"d/f", "d/sub", "d/l", "d/p", "d/exec", "d/noexec",
                             "d/dir", "d/dir2"}) {
         run.Stat(n);
       }
     },
     [](Run&) {
       ::mkdir("d", 0755);
       (void)!::chown("d", 0, kForeignGroup);
       ::chmod("d", 02777);
     }},
    {"attr.setgid_directory_of_extra_group", kAll,
     [](Run& run) {
       ::umask(0);
       FD(::open("d/exec", O_CREAT | O_RDWR, 02775));
       CALL(::mkdir("d/dir", 02775));
       CALL(::mknod("d/node", S_IFREG | 02775, 0));
       for (const char* n : {"d/exec", "d/dir", "d/node"}) run.Stat(n);
     },
     [](Run&) {
       ::mkdir("d", 0755);
       (void)!::chown("d", 0, kExtraGroup);
       ::chmod("d", 02777);
     }},
    {"attr.setgid_moves_between_directories", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::rename("f", "d/f"));
       run.Stat("d/f");
       CALL(::mkdir("e", 0755));
       CALL(::rename("e", "d/e"));
       run.Stat("d/e");
     },
     [](Run&) {
       ::mkdir("d", 0755);
       (void)!::chown("d", 0, kForeignGroup);
       ::chmod("d", 02777);
     }},
};

}  // namespace

std::span<const Scenario> AttributeScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
