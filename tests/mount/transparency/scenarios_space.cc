// Where bytes are: truncation, preallocation, holes.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// fallocate in one mode on a file of 40000 bytes with data all over.
template <int mode>
void Fallocate(Run& run) {
  WriteFile("f", Pattern(40000));
  const int fd = FD(::open("f", O_RDWR));
  CALL(::fallocate(fd, mode, 0, 4096));
  CALL(::fallocate(fd, mode, 8192, 8192));
  CALL(::fallocate(fd, mode, 10000, 100));
  CALL(::fallocate(fd, mode, 36864, 65536));
  CALL(::fallocate(fd, mode, 100000, 5000));
  CALL(::fallocate(fd, mode, -1, 10));
  CALL(::fallocate(fd, mode, 0, 0));
  CALL(::fallocate(fd, mode, 0, -5));
  run.Content("f");
  run.FStat(fd);
}

// The map of a file as lseek tells it; logged as block runs.
void LogHoles(Run& run, int fd) {
  const off_t end = ::lseek(fd, 0, SEEK_END);
  std::string map;
  for (off_t at = 0; at < end;) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0) {
      map += errno == ENXIO ? " hole to the end" : " error";
      break;
    }
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    map += " data " + std::to_string(data) + "-" + std::to_string(hole);
    if (hole <= at) break;
    at = hole;
  }
  run.Note("map of %ld:%s", static_cast<long>(end), map.c_str());
}

