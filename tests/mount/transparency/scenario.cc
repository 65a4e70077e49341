// The log and the helpers of scenarios (scenario.h).
#include "tests/mount/transparency/scenario.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace tracefs::transparency {
namespace {

const char* ErrorName(int error) {
  const char* name = ::strerrorname_np(error);
  return name != nullptr ? name : "E?";
}

uint64_t Hash(std::string_view bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::string Escaped(std::string_view bytes) {
  if (bytes.size() > 200) {
    char text[64];
    std::snprintf(text, sizeof text, "%zu bytes, hash %016lx", bytes.size(),
                  Hash(bytes));
    return text;
  }
  std::string out = "\"";
  for (const char c : bytes) {
    const auto u = static_cast<unsigned char>(c);
    if (u >= 0x20 && u < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", u);
      out += hex;
    }
  }
  return out + "\"";
}

char TypeLetter(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return '-';
    case S_IFDIR:
      return 'd';
    case S_IFLNK:
      return 'l';
    case S_IFIFO:
      return 'p';
    case S_IFSOCK:
      return 's';
    case S_IFCHR:
      return 'c';
    case S_IFBLK:
      return 'b';
    default:
      return '?';
  }
}

}  // namespace

int Run::AtSymlinkNofollow() { return AT_SYMLINK_NOFOLLOW; }

bool Run::is_root() const { return ::geteuid() == 0; }

void Run::Line(const std::string& text) {
  const int saved = errno;
  const std::string line = prefix_ + text + "\n";
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(log_fd_, line.data() + done, line.size() - done);
    if (n <= 0) ::_exit(97);
    done += static_cast<size_t>(n);
  }
  errno = saved;
}

long Run::Ret(const char* text, long value) {
  const int error = errno;
  std::string line = std::string(text) + " = " + std::to_string(value);
  if (value == -1) line += std::string(" ") + ErrorName(error);
  Line(line);
  errno = error;
  return value;
}

int Run::Fd(const char* text, int fd) {
  const int error = errno;
  Line(std::string(text) + " = " +
       (fd >= 0 ? "fd" : std::string("-1 ") + ErrorName(error)));
  errno = error;
  return fd;
}

void Run::Note(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Line(text);
}

void Run::Bytes(const char* what, std::string_view bytes) {
  Line(std::string(what) + ": " + Escaped(bytes));
}

void Run::StatLine(const char* what, int result, const struct stat& st) {
  if (result != 0) {
    Line(std::string("stat ") + what + " = -1 " + ErrorName(errno));
    return;
  }
  char text[256];
  std::snprintf(text, sizeof text, "%c%04o uid %u gid %u",
                TypeLetter(st.st_mode), st.st_mode & 07777, st.st_uid,
                st.st_gid);
  std::string line = std::string("stat ") + what + " = " + text;
  if (!S_ISDIR(st.st_mode)) {
    line += " size " + std::to_string(st.st_size) + " nlink " +
            std::to_string(st.st_nlink);
  }
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
    line += " dev " + std::to_string(major(st.st_rdev)) + ":" +
            std::to_string(minor(st.st_rdev));
  }
  Line(line);
}

void Run::Stat(const char* path, int at_flags) {
  struct stat st;
  StatLine(path, ::fstatat(AT_FDCWD, path, &st, at_flags), st);
}

void Run::FStat(int fd) {
  struct stat st;
  StatLine("(fd)", ::fstat(fd, &st), st);
}

