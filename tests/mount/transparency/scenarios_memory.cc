// mmap(2), and programs that are run.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

char* Map(int fd, size_t size, int protection, int flags, off_t offset = 0) {
  void* p = ::mmap(nullptr, size, protection, flags, fd, offset);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

constexpr int kRw = PROT_READ | PROT_WRITE;

// Exit status of a program; 200 + errno if it could not be run.
int Execute(const char* path, const char* argument = nullptr) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execl(path, path, argument, nullptr);
    ::_exit(200 + errno % 50);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A copy of a small program of the system.
void CopyProgram(const char* from, const char* to, mode_t mode) {
  const int in = ::open(from, O_RDONLY);
  const int out = ::open(to, O_CREAT | O_WRONLY | O_TRUNC, 0755);
  char buffer[65536];
  ssize_t n;
  while ((n = ::read(in, buffer, sizeof buffer)) > 0) {
    (void)!::write(out, buffer, static_cast<size_t>(n));
  }
  ::close(in);
  ::close(out);
  ::chmod(to, mode);
}

// In a peer: runs `prog` until it is killed.
[[noreturn]] void BecomeProgram() {
  // A close at the mount has its effect a moment later.
  for (int i = 0; i < 1000; ++i) {
    ::execl("./prog", "./prog", "1000", nullptr);
    if (errno != ETXTBSY) break;
    SleepMs(10);
  }
  ::_exit(99);
}

// Reads, or stores to, the first page of a map all the time, until it is gone.
class Toucher {
 public:
  Toucher(volatile uint64_t* map, bool stores)
      : thread_([this, map, stores] {
          uint64_t count = 0;
          while (!stop_) {
            if (stores) {
              map[100] = ++count;
              if (map[100] < count) lost_ = true;
            } else {
              count += map[0];
            }
            ::sched_yield();
          }
          sink_ = count;
        }) {}
  ~Toucher() {
    stop_ = true;
    thread_.join();
  }
  bool lost() const { return lost_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<bool> lost_ = false;
  std::atomic<uint64_t> sink_ = 0;
  std::thread thread_;
};

// write(2) to a page that another thread uses through a map: each is to be seen
// at once, by memory and by read(2).
void WriteBesideMap(Run& run, bool stores) {
  WriteFile("f", Pattern(8192));
  const int fd = FD(::open("f", O_RDWR));
  void* const map =
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  run.Note("mapped %d", map != MAP_FAILED);
  if (map == MAP_FAILED) return;
  auto* const numbers = static_cast<volatile uint64_t*>(map);
  int failed = 0;
  int unseen = 0;
  int unread = 0;
  bool lost;
  {
    const Toucher toucher(numbers, stores);
    for (uint64_t i = 1; i <= 1000; ++i) {
      if (::pwrite(fd, &i, sizeof i, 0) != sizeof i) ++failed;
      if (numbers[0] != i) ++unseen;
      uint64_t got = 0;
      if (::pread(fd, &got, sizeof got, 0) != sizeof got || got != i) ++unread;
    }
    lost = toucher.lost();
  }
  numbers[100] = 0;  // however often
  CALL(::msync(map, 8192, MS_SYNC));
  run.Note("writes: %d failed, %d not seen, %d not read; a store was lost: %d",
           failed, unseen, unread, lost);
}

sigjmp_buf fault;
void OnFault(int signal) { ::siglongjmp(fault, signal); }

// The signal that touching this address gives, or 0.
int Touch(volatile char* address, bool write) {
  struct sigaction action = {}, old_bus, old_segv;
  action.sa_handler = OnFault;
  ::sigaction(SIGBUS, &action, &old_bus);
  ::sigaction(SIGSEGV, &action, &old_segv);
  const int signal = sigsetjmp(fault, 1);
  if (signal == 0) {
    const char c = *address;
    if (write) *address = static_cast<char>(c + 1);
  }
  ::sigaction(SIGBUS, &old_bus, nullptr);
  ::sigaction(SIGSEGV, &old_segv, nullptr);
  return signal;
}

constexpr Scenario kScenarios[] = {
    {"mmap.private_read", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDONLY));
       const char* p = Map(fd, 10000, PROT_READ, MAP_PRIVATE);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       run.Bytes("bytes", {p, 10000});
       run.Bytes("tail is zero", {p + 10000, 10});
     }},
    {"mmap.write_beside_a_reader", kAll,
     [](Run& run) { WriteBesideMap(run, /*stores=*/false); }},
    {"mmap.write_beside_stores_to_the_page", kAll,
     [](Run& run) { WriteBesideMap(run, /*stores=*/true); }},
    {"mmap.private_write_stays_private", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDONLY));
       char* p = Map(fd, 10000, kRw, MAP_PRIVATE);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       std::memcpy(p, "CHANGED", 7);
       run.Bytes("mapped", {p, 10});
       run.Content("f");
     }},
    {"mmap.shared_write_reaches_the_file", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 10000, kRw, MAP_SHARED);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       std::memcpy(p + 4090, "ACROSS PAGES", 12);
       CALL(::msync(p, 10000, MS_SYNC));
       char b[16] = {};
       CALL(::pread(fd, b, 12, 4090));
       run.Bytes("read", b);
       CALL(::munmap(p, 10000));
       run.Content("f");
     }},
    {"mmap.shared_write_is_read_without_msync", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 10000, kRw, MAP_SHARED);
       if (p == nullptr) return;
       std::memcpy(p, "by memory", 9);
       char b[16] = {};
       CALL(::pread(fd, b, 9, 0));
       run.Bytes("read", b);
       const int other = FD(::open("f", O_RDONLY));
       CALL(::pread(other, b, 9, 0));
       run.Bytes("other", b);
     }},
    {"mmap.write_shows_in_the_mapping", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(10000));
       const int fd = FD(::open("f", O_RDWR));
       const char* p = Map(fd, 10000, PROT_READ, MAP_SHARED);
       if (p == nullptr) return;
       run.Bytes("before", {p + 5000, 8});
       CALL(::pwrite(fd, "by write", 8, 5000));
       run.Bytes("after", {p + 5000, 8});
       const int other = FD(::open("f", O_WRONLY));
       CALL(::pwrite(other, "BY OTHER", 8, 5000));
       run.Bytes("other", {p + 5000, 8});
     }},
    {"mmap.two_mappings_share", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(8192));
       const int a = FD(::open("f", O_RDWR));
       const int b = FD(::open("f", O_RDWR));
       char* p = Map(a, 8192, kRw, MAP_SHARED);
       const char* q = Map(b, 8192, PROT_READ, MAP_SHARED);
       if (p == nullptr || q == nullptr) return;
       std::memcpy(p + 100, "shared", 6);
       run.Bytes("q", {q + 100, 6});
     }},
    {"mmap.two_processes_share", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(8192));
       const int a = FD(::open("f", O_RDWR));
       char* p = Map(a, 8192, kRw, MAP_SHARED);
       if (p == nullptr) return;
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         char* q = Map(own, 8192, kRw, MAP_SHARED);
         turn.Wait();
         side.Bytes("q", {q + 10, 6});
         std::memcpy(q + 20, "answer", 6);
         turn.Signal();
       });
       std::memcpy(p + 10, "parent", 6);
       peer.Signal();
       peer.Wait();
       run.Bytes("p", {p + 20, 6});
       peer.Join();
     }},
    {"mmap.survives_close_and_unlink", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(8192));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 8192, kRw, MAP_SHARED);
       if (p == nullptr) return;
       CALL(::link("f", "g"));
       CALL(::close(fd));
       CALL(::unlink("f"));
       std::memcpy(p + 50, "late", 4);
       run.Bytes("p", {p + 48, 8});
       CALL(::msync(p, 8192, MS_SYNC));
       CALL(::munmap(p, 8192));
       run.Content("g");
     }},
    {"mmap.beyond_the_end", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(100));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 8192, kRw, MAP_SHARED);
       if (p == nullptr) return;
       run.Note("in the last page %d", Touch(p + 200, false));
       run.Note("in the next page %d", Touch(p + 4096, false));
       run.Note("write there %d", Touch(p + 5000, true));
       p[150] = 'x';  // past the end: must not reach the file
       CALL(::msync(p, 4096, MS_SYNC));
       run.Stat("f");
       CALL(::ftruncate(fd, 8192));
       run.Note("now %d", Touch(p + 4096, true));
       CALL(::ftruncate(fd, 10));
       run.Note("cut %d", Touch(p + 4096, false));
       CALL(::munmap(p, 8192));
       run.Content("f");
     }},
    {"mmap.extended_then_mapped", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::ftruncate(fd, 1 << 20));
       char* p = Map(fd, 1 << 20, kRw, MAP_SHARED);
       if (p == nullptr) return;
       for (size_t i = 0; i < (1 << 20); i += 8192) p[i] = 'm';
       CALL(::msync(p, 1 << 20, MS_SYNC));
       run.Content("f");
     }},
    {"mmap.permissions", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(4096));
       const int r = FD(::open("f", O_RDONLY));
       const int w = FD(::open("f", O_WRONLY));
       run.Note("r shared w %d", Map(r, 4096, kRw, MAP_SHARED) != nullptr);
       run.Note("errno %d", errno);
       run.Note("w shared r %d",
                Map(w, 4096, PROT_READ, MAP_SHARED) != nullptr);
       run.Note("errno %d", errno);
       char* p = Map(r, 4096, PROT_READ, MAP_SHARED);
       CALL(::mprotect(p, 4096, kRw));
       char* q = Map(r, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE);
       run.Note("exec %d", q != nullptr);
       run.Note("no length %d", Map(r, 0, PROT_READ, MAP_SHARED) != nullptr);
       run.Note("errno %d", errno);
       run.Note("odd offset %d",
                Map(r, 4096, PROT_READ, MAP_SHARED, 100) != nullptr);
       run.Note("errno %d", errno);
       const int d = FD(::open(".", O_RDONLY));
       run.Note("directory %d", Map(d, 4096, PROT_READ, MAP_SHARED) != nullptr);
       run.Note("errno %d", errno);
     }},
    {"mmap.append_only_descriptor", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(4096));
       const int fd = FD(::open("f", O_RDWR | O_APPEND));
       char* p = Map(fd, 4096, kRw, MAP_SHARED);
       if (p == nullptr) return;
       std::memcpy(p, "mapped", 6);
       CALL(::write(fd, "tail", 4));
       CALL(::msync(p, 4096, MS_SYNC));
       run.Content("f");
     }},
    {"mmap.msync_and_advice", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(16384));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 16384, kRw, MAP_SHARED);
       if (p == nullptr) return;
       p[5000] = 'X';
       CALL(::msync(p, 16384, MS_ASYNC));
       CALL(::msync(p, 16384, MS_SYNC | MS_INVALIDATE));
       CALL(::msync(p + 1, 10, MS_SYNC));
       CALL(::madvise(p, 16384, MADV_DONTNEED));
       run.Bytes("again", {p + 4998, 4});
       CALL(::madvise(p, 16384, MADV_WILLNEED));
       CALL(::mlock(p, 4096));
       unsigned char resident[4];
       CALL(::mincore(p, 16384, resident));
     }},
    {"mmap.madvise_remove_punches", kAll,
     [](Run& run) {
       WriteFile("f", Pattern(65536));
       const int fd = FD(::open("f", O_RDWR));
       char* p = Map(fd, 65536, kRw, MAP_SHARED);
       if (p == nullptr) return;
       CALL(::madvise(p + 8192, 16384, MADV_REMOVE));
       run.Bytes("hole", {p + 8192, 20});
       run.Content("f");
     }},
    {"mmap.random_access_by_memory_and_calls", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::ftruncate(fd, 65536));
       char* p = Map(fd, 65536, kRw, MAP_SHARED);
       if (p == nullptr) return;
       std::string model(65536, '\0');
       uint32_t x = 12345;
       int wrong = 0;
       for (int i = 0; i < 300; ++i) {
         x = x * 1664525 + 1013904223;
         const size_t at = (x >> 8) % 65000;
         const std::string piece = Pattern(1 + (x >> 4) % 500, x);
         model.replace(at, piece.size(), piece);
         if ((x >> 3) % 2 == 0) {
           std::memcpy(p + at, piece.data(), piece.size());
         } else if (::pwrite(fd, piece.data(), piece.size(),
                             static_cast<off_t>(at)) < 0) {
           ++wrong;
         }
         std::string back(600, '\0');
         const size_t from = (x >> 6) % 60000;
         if (::pread(fd, back.data(), 600, static_cast<off_t>(from)) != 600 ||
             back != model.substr(from, 600) ||
             std::memcmp(p + from, model.data() + from, 600) != 0) {
           ++wrong;
         }
       }
       run.Note("wrong %d", wrong);
     }},

    {"exec.binary", kAll,
     [](Run& run) {
       CopyProgram("/bin/true", "prog", 0755);
       CALL(Execute("./prog"));
       CopyProgram("/bin/false", "prog2", 0755);
       CALL(Execute("./prog2"));
       CALL(::chmod("prog", 0644));
       CALL(Execute("./prog"));
       CALL(::chmod("prog", 0111));
       CALL(Execute("./prog"));
       CALL(Execute("./missing"));
       CALL(::mkdir("d", 0755));
       CALL(Execute("./d"));
     }},
    {"exec.script", kAll,
     [](Run& run) {
       WriteFile("s", "#!/bin/sh\nexit 7\n", 0755);
       CALL(Execute("./s"));
       WriteFile("bad", "#!/nonexistent/interpreter\n", 0755);
       CALL(Execute("./bad"));
       WriteFile("text", "neither\n", 0755);
       CALL(Execute("./text"));
       WriteFile("empty", "", 0755);
       CALL(Execute("./empty"));
       CALL(::symlink("s", "link"));
       CALL(Execute("./link"));
       WriteFile("args", "#!/bin/sh\nexit $1\n", 0755);
       CALL(Execute("./args", "42"));
     }},
    {"exec.interpreter_inside", kAll,
     [](Run& run) {
       CopyProgram("/bin/sh", "mysh", 0755);
       char cwd[4096];
       if (::getcwd(cwd, sizeof cwd) == nullptr) return;
       WriteFile("s", "#!" + std::string(cwd) + "/mysh\nexit 9\n", 0755);
       CALL(Execute("./s"));
       CALL(::unlink("s"));  // holds the directory's own name
     }},
    {"exec.right_after_write", kAll,
     [](Run& run) {
       for (int i = 0; i < 10; ++i) {
         CopyProgram(i % 2 == 0 ? "/bin/true" : "/bin/false", "prog", 0755);
         CALL(Execute("./prog"));
         CALL(::unlink("prog"));
       }
     }},
    {"exec.after_rename_over", kAll,
     [](Run& run) {
       CopyProgram("/bin/true", "prog", 0755);
       CALL(Execute("./prog"));
       CopyProgram("/bin/false", "new", 0755);
       CALL(::rename("new", "prog"));
       CALL(Execute("./prog"));
     }},
    {"exec.etxtbsy", kAll,
     [](Run& run) {
       CopyProgram("/bin/sleep", "prog", 0755);
       const int w = FD(::open("prog", O_WRONLY));
       CALL(Execute("./prog", "0"));
       CALL(::close(w));
       Run::Peer peer(run, [](Run&, Run::Peer&) { BecomeProgram(); });
       peer.UntilAsleep();
       FD(::open("prog", O_WRONLY));
       FD(::open("prog", O_RDWR | O_TRUNC));
       CALL(::truncate("prog", 0));
       FD(::open("prog", O_RDONLY));
       CALL(::unlink("prog"));
       ::kill(peer.pid(), SIGKILL);
     }},
    {"exec.a_running_program_stays_whole", kAll,
     [](Run& run) {
       CopyProgram("/bin/sleep", "prog", 0755);
       CALL(::link("prog", "other"));
       struct stat before;
       CALL(::stat("prog", &before));
       const auto look = [&run, &before] {
         struct stat st;
         CALL(::stat("prog", &st));
         run.Note("whole: %d", st.st_size == before.st_size);
       };
       Run::Peer peer(run, [](Run&, Run::Peer&) { BecomeProgram(); });
       peer.UntilAsleep();
       for (const char* const name : {"prog", "other"}) {
         run.Note("%s", name);
         FD(::open(name, O_RDONLY | O_TRUNC));
         look();
         FD(::open(name, O_RDONLY | O_TRUNC | O_CREAT, 0600));
         FD(::open(name, O_RDONLY | O_TRUNC | O_DIRECTORY));
         FD(::open(name, O_ACCMODE | O_TRUNC));
         FD(::open(name, O_WRONLY | O_TRUNC));
         FD(::open(name, O_RDWR | O_TRUNC));
         CALL(::truncate(name, 0));
         const int fd = FD(::open(name, O_RDONLY));
         CALL(::ftruncate(fd, 0));
         CALL(::close(fd));
         look();
       }
       ::kill(peer.pid(), SIGKILL);
     }},
    {"exec.by_descriptor", kAll,
     [](Run& run) {
       CopyProgram("/bin/false", "prog", 0755);
       for (const int flags : {O_RDONLY, O_PATH}) {
         const pid_t child = ::fork();
         if (child == 0) {
           const int fd = ::open("prog", flags | O_CLOEXEC);
           char* const arguments[] = {const_cast<char*>("prog"), nullptr};
           char* const environment[] = {nullptr};
           ::fexecve(fd, arguments, environment);
           ::_exit(200);
         }
         int status = 0;
         ::waitpid(child, &status, 0);
         run.Note("status %d", WEXITSTATUS(status));
       }
     }},
    {"exec.cloexec_descriptors_on_the_mount", kAll,
     [](Run& run) {
       // Closing them happens in the middle of execve.
       CopyProgram("/bin/true", "prog", 0755);
       for (int i = 0; i < 20; ++i) {
         const pid_t child = ::fork();
         if (child == 0) {
           for (int j = 0; j < 10; ++j) {
             ::open(("c" + std::to_string(j)).c_str(),
                    O_CREAT | O_RDWR | O_CLOEXEC, 0644);
           }
           ::execl("./prog", "prog", nullptr);
           ::_exit(200);
         }
         int status = 0;
         ::waitpid(child, &status, 0);
         if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
           run.Note("status %d", status);
         }
       }
     }},
    {"exec.setuid_program", kUsersOnly,
     [](Run& run) { CALL(Execute("./test", "root")); },
     [](Run&) {
       WriteFile("file", "x", 0600);
       // cat of a file that only root can read.
       CopyProgram("/bin/cat", "cat", 04755);
       WriteFile("test", "#!/bin/sh\nexec ./cat ./file\n", 0755);
     }},
    {"exec.write_after_exec_drops_setuid", kUsersOnly,
     [](Run& run) {
       const int fd = FD(::open("prog", O_WRONLY | O_APPEND));
       CALL(::write(fd, "x", 1));
       CALL(::close(fd));
       run.Stat("prog");
       CALL(Execute("./prog"));
     },
     [](Run&) { CopyProgram("/bin/true", "prog", 04777); }},
    {"exec.shared_library_style_mapping", kAll,
     [](Run& run) {
       CopyProgram("/bin/true", "lib", 0755);
       const int fd = FD(::open("lib", O_RDONLY | O_CLOEXEC));
       char* p = Map(fd, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE);
       run.Note("mapped %d", p != nullptr);
       if (p == nullptr) return;
       run.Bytes("magic", {p, 4});
       CALL(::mprotect(p, 4096, kRw));
       p[0] = 'x';
       CALL(::close(fd));
       CALL(::unlink("lib"));
       run.Bytes("still", {p + 1, 3});
     }},
};

}  // namespace

std::span<const Scenario> MemoryScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
