// hammer DIR LOGS PROCESSES SECONDS SEED [--survive]: processes that work in
// DIR, each as fast as it can, and keep their own account of what they did.
//
// Each process works in a folder of its own, in one that all share and in one
// file that all share. Every call that must reach the file system gives a line
// in LOGS/<pid>, written outside of DIR, in the order of the calls:
//
//   ns op path path2 handle offset result     (tabs between, - for nothing)
//
// ns is the real time before the call; paths start at DIR; handle is a number
// of the process's own for an open file; result is what the call returned, or
// minus errno. Look-ups and getattrs are not told: how many come is the
// kernel's affair. Without --survive any result that a quiet directory would
// not give is a failure; with it a process whose calls begin to fail as those
// of a dead mount do stops there, and has not failed (the last line of its
// account may have been done or not).
//
// Exit status: 0 well, 1 unexpected results (told on standard error), 2 usage.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kNames = 24;        // of files in a process's folder
constexpr size_t kMaxOpen = 12;   // files a process has open
constexpr size_t kMaxIo = 65536;  // bytes of one call
constexpr off_t kMaxFile = 1 << 20;
constexpr off_t kSlot = 1 << 16;  // of each process in the shared file

bool survive = false;

int64_t NowNs(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What a call on a mount gives whose daemon is gone, or is killed while it
// copies a request or an answer (EIO).
bool IsOfADeadMount(int error) {
  // ECANCELED, EINTR: io_uring, to requests that were on their way.
  return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED ||
         error == EINTR || error == EIO;
}

struct Entry {
  const char* op;
  std::string path = "-";
  std::string path2 = "-";
  long handle = -1;
  long offset = -1;
};

// One process.
class Worker {
 public:
  Worker(const std::string& logs, int number, uint64_t seed)
      : me_("p" + std::to_string(number)),
        slot_(number * kSlot),
        random_(seed * 1000 + static_cast<uint64_t>(number)),
        buffer_(kMaxIo) {
    const std::string name = logs + "/" + std::to_string(::getpid());
    log_ = std::fopen(name.c_str(), "we");
    if (log_ == nullptr) {
      std::perror(name.c_str());
      ::_exit(2);
    }
  }

  // The work itself, in the current directory DIR.
  void Run(double seconds) {
    const int64_t end =
        NowNs(CLOCK_MONOTONIC) + static_cast<int64_t>(seconds * 1e9);
    Call({.op = "mkdir", .path = "/" + me_},
         [&] { return ::mkdir(me_.c_str(), 0755); });
    if (::chdir(me_.c_str()) != 0) Stop("chdir");
    shared_ = Open("open", "/shared/data", O_RDWR);
    while (NowNs(CLOCK_MONOTONIC) < end) Step();
    while (!open_.empty()) Close(open_.size() - 1);
    CloseHandle(shared_);
    Finish(0);
  }

  // Writes `entry` with the result of `body` (as of a system call).
  template <typename F>
  long Call(const Entry& entry, F body) {
    const int64_t ns = NowNs(CLOCK_REALTIME);
    const long result = static_cast<long>(body());
    const int error = errno;
    std::fprintf(log_, "%lld\t%s\t%s\t%s\t%ld\t%ld\t%ld\n",
                 static_cast<long long>(ns), entry.op, entry.path.c_str(),
                 entry.path2.c_str(), entry.handle, entry.offset,
                 result < 0 ? -error : result);
    if (result < 0 && survive && IsOfADeadMount(error)) Finish(0);
    if (result < 0 && error != expected_) {
      errno = error;
      Stop(entry.op + (" " + entry.path));
    }
    return result;
  }

  [[noreturn]] void Finish(int status) {
    std::fclose(log_);
    ::_exit(status);
  }

 private:
  struct Handle {
    int fd = -1;
    long number = -1;
    bool readable = true;
  };

  [[noreturn]] void Stop(const std::string& what) {
    if (survive && IsOfADeadMount(errno)) Finish(0);
    std::fprintf(stderr, "hammer %s: %s: %s\n", me_.c_str(), what.c_str(),
                 std::strerror(errno));
    Finish(1);
  }

  size_t Below(size_t n) { return random_() % n; }
  // A name in our folder as we use it, and as the mount's root sees it.
  static std::string Name(size_t i) { return "f" + std::to_string(i); }
  std::string Seen(const std::string& name) const {
    return name.starts_with("../") ? name.substr(2) : "/" + me_ + "/" + name;
  }

  Handle Open(const char* op, const std::string& seen, int flags) {
    const std::string path = seen.starts_with("/" + me_ + "/")
                                 ? seen.substr(me_.size() + 2)
                                 : ".." + seen;
    Handle handle{.number = next_handle_++};
    handle.fd = static_cast<int>(
        Call({.op = op, .path = seen, .handle = handle.number},
             [&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }));
    handle.readable = (flags & O_ACCMODE) != O_WRONLY;
    return handle;
  }
  void CloseHandle(const Handle& handle) {
    Call({.op = "flush", .handle = handle.number},
         [&] { return ::close(handle.fd); });
  }
  void Close(size_t i) {
    CloseHandle(open_[i]);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void Write(const Handle& handle, off_t offset, size_t size) {
    Call({.op = "write", .handle = handle.number, .offset = offset},
         [&] { return ::pwrite(handle.fd, buffer_.data(), size, offset); });
  }
  void Read(const Handle& handle, off_t offset, size_t size) {
    Call({.op = "read", .handle = handle.number, .offset = offset},
         [&] { return ::pread(handle.fd, buffer_.data(), size, offset); });
  }

  void Step() {
    const size_t dice = Below(100);
    if (dice < 55 && !open_.empty()) {
      OnOpenFile(open_[Below(open_.size())]);
    } else if (dice < 70) {
      OpenOne();
    } else if (dice < 80 && !open_.empty()) {
      Close(Below(open_.size()));
    } else if (dice < 85) {
      OnSharedFile();
    } else if (dice < 95) {
      OnNames();
    } else {
      OnFolders();
    }
  }

  void OpenOne() {
    if (open_.size() >= kMaxOpen) Close(0);
    const size_t i = Below(kNames);
    const int mode = Below(4) == 0 ? O_WRONLY : O_RDWR;
    if (exists_[i]) {
      open_.push_back(
          Open("open", Seen(Name(i)), mode | (Below(8) == 0 ? O_TRUNC : 0)));
    } else {
      open_.push_back(Open("create", Seen(Name(i)), mode | O_CREAT | O_EXCL));
      exists_[i] = true;
    }
  }

  void OnOpenFile(const Handle& handle) {
    const auto offset = static_cast<off_t>(Below(kMaxFile));
    const size_t size = Below(8) == 0 ? kMaxIo : 1 + Below(6000);
    const auto on = [&](const char* op) {
      return Entry{.op = op, .handle = handle.number};
    };
    switch (Below(14)) {
      case 0:
        Call(on("fsync"), [&] { return ::fdatasync(handle.fd); });
        break;
      case 1:
        Call({.op = "fallocate", .handle = handle.number, .offset = offset},
             [&] {
               return ::fallocate(handle.fd, FALLOC_FL_KEEP_SIZE, offset, 4096);
             });
        break;
      case 2:
        Call({.op = "setattr"},
             [&] { return ::ftruncate(handle.fd, offset / 4); });
        break;
      case 3:
        Call({.op = "setattr"},
             [&] { return ::fchmod(handle.fd, 0600 + Below(64)); });
        break;
      case 4: {
        const Handle& other = open_[Below(open_.size())];
        if (!other.readable || other.number == handle.number) break;
        off_t from = 0;
        off_t to = 1000 + offset;  // both may be the same file
        Call({.op = "copy_file_range", .handle = other.number, .offset = 0},
             [&] {
               return ::copy_file_range(other.fd, &from, handle.fd, &to, 1000,
                                        0);
             });
        break;
      }
      case 5:
      case 6:
      case 7:
      case 8:
        if (handle.readable) {
          Read(handle, offset / 8, size);
          break;
        }
        [[fallthrough]];
      default:
        Write(handle, offset / 8, size);
    }
  }

  // Everybody writes its own slot and reads those of others.
  void OnSharedFile() {
    const auto within = static_cast<off_t>(Below(kSlot - 8000));
    if (Below(2) == 0) {
      Write(shared_, slot_ + within, 1 + Below(8000));
    } else {
      Read(shared_, within, 1 + Below(8000));
    }
  }

  void OnNames() {
    const size_t i = Below(kNames);
    const size_t j = Below(kNames);
    const std::string from = Name(i);
    const std::string to = Name(j);
    if (!exists_[i] || i == j) return;
    switch (Below(6)) {
      case 0:
        Call({.op = "unlink", .path = Seen(from)},
             [&] { return ::unlink(from.c_str()); });
        exists_[i] = false;
        break;
      case 1:
        Call({.op = "rename", .path = Seen(from), .path2 = Seen(to)},
             [&] { return ::rename(from.c_str(), to.c_str()); });
        exists_[i] = false;
        exists_[j] = true;
        break;
      case 2: {
        // Through the folder of all, where nobody else uses this name.
        const std::string out = "../shared/" + me_;
        Call({.op = "rename", .path = Seen(from), .path2 = Seen(out)},
             [&] { return ::rename(from.c_str(), out.c_str()); });
        Call({.op = "rename", .path = Seen(out), .path2 = Seen(from)},
             [&] { return ::rename(out.c_str(), from.c_str()); });
        break;
      }
      case 3: {
        const std::string link = "../shared/" + me_ + ".link";
        // The first path is any name that the file has.
        Call({.op = "link", .path2 = Seen(link)},
             [&] { return ::link(from.c_str(), link.c_str()); });
        Call({.op = "unlink", .path = Seen(link)},
             [&] { return ::unlink(link.c_str()); });
        break;
      }
      case 4: {
        const char* name = "user.hammer";
        char value[16];
        Call({.op = "setxattr", .path = Seen(from)},
             [&] { return ::setxattr(from.c_str(), name, "value", 5, 0); });
        Call({.op = "getxattr", .path = Seen(from)}, [&] {
          return ::getxattr(from.c_str(), name, value, sizeof value);
        });
        Call({.op = "removexattr", .path = Seen(from)},
             [&] { return ::removexattr(from.c_str(), name); });
        break;
      }
      default: {
        struct stat st;
        if (::stat(from.c_str(), &st) != 0) Stop("stat");
      }
    }
  }

  void OnFolders() {
    switch (Below(3)) {
      case 0: {
        Call({.op = "mkdir", .path = Seen("d")},
             [] { return ::mkdir("d", 0700); });
        Call({.op = "symlink", .path = Seen("d/link")},
             [] { return ::symlink("nowhere", "d/link"); });
        char target[16];
        Call({.op = "readlink", .path = Seen("d/link")},
             [&] { return ::readlink("d/link", target, sizeof target); });
        expected_ = ENOTEMPTY;
        Call({.op = "rmdir", .path = Seen("d")}, [] { return ::rmdir("d"); });
        expected_ = 0;
        Call({.op = "unlink", .path = Seen("d/link")},
             [] { return ::unlink("d/link"); });
        Call({.op = "rmdir", .path = Seen("d")}, [] { return ::rmdir("d"); });
        break;
      }
      case 1: {
        struct statvfs st;
        Call({.op = "statfs"}, [&] { return ::statvfs(".", &st); });
        break;
      }
      default: {
        const std::string name = Below(2) == 0 ? "." : "../shared";
        const long handle = next_handle_++;
        DIR* dir = nullptr;
        Call({.op = "opendir",
              .path = name == "." ? "/" + me_ : "/shared",
              .handle = handle},
             [&] {
               dir = ::opendir(name.c_str());
               return dir == nullptr ? -1 : 0;
             });
        errno = 0;
        while (::readdir(dir) != nullptr) {
        }
        if (errno != 0) Stop("readdir");
        ::closedir(dir);
      }
    }
  }

  const std::string me_;
  const off_t slot_;
  std::minstd_rand random_;
  std::vector<char> buffer_;
  std::FILE* log_;
  std::array<bool, kNames> exists_{};
  std::vector<Handle> open_;
  Handle shared_;
  long next_handle_ = 1;
  int expected_ = 0;  // the errno that the next call may fail with
};

}  // namespace

int main(int argc, char** argv) {
  survive = argc == 7 && std::string_view(argv[6]) == "--survive";
  if (argc != 6 && !survive) {
    std::fputs("usage: hammer DIR LOGS PROCESSES SECONDS SEED [--survive]\n",
               stderr);
    return 2;
  }
  const std::string logs = argv[2];
  const int processes = std::atoi(argv[3]);
  const double seconds = std::atof(argv[4]);
  const uint64_t seed = std::strtoull(argv[5], nullptr, 10);
  if (::chdir(argv[1]) != 0) {
    std::perror(argv[1]);
    return 2;
  }
  Worker parent(logs, 0, seed);
  parent.Call({.op = "mkdir", .path = "/shared"},
              [] { return ::mkdir("shared", 0755); });
  int fd = -1;
  parent.Call({.op = "create", .path = "/shared/data", .handle = 1}, [&] {
    return fd = ::open("shared/data", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC,
                       0644);
  });
  parent.Call({.op = "flush", .handle = 1}, [&] { return ::close(fd); });

  std::vector<pid_t> children;
  for (int i = 1; i <= processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) Worker(logs, i, seed).Run(seconds);
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    well = well && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  parent.Finish(well ? 0 : 1);
}