void Run::Times(const char* path) {
  struct stat st;
  if (::lstat(path, &st) != 0) {
    Line(std::string("times ") + path + " = -1 " + ErrorName(errno));
    return;
  }
  Note("times %s = atime %ld.%09ld mtime %ld.%09ld", path, st.st_atim.tv_sec,
       st.st_atim.tv_nsec, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

void Run::Content(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    Line(std::string("content ") + path + " = -1 " + ErrorName(errno));
    return;
  }
  std::string all;
  std::vector<char> buffer(1 << 16);
  ssize_t n;
  while ((n = ::read(fd, buffer.data(), buffer.size())) > 0) {
    all.append(buffer.data(), static_cast<size_t>(n));
  }
  const int error = errno;
  ::close(fd);
  if (n < 0) Line(std::string("read ") + path + " = -1 " + ErrorName(error));
  Bytes(path, all);
}

void Run::List(const char* path) {
  DIR* dir = ::opendir(path);
  if (dir == nullptr) {
    Line(std::string("opendir ") + path + " = -1 " + ErrorName(errno));
    return;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    // A file system may leave the type out; the backing one gives it.
    names.push_back(Escaped(entry->d_name) + ":" +
                    std::to_string(entry->d_type));
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  std::string line = std::string("list ") + path + " =";
  for (const std::string& name : names) line += " " + name;
  if (line.size() > 400) {
    Note("list %s = %zu names, hash %016lx", path, names.size(), Hash(line));
  } else {
    Line(line);
  }
}

// --- peer --------------------------------------------------------------------

Run::Peer::Peer(Run& run, const std::function<void(Run&, Peer&)>& body)
    : run_(run) {
  log_fd_ = ::memfd_create("peer", MFD_CLOEXEC);
  if (::pipe2(to_, O_CLOEXEC) != 0 || ::pipe2(from_, O_CLOEXEC) != 0) {
    ::_exit(96);
  }
  pid_ = ::fork();
  if (pid_ != 0) return;
  in_peer_ = true;
  // Its own copies must go, or an end of file would never come.
  ::close(to_[1]);
  ::close(from_[0]);
  Run own(log_fd_, run.prefix() + "  peer: ");
  body(own, *this);
  ::_exit(0);
}

Run::Peer::~Peer() {
  if (pid_ > 0) Join();
  for (const int fd : {to_[0], to_[1], from_[0], from_[1], log_fd_}) {
    ::close(fd);
  }
}

void Run::Peer::Signal() {
  const char byte = 's';
  [[maybe_unused]] const ssize_t n =
      ::write(in_peer_ ? from_[1] : to_[1], &byte, 1);
}

void Run::Peer::Wait() {
  const int fd = in_peer_ ? to_[0] : from_[0];
  pollfd ready = {fd, POLLIN, 0};
  char byte;
  if (::poll(&ready, 1, 10'000) != 1 || ::read(fd, &byte, 1) != 1) {
    (in_peer_ ? Run(log_fd_, run_.prefix() + "  peer: ") : run_)
        .Note("waited in vain");
  }
}

void Run::Peer::UntilAsleep() {
  // Twice asleep with nothing between: it is not merely being scheduled.
  int asleep = 0;
  for (int i = 0; i < 100 && asleep < 4; ++i) {
    SleepMs(5);
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string text;
    std::getline(stat, text);
    const size_t close = text.rfind(')');
    const char state =
        close != text.npos && close + 2 < text.size() ? text[close + 2] : '?';
    asleep = state == 'S' || state == 'D' ? asleep + 1 : 0;
  }
}

void Run::Peer::Join() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  std::string lines;
  char buffer[4096];
  ::lseek(log_fd_, 0, SEEK_SET);
  ssize_t n;
  while ((n = ::read(log_fd_, buffer, sizeof buffer)) > 0) {
    lines.append(buffer, static_cast<size_t>(n));
  }
  [[maybe_unused]] const ssize_t written =
      ::write(run_.log_fd(), lines.data(), lines.size());
  if (WIFSIGNALED(status)) {
    run_.Note("peer killed by signal %d", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    run_.Note("peer exited with %d", WEXITSTATUS(status));
  }
}

// --- helpers -----------------------------------------------------------------

void WriteFile(const char* path, std::string_view content, mode_t mode) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return;
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  ::close(fd);
}

std::string Pattern(size_t n, uint32_t seed) {
  std::string out(n, '\0');
  uint32_t x = seed * 2654435761u + 1;
  for (char& c : out) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    c = static_cast<char>('a' + x % 26);
  }
  return out;
}

void SleepMs(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

}  // namespace tracefs::transparency
