// A directory tree as text (runner.h, DumpTree).
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/mount/transparency/runner.h"

namespace tracefs::transparency {
namespace {

constexpr off_t kMostContent = off_t{64} << 20;

uint64_t Hash(const char* bytes, size_t n, uint64_t hash = 0xcbf29ce484222325) {
  for (size_t i = 0; i < n; ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3;
  }
  return hash;
}

class Dumper {
 public:
  explicit Dumper(bool identity) : identity_(identity) {}

  void Visit(int parent, const char* name, const std::string& path) {
    struct statx st;
    if (::statx(parent, name, AT_SYMLINK_NOFOLLOW, STATX_ALL, &st) != 0) {
      Add("%s: statx: %s\n", path.c_str(), std::strerror(errno));
      return;
    }
    Add("%s: mode %06o uid %u gid %u", path.c_str(), st.stx_mode, st.stx_uid,
        st.stx_gid);
    const bool directory = S_ISDIR(st.stx_mode);
    if (!directory) {
      // Hard links to one file share a number; which, is the dump's business.
      const auto key =
          std::pair(makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
      const auto number = files_.try_emplace(key, files_.size()).first->second;
      Add(" file %zu size %llu nlink %u", number, st.stx_size, st.stx_nlink);
    }
    if (S_ISCHR(st.stx_mode) || S_ISBLK(st.stx_mode)) {
      Add(" dev %u:%u", st.stx_rdev_major, st.stx_rdev_minor);
    }
    if (identity_) {
      Add(" ino %llu blocks %llu mtime %lld.%09u ctime %lld.%09u", st.stx_ino,
          st.stx_blocks, st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec,
          st.stx_ctime.tv_sec, st.stx_ctime.tv_nsec);
      if ((st.stx_mask & STATX_BTIME) != 0) {
        Add(" btime %lld.%09u", st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
      }
    }
    if (S_ISLNK(st.stx_mode)) AddTarget(parent, name);
    AddXattrs(parent, name);
    if (S_ISREG(st.stx_mode)) AddContent(parent, name, st.stx_size);
    text_ += "\n";
    if (directory) VisitEntries(parent, name, path);
  }

  std::string Take() { return std::move(text_); }

 private:
  template <typename... T>
  void Add(const char* format, T... arguments) {
    char line[8192];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    std::snprintf(line, sizeof line, format, arguments...);
#pragma GCC diagnostic pop
    text_ += line;
  }

  void AddTarget(int parent, const char* name) {
    char target[4097];
    const ssize_t n = ::readlinkat(parent, name, target, sizeof target - 1);
    if (n < 0) {
      Add(" -> %s", std::strerror(errno));
    } else {
      text_ += " -> " + std::string(target, static_cast<size_t>(n));
    }
  }

  void AddXattrs(int parent, const char* name) {
    // There are no xattr calls with a directory descriptor on older kernels.
    const std::string path =
        "/proc/self/fd/" + std::to_string(parent) + "/" + name;
    const ssize_t n =
        ::llistxattr(path.c_str(), buffer_.data(), buffer_.size());
    if (n < 0 && errno != EOPNOTSUPP) Add(" xattrs: %s", std::strerror(errno));
    std::vector<std::string> sorted;
    for (ssize_t at = 0; at < n;) {
      sorted.emplace_back(buffer_.data() + at);
      at += static_cast<ssize_t>(sorted.back().size()) + 1;
    }
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& key : sorted) {
      const ssize_t size = ::lgetxattr(path.c_str(), key.c_str(),
                                       buffer_.data(), buffer_.size());
      Add(" %s=%zd:%016lx", key.c_str(), size,
          Hash(buffer_.data(), size > 0 ? static_cast<size_t>(size) : 0));
    }
  }

  void AddContent(int parent, const char* name, uint64_t size) {
    if (size > static_cast<uint64_t>(kMostContent)) return;
    const int fd =
        ::openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    if (fd < 0) {
      Add(" open: %s", std::strerror(errno));
      return;
    }
    uint64_t hash = Hash(nullptr, 0);
    ssize_t n;
    while ((n = ::read(fd, buffer_.data(), buffer_.size())) > 0) {
      hash = Hash(buffer_.data(), static_cast<size_t>(n), hash);
    }
    if (n < 0) Add(" read: %s", std::strerror(errno));
    ::close(fd);
    Add(" content %016lx", hash);
  }

  void VisitEntries(int parent, const char* name, const std::string& path) {
    const int fd =
        ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* dir = fd >= 0 ? ::fdopendir(fd) : nullptr;
    if (dir == nullptr) {
      Add("%s: opendir: %s\n", path.c_str(), std::strerror(errno));
      return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string entry_name = entry->d_name;
      if (entry_name != "." && entry_name != "..") names.push_back(entry_name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& entry : names) {
      Visit(::dirfd(dir), entry.c_str(), path + "/" + entry);
    }
    ::closedir(dir);
  }

  const bool identity_;
  std::string text_;
  std::vector<char> buffer_ = std::vector<char>(1 << 17);
  std::map<std::pair<dev_t, uint64_t>, size_t> files_;
};

}  // namespace

std::string DumpTree(const std::string& path, bool identity) {
  Dumper dumper(identity);
  dumper.Visit(AT_FDCWD, path.c_str(), ".");
  return dumper.Take();
}

}  // namespace tracefs::transparency
