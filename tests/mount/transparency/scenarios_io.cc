// Reading and writing: every call, every edge.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

// Reads with `size` at a time, from the front, and logs the sums.
void ReadInSteps(Run& run, const char* path, size_t size) {
  const int fd = ::open(path, O_RDONLY);
  std::string all;
  std::vector<char> buffer(size);
  ssize_t n;
  int reads = 0;
  while ((n = ::read(fd, buffer.data(), size)) > 0) {
    all.append(buffer.data(), static_cast<size_t>(n));
    ++reads;
  }
  run.Ret("last read", n);
  run.Note("%d reads of %zu", reads, size);
  run.Bytes("all", all);
  ::close(fd);
}

template <size_t size>
void WriteAndReadInSteps(Run& run) {
  const std::string data = Pattern(3 * size + 17);
  const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
  for (size_t at = 0; at < data.size(); at += size) {
    const size_t n = std::min(size, data.size() - at);
    run.Ret("write", ::write(fd, data.data() + at, n));
  }
  ::close(fd);
  run.Stat("f");
  ReadInSteps(run, "f", size);
  ReadInSteps(run, "f", size + 1);
}

template <int flags>
void DirectIo(Run& run) {
  const int fd = FD(::open("f", O_CREAT | O_RDWR | O_DIRECT | flags, 0644));
  if (fd < 0) return;
  void* memory = nullptr;
  if (::posix_memalign(&memory, 4096, 65536) != 0) return;
  char* buffer = static_cast<char*>(memory);
  const std::string data = Pattern(65536);
  data.copy(buffer, data.size());
  CALL(::pwrite(fd, buffer, 65536, 0));
  CALL(::pwrite(fd, buffer, 4096, 131072));
  CALL(::pread(fd, buffer, 65536, 0));
  run.Bytes("read", {buffer, 65536});
  CALL(::pread(fd, buffer, 65536, 65536));
  CALL(::pread(fd, buffer, 4096, 1 << 20));
  CALL(::ftruncate(fd, 10000));
  CALL(::pread(fd, buffer, 65536, 0));
  run.FStat(fd);
  std::free(memory);
}