constexpr Scenario kScenarios[] = {
    {"space.fallocate", kAll, Fallocate<0>},
    {"space.fallocate_keep_size", kAll, Fallocate<FALLOC_FL_KEEP_SIZE>},
    {"space.fallocate_punch_hole", kAll,
     Fallocate<FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE>},
    {"space.fallocate_punch_without_keep", kAll,
     Fallocate<FALLOC_FL_PUNCH_HOLE>},
    {"space.fallocate_zero_range", kAll, Fallocate<FALLOC_FL_ZERO_RANGE>},
    {"space.fallocate_zero_keep", kAll,
     Fallocate<FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE>},
    {"space.fallocate_collapse", kAll, Fallocate<FALLOC_FL_COLLAPSE_RANGE>},
    {"space.fallocate_insert", kAll, Fallocate<FALLOC_FL_INSERT_RANGE>},
    {"space.fallocate_unshare", kAll, Fallocate<FALLOC_FL_UNSHARE_RANGE>},
    {"space.fallocate_unknown_mode", kAll, Fallocate<0x1000>},

    {"space.fallocate_on_others", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int r = FD(::open("f", O_RDONLY));
       CALL(::fallocate(r, 0, 0, 10));
       const int d = FD(::open(".", O_RDONLY));
       CALL(::fallocate(d, 0, 0, 10));
       int pipe[2];
       CALL(::pipe(pipe));
       CALL(::fallocate(pipe[1], 0, 0, 10));
       const int p = FD(::open("f", O_PATH));
       CALL(::fallocate(p, 0, 0, 10));
     }},
    {"space.posix_fallocate", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::posix_fallocate(fd, 0, 100000));
       run.FStat(fd);
       CALL(::posix_fallocate(fd, 50000, 10));
       run.FStat(fd);
     }},
    {"space.truncate_down_and_up_zeroes", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       CALL(::truncate("f", 4097));
       run.Content("f");
       CALL(::truncate("f", 12000));
       run.Content("f");
       CALL(::truncate("f", 0));
       CALL(::truncate("f", 5));
       run.Content("f");
     }},
    {"space.ftruncate", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "0123456789", 10));
       CALL(::ftruncate(fd, 5));
       CALL(::lseek(fd, 0, SEEK_CUR));
       CALL(::write(fd, "X", 1));
       run.Content("f");
       const int r = FD(::open("f", O_RDONLY));
       CALL(::ftruncate(r, 0));
       CALL(::ftruncate(fd, 1 << 20));
       run.FStat(r);
     }},
    {"space.truncate_by_another_descriptor", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(a, "0123456789", 10));
       const int b = FD(::open("f", O_WRONLY | O_TRUNC));
       run.FStat(a);
       char c = 0;
       CALL(::pread(a, &c, 1, 0));
       CALL(::write(b, "new", 3));
       CALL(::pread(a, &c, 1, 0));
       CALL(::write(a, "tail", 4));
       run.Content("f");
     }},
    {"space.truncate_errors", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::mkfifo("p", 0644));
       CALL(::symlink("f", "l"));
       CALL(::truncate("d", 0));
       CALL(::truncate("p", 0));
       CALL(::truncate("l", 0));
       WriteFile("f", "0123");
       CALL(::truncate("l", 2));
       run.Content("f");
       CALL(::truncate("missing", 0));
       CALL(::truncate("f/x", 0));
     }},
    {"space.truncate_without_write_permission", kUsersOnly,
     [](Run& run) {
       WriteFile("mine", "0123", 0444);
       CALL(::truncate("mine", 1));
       CALL(::truncate("theirs", 1));
       FD(::open("theirs", O_RDONLY | O_TRUNC));
       run.Content("theirs");
       CALL(::truncate("open", 1));
       run.Content("open");
     },
     [](Run&) {
       WriteFile("theirs", "0123", 0644);
       WriteFile("open", "0123", 0644);
       ::chmod("open", 0666);
     }},
    {"space.truncate_same_size_keeps_content", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(5000));
       CALL(::truncate("f", 5000));
       run.Content("f");
     }},
    {"space.holes_by_seek", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::pwrite(fd, "a", 1, 0));
       CALL(::pwrite(fd, "b", 1, 1 << 20));
       CALL(::pwrite(fd, "c", 1, 3 << 20));
       CALL(::ftruncate(fd, 8 << 20));
       CALL(::fsync(fd));
       LogHoles(run, fd);
     }},
    {"space.holes_by_punching", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(256 * 1024));
       const int fd = FD(::open("f", O_RDWR));
       CALL(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536,
                        65536));
       CALL(::fsync(fd));
       LogHoles(run, fd);
       run.Content("f");
     }},
    {"space.holes_errors", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDONLY));
       CALL(::lseek(fd, 0, SEEK_DATA));
       CALL(::lseek(fd, 0, SEEK_HOLE));
       CALL(::lseek(fd, 5, SEEK_DATA));
       CALL(::lseek(fd, 5, SEEK_HOLE));
       CALL(::lseek(fd, 10, SEEK_DATA));
       CALL(::lseek(fd, 10, SEEK_HOLE));
       CALL(::lseek(fd, 11, SEEK_HOLE));
       CALL(::lseek(fd, -1, SEEK_DATA));
       const int empty = FD(::open("e", O_CREAT | O_RDWR, 0644));
       CALL(::lseek(empty, 0, SEEK_DATA));
       CALL(::lseek(empty, 0, SEEK_HOLE));
       CALL(::lseek(fd, 0, SEEK_CUR));
     }},
    {"space.all_hole", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::ftruncate(fd, 1 << 20));
       LogHoles(run, fd);
       struct stat st;
       CALL(::fstat(fd, &st));
       run.Note("blocks %ld", st.st_blocks);
       char b[100];
       CALL(::pread(fd, b, 100, 5000));
       run.Bytes("zeros", {b, 100});
     }},
    {"space.blocks_after_fsync", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const std::string data = Pattern(1 << 20);
       CALL(::write(fd, data.data(), data.size()));
       CALL(::fsync(fd));
       struct stat st;
       CALL(::fstat(fd, &st));
       run.Note("blocks %ld blksize %ld", st.st_blocks,
                static_cast<long>(st.st_blksize));
       CALL(::ftruncate(fd, 4096));
       CALL(::fsync(fd));
       CALL(::fstat(fd, &st));
       run.Note("blocks %ld", st.st_blocks);
     }},
    {"space.fallocate_of_a_setid_file", kUsersOnly,
     [](Run& run) {
       WriteFile("f", "content");
       const int fd = FD(::open("f", O_RDWR));
       for (const int mode : {0, FALLOC_FL_KEEP_SIZE,
                              FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE}) {
         CALL(::chmod("f", 06777));
         CALL(::fallocate(fd, mode, 0, 100));
         run.Stat("f");
       }
     }},
    // Modes that the file system below may not have.
    {"space.refused_fallocate_of_a_setid_file", kUsersOnly,
     [](Run& run) {
       WriteFile("f", "content");
       const int fd = FD(::open("f", O_RDWR));
       for (const int mode :
            {FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
             FALLOC_FL_PUNCH_HOLE, 0x1000}) {
         CALL(::chmod("f", 06777));
         CALL(::fallocate(fd, mode, 0, 4096));
         run.Stat("f");
       }
     }},
    {"space.preallocated_blocks_show", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
       struct stat st;
       CALL(::fstat(fd, &st));
       run.Note("size %ld blocks %ld", static_cast<long>(st.st_size),
                st.st_blocks);
     }},
    {"space.write_into_preallocated", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::fallocate(fd, 0, 0, 100000));
       CALL(::pwrite(fd, "data", 4, 50000));
       run.Content("f");
       CALL(::ftruncate(fd, 50002));
       run.Content("f");
     }},
};

}  // namespace

std::span<const Scenario> SpaceScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