constexpr Scenario kScenarios[] = {
    {"io.steps_of_1", kAll, WriteAndReadInSteps<1>},
    {"io.steps_of_511", kAll, WriteAndReadInSteps<511>},
    {"io.steps_of_4096", kAll, WriteAndReadInSteps<4096>},
    {"io.steps_of_5000", kAll, WriteAndReadInSteps<5000>},
    {"io.steps_of_128k", kAll, WriteAndReadInSteps<131072>},
    {"io.steps_of_1m_and_1", kAll, WriteAndReadInSteps<1048577>},
    {"io.steps_of_5m", kAll, WriteAndReadInSteps<5 << 20>},
    {"io.direct_aligned", kAll, DirectIo<0>},
    {"io.direct_sync", kAll, DirectIo<O_SYNC>},
    {"io.direct_append", kAll, DirectIo<O_APPEND>},

    {"io.zero_sizes", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       char c = 0;
       CALL(::write(fd, "", 0));
       CALL(::pwrite(fd, "", 0, 100));
       CALL(::read(fd, &c, 0));
       CALL(::pread(fd, &c, 0, 100));
       CALL(::pread(fd, &c, 1, 100));
       run.FStat(fd);
       const int w = ::open("f", O_WRONLY);
       CALL(::read(w, &c, 0));
     }},
    {"io.negative_and_huge_offsets", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       char c = 0;
       CALL(::pwrite(fd, "x", 1, -1));
       CALL(::pread(fd, &c, 1, -1));
       CALL(::pread(fd, &c, 1, INT64_MAX));
       CALL(::pread(fd, &c, 1, INT64_MAX - 1));
       CALL(::lseek(fd, -1, SEEK_SET));
       CALL(::lseek(fd, 0, 77));
       run.FStat(fd);
     }},
    {"io.seek_behind_the_largest_file", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::lseek(fd, INT64_MAX, SEEK_CUR));
     }},
    {"io.lseek", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDWR));
       CALL(::lseek(fd, 0, SEEK_END));
       CALL(::lseek(fd, -3, SEEK_CUR));
       CALL(::lseek(fd, 100, SEEK_END));
       CALL(::write(fd, "x", 1));
       CALL(::lseek(fd, 0, SEEK_END));
       CALL(::lseek(fd, -200, SEEK_END));
       run.Content("f");
     }},
    {"io.read_past_end", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDONLY));
       char b[100];
       CALL(::pread(fd, b, 100, 5));
       CALL(::pread(fd, b, 100, 10));
       CALL(::pread(fd, b, 100, 11));
       CALL(::pread(fd, b, 100, 1 << 30));
       CALL(::read(fd, b, 100));
       CALL(::read(fd, b, 100));
     }},
    {"io.write_extends_with_zeros", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::pwrite(fd, "end", 3, 10000));
       run.Content("f");
       CALL(::pwrite(fd, "middle", 6, 5000));
       run.Content("f");
     }},
    {"io.overwrite_across_pages", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(20000));
       const int fd = FD(::open("f", O_RDWR));
       const std::string patch(9000, 'Z');
       CALL(::pwrite(fd, patch.data(), patch.size(), 4090));
       run.Content("f");
       CALL(::pwrite(fd, "!", 1, 8191));
       CALL(::pwrite(fd, "??", 2, 8191));
       run.Content("f");
       run.Stat("f");
     }},
    {"io.two_descriptors_see_each_other", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       char x[16] = {};
       for (int i = 0; i < 10; ++i) {
         const std::string text = "round " + std::to_string(i);
         CALL(::pwrite(a, text.data(), text.size(), i * 3));
         CALL(::pread(b, x, sizeof x, i * 3));
         run.Bytes("b sees", {x, 7});
         CALL(::pwrite(b, "BBB", 3, 1000 + i));
         CALL(::pread(a, x, 3, 1000 + i));
         run.Bytes("a sees", {x, 3});
         run.FStat(a);
       }
     }},
    {"io.two_processes_see_each_other", kAll,
     [](Run& run) {
       WriteFile("f", "start");
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int fd = PEER_FD(::open("f", O_RDWR));
         char b[32] = {};
         turn.Wait();
         PEER_CALL(::pread(fd, b, sizeof b, 0));
         side.Bytes("sees", b);
         PEER_CALL(::pwrite(fd, "PEER", 4, 6));
         turn.Signal();
         turn.Wait();
         side.FStat(fd);
         turn.Signal();
       });
       const int fd = FD(::open("f", O_RDWR));
       CALL(::pwrite(fd, "from parent", 11, 0));
       peer.Signal();
       peer.Wait();
       run.Content("f");
       CALL(::ftruncate(fd, 4));
       peer.Signal();
       peer.Wait();
       peer.Join();
     }},
    {"io.readv_writev", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       char a[] = "first", b[] = "", c[] = "third";
       const iovec out[] = {{a, 5}, {b, 0}, {c, 5}};
       CALL(::writev(fd, out, 3));
       CALL(::pwritev(fd, out, 3, 100));
       char x[8] = {}, y[64] = {};
       const iovec in[] = {{x, 7}, {y, 63}};
       CALL(::preadv(fd, in, 2, 0));
       run.Bytes("x", {x, 7});
       run.Bytes("y", {y, 63});
       CALL(::writev(fd, out, 0));
       // Volatile: the compiler knows better than to let this pass.
       volatile int count = -1;
       CALL(::writev(fd, out, count));
       count = 5000;
       CALL(::writev(fd, out, count));
     }},
    {"io.vectors_of_1024", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       std::string data = Pattern(1024 * 300);
       std::vector<iovec> v;
       for (size_t i = 0; i < 1024; ++i) v.push_back({&data[i * 300], 300});
       CALL(::writev(fd, v.data(), 1024));
       run.Content("f");
       std::string back(data.size(), '\0');
       for (size_t i = 0; i < 1024; ++i) v[i].iov_base = &back[i * 300];
       CALL(::preadv(fd, v.data(), 1024, 0));
       run.Note("same %d", back == data);
     }},
    {"io.pwritev2_flags", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDWR));
       char a[] = "AAA";
       const iovec v = {a, 3};
       CALL(::pwritev2(fd, &v, 1, 2, 0));
       CALL(::pwritev2(fd, &v, 1, 0, RWF_APPEND));
       CALL(::lseek(fd, 0, SEEK_CUR));
       CALL(::pwritev2(fd, &v, 1, -1, RWF_APPEND));
       CALL(::lseek(fd, 0, SEEK_CUR));
       CALL(::pwritev2(fd, &v, 1, 5, RWF_DSYNC));
       CALL(::pwritev2(fd, &v, 1, 6, RWF_SYNC));
       CALL(::pwritev2(fd, &v, 1, 7, RWF_HIPRI));
       CALL(::pwritev2(fd, &v, 1, 7, 0x10000000));
       run.Content("f");
     }},
    {"io.pwritev2_nowait", kAll,
     [](Run& run) {
       // Whether it would have had to wait is nobody's promise; data is.
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDWR));
       char a[] = "AAA";
       const iovec v = {a, 3};
       const ssize_t n = ::pwritev2(fd, &v, 1, 2, RWF_NOWAIT);
       run.Note("fine %d", n == 3 || errno == EAGAIN || errno == EOPNOTSUPP);
       CALL(::pwritev2(fd, &v, 1, 2, 0));
       run.Content("f");
     }},
    {"io.pwritev2_noappend", kAll,
     [](Run& run) {
       WriteFile("f", "0123456789");
       const int fd = FD(::open("f", O_RDWR | O_APPEND));
       char a[] = "AAA";
       const iovec v = {a, 3};
       CALL(::pwritev2(fd, &v, 1, 2, 0x20 /* RWF_NOAPPEND */));
       run.Content("f");
     }},
    {"io.bad_buffers", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDWR));
       char* volatile bad = reinterpret_cast<char*>(1);
       CALL(::pread(fd, bad, 100, 0));
       CALL(::pwrite(fd, bad, 100, 0));
       CALL(::pread(fd, bad, 100, 20000));
       run.Content("f");
     }},
    {"io.copy_file_range", kAll,
     [](Run& run) {
       WriteFile("a", Pattern(100000));
       const int a = FD(::open("a", O_RDONLY));
       const int b = FD(::open("b", O_CREAT | O_RDWR, 0644));
       off_t from = 10, to = 5;
       CALL(::copy_file_range(a, &from, b, &to, 50000, 0));
       run.Note("offsets %ld %ld", static_cast<long>(from),
                static_cast<long>(to));
       CALL(::copy_file_range(a, nullptr, b, nullptr, 100, 0));
       CALL(::lseek(a, 0, SEEK_CUR));
       from = 99990;
       CALL(::copy_file_range(a, &from, b, &to, 50000, 0));
       CALL(::copy_file_range(a, &from, b, &to, 50000, 0));
       CALL(::copy_file_range(a, &from, b, &to, 10, 99));
       CALL(::copy_file_range(b, nullptr, a, nullptr, 10, 0));
       run.Content("b");
       run.Stat("b");
     }},
    {"io.copy_file_range_within_one_file", kAll,
     [](Run& run) {
       WriteFile("a", Pattern(10000));
       const int a = FD(::open("a", O_RDWR));
       off_t from = 0, to = 20000;
       CALL(::copy_file_range(a, &from, a, &to, 5000, 0));
       from = 0;
       to = 100;
       CALL(::copy_file_range(a, &from, a, &to, 5000, 0));
       run.Content("a");
       const int append = ::open("a", O_WRONLY | O_APPEND);
       from = 0;
       CALL(::copy_file_range(a, &from, append, nullptr, 10, 0));
       const int dir = ::open(".", O_RDONLY);
       CALL(::copy_file_range(dir, nullptr, a, nullptr, 10, 0));
     }},
    {"io.sendfile", kAll,
     [](Run& run) {
       WriteFile("a", Pattern(200000));
       const int a = FD(::open("a", O_RDONLY));
       const int b = FD(::open("b", O_CREAT | O_RDWR, 0644));
       off_t at = 1000;
       long sum = 0;
       for (ssize_t n; (n = ::sendfile(b, a, &at, 1 << 20)) > 0;) sum += n;
       run.Note("sent %ld, at %ld", sum, static_cast<long>(at));
       CALL(::sendfile(b, a, nullptr, 10));
       CALL(::lseek(a, 0, SEEK_CUR));
       run.Content("b");
     }},
    {"io.splice", kAll,
     [](Run& run) {
       WriteFile("a", Pattern(30000));
       int pipe[2];
       CALL(::pipe(pipe));
       const int a = FD(::open("a", O_RDONLY));
       const int b = FD(::open("b", O_CREAT | O_RDWR, 0644));
       long in = 0, out = 0;
       for (;;) {
         const ssize_t n = ::splice(a, nullptr, pipe[1], nullptr, 8192, 0);
         if (n <= 0) break;
         in += n;
         for (ssize_t left = n; left > 0;) {
           const ssize_t m = ::splice(pipe[0], nullptr, b, nullptr,
                                      static_cast<size_t>(left), 0);
           if (m <= 0) break;
           left -= m;
           out += m;
         }
       }
       run.Note("in %ld out %ld", in, out);
       run.Content("b");
       loff_t at = 5;
       CALL(::splice(a, &at, pipe[1], nullptr, 10, 0));
       char x[16] = {};
       CALL(::read(pipe[0], x, sizeof x));
       run.Bytes("piped", x);
     }},
    {"io.splice_to_append_fails", kAll,
     [](Run& run) {
       int pipe[2];
       CALL(::pipe(pipe));
       CALL(::write(pipe[1], "data", 4));
       const int b = FD(::open("b", O_CREAT | O_WRONLY | O_APPEND, 0644));
       CALL(::splice(pipe[0], nullptr, b, nullptr, 4, 0));
       run.Content("b");
     }},
    {"io.vmsplice_and_tee", kAll,
     [](Run& run) {
       int one[2], two[2];
       CALL(::pipe(one));
       CALL(::pipe(two));
       char text[] = "through two pipes";
       const iovec v = {text, 17};
       CALL(::vmsplice(one[1], &v, 1, 0));
       CALL(::tee(one[0], two[1], 17, 0));
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::splice(one[0], nullptr, fd, nullptr, 17, 0));
       CALL(::splice(two[0], nullptr, fd, nullptr, 17, 0));
       run.Content("f");
     }},
    {"io.fsync_family", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "x", 1));
       CALL(::fsync(fd));
       CALL(::fdatasync(fd));
       CALL(::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
       CALL(::sync_file_range(fd, 0, 0,
                              SYNC_FILE_RANGE_WAIT_BEFORE |
                                  SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER));
       CALL(::sync_file_range(fd, -1, 0, SYNC_FILE_RANGE_WRITE));
       CALL(::syncfs(fd));
       const int r = FD(::open("f", O_RDONLY));
       CALL(::fsync(r));
       const int d = FD(::open(".", O_RDONLY));
       CALL(::fsync(d));
       CALL(::fdatasync(d));
       const int p = FD(::open("f", O_PATH));
       CALL(::fsync(p));
     }},
    {"io.fadvise_readahead", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(100000));
       const int fd = FD(::open("f", O_RDONLY));
       for (int advice = 0; advice <= 6; ++advice) {
         run.Ret("fadvise", ::posix_fadvise(fd, 0, 0, advice));
       }
       CALL(::readahead(fd, 0, 100000));
       CALL(::readahead(-1, 0, 10));
       run.Content("f");
     }},
    {"io.poll_regular", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       pollfd p = {fd, POLLIN | POLLOUT | POLLPRI, 0};
       CALL(::poll(&p, 1, 0));
       run.Note("revents %d", p.revents);
     }},
    {"io.read_a_directory", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       const int fd = FD(::open("d", O_RDONLY));
       char b[10];
       CALL(::read(fd, b, 10));
       CALL(::pread(fd, b, 10, 0));
       CALL(::write(fd, b, 10));
       CALL(::ftruncate(fd, 0));
     }},
    {"io.rlimit_fsize", kAll,
     [](Run& run) {
       ::signal(SIGXFSZ, SIG_IGN);
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const rlimit limit = {10000, 10000};
       ::setrlimit(RLIMIT_FSIZE, &limit);
       const std::string data = Pattern(8000);
       CALL(::write(fd, data.data(), data.size()));
       CALL(::write(fd, data.data(), data.size()));
       CALL(::write(fd, data.data(), data.size()));
       CALL(::pwrite(fd, "x", 1, 9999));
       CALL(::pwrite(fd, "x", 1, 10000));
       CALL(::ftruncate(fd, 10001));
       CALL(::ftruncate(fd, 10000));
       CALL(::fallocate(fd, 0, 0, 20000));
       CALL(::truncate("f", 20000));
       run.Stat("f");
     }},
    {"io.rlimit_fsize_signal", kAll,
     [](Run& run) {
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const rlimit limit = {100, 100};
         // The log is a file too: nothing may be logged after this.
         const int fd = PEER_FD(::open("f", O_CREAT | O_RDWR, 0644));
         ::setrlimit(RLIMIT_FSIZE, &limit);
         const std::string data = Pattern(200);
         ssize_t n = ::write(fd, data.data(), data.size());
         n = ::write(fd, data.data(), data.size());
         ::_exit(n < 0 ? 1 : 2);
       });
       peer.Join();
       run.Stat("f");
     }},
    {"io.large_offsets", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       char c = 0;
       for (const off_t at : {off_t{1} << 31, off_t{1} << 32, off_t{1} << 40}) {
         CALL(::pwrite(fd, "far", 3, at));
         CALL(::pread(fd, &c, 1, at + 2));
         run.FStat(fd);
       }
       CALL(::ftruncate(fd, 0));
     }},
    {"io.efbig", kAll,
     [](Run& run) {
       ::signal(SIGXFSZ, SIG_IGN);
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::pwrite(fd, "x", 1, INT64_MAX));
       CALL(::ftruncate(fd, -1));
       CALL(::truncate("f", -1));
       run.FStat(fd);
     }},
    {"io.unlinked_open_file", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "before", 6));
       CALL(::unlink("f"));
       run.FStat(fd);
       CALL(::write(fd, " after", 6));
       char b[32] = {};
       CALL(::pread(fd, b, sizeof b, 0));
       run.Bytes("read", b);
       CALL(::ftruncate(fd, 3));
       CALL(::fchmod(fd, 0600));
       CALL(::fsync(fd));
       run.FStat(fd);
       const timespec times[2] = {{100, 5}, {200, 6}};
       CALL(::futimens(fd, times));
       struct stat st;
       CALL(::fstat(fd, &st));
       run.Note("mtime %ld.%ld", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
       CALL(::fchown(fd, static_cast<uid_t>(-1), ::getegid()));
       CALL(::fallocate(fd, 0, 0, 8192));
       run.FStat(fd);
       run.List(".");
     }},
    {"io.unlinked_file_relinked_fails", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::unlink("f"));
       const std::string proc = "/proc/self/fd/" + std::to_string(fd);
       run.Ret("linkat", ::linkat(AT_FDCWD, proc.c_str(), AT_FDCWD, "again",
                                  AT_SYMLINK_FOLLOW));
       run.List(".");
     }},
    {"io.unlinked_and_replaced", kAll,
     [](Run& run) {
       const int old_fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(old_fd, "old", 3));
       CALL(::unlink("f"));
       const int new_fd = FD(::open("f", O_CREAT | O_EXCL | O_RDWR, 0600));
       CALL(::write(new_fd, "newer", 5));
       CALL(::pwrite(old_fd, "OLD", 3, 0));
       run.FStat(old_fd);
       run.FStat(new_fd);
       run.Content("f");
       char b[8] = {};
       CALL(::pread(old_fd, b, 8, 0));
       run.Bytes("old", b);
     }},
    {"io.open_while_removed_by_other_process", kAll,
     [](Run& run) {
       WriteFile("f", "content");
       const int fd = FD(::open("f", O_RDWR));
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         PEER_CALL(::unlink("f"));
         WriteFile("f", "another");
       });
       peer.Join();
       char b[16] = {};
       CALL(::read(fd, b, sizeof b));
       run.Bytes("still", b);
       run.FStat(fd);
       run.Content("f");
     }},
    {"io.inherited_descriptor", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "parent ", 7));
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         PEER_CALL(::write(fd, "child ", 6));
         PEER_CALL(::lseek(fd, 0, SEEK_CUR));
         PEER_CALL(::close(fd));
       });
       peer.Join();
       CALL(::write(fd, "parent", 6));
       CALL(::close(fd));
       CALL(::close(fd));
       run.Content("f");
     }},
    {"io.concurrent_appends_lose_nothing", kAll,
     [](Run& run) {
       const auto append = [](char c) {
         const int fd = ::open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
         const std::string line(9, c);
         for (int i = 0; i < 200; ++i) {
           if (::write(fd, (line + "\n").data(), 10) != 10) ::_exit(9);
         }
         ::close(fd);
       };
       {
         Run::Peer a(run, [&](Run&, Run::Peer&) { append('a'); });
         Run::Peer b(run, [&](Run&, Run::Peer&) { append('b'); });
         append('c');
       }
       run.Stat("log");
       const int fd = ::open("log", O_RDONLY);
       int count[3] = {}, torn = 0;
       char line[10];
       while (::read(fd, line, 10) == 10) {
         const std::string s(line, 9);
         if (s == std::string(9, s[0]) && line[9] == '\n' && s[0] >= 'a' &&
             s[0] <= 'c') {
           ++count[s[0] - 'a'];
         } else {
           ++torn;
         }
       }
       run.Note("%d %d %d torn %d", count[0], count[1], count[2], torn);
       CALL(::unlink("log"));  // the order of lines is anybody's
     }},
    {"io.read_only_after_chmod", kUsersOnly,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::fchmod(fd, 0));
       CALL(::write(fd, "still allowed", 13));
       char b[5] = {};
       CALL(::pread(fd, b, 4, 0));
       run.Bytes("read", b);
       FD(::open("f", O_RDONLY));
       FD(::open("f", O_WRONLY));
       CALL(::chmod("f", 0644));
     }},
};

}  // namespace

std::span<const Scenario> IoScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
