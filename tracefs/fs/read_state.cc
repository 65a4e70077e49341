#include "tracefs/fs/read_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <vector>

#include "tracefs/base/file_checksum.h"
#include "tracefs/fs/xattrs.h"

namespace tracefs {
namespace {

void ReadXattrs(int proc_self_fd, int fd, FileState* state) {
  const Xattrs xattrs(proc_self_fd, BackingFd(fd));
  // Kept: it is done for each file that a trace touches.
  thread_local std::vector<char> names(FileState::kMostXattrBytes);
  thread_local std::vector<char> value(FileState::kMostXattrBytes);
  const ssize_t size = xattrs.List(names.data(), names.size());
  if (size < 0) {
    state->incomplete |= errno != ENOTSUP;
    return;
  }
  size_t left = FileState::kMostXattrBytes;
  for (const char* name = names.data(); name < names.data() + size;) {
    const std::string_view text(name);
    const ssize_t n = xattrs.Get(name, value.data(), value.size());
    if (n < 0 || text.size() + static_cast<size_t>(n) > left) {
      state->incomplete = true;
    } else {
      left -= text.size() + static_cast<size_t>(n);
      state->xattrs.emplace_back(
          text, std::string(value.data(), static_cast<size_t>(n)));
    }
    name += text.size() + 1;
  }
}

// Opens what an O_PATH descriptor is of.
UniqueFd OpenForReading(int proc_self_fd, int fd) {
  std::array<char, 16> name{};
  std::to_chars(name.data(), name.data() + name.size() - 1, fd);
  return UniqueFd(
      ::openat(proc_self_fd, name.data(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

// Only a file that takes less room than its size has holes.
void ReadRanges(int proc_self_fd, int fd, FileState* state) {
  const struct stat& st = state->st;
  if (st.st_size == 0 || st.st_blocks * 512 >= st.st_size) return;
  const UniqueFd opened = OpenForReading(proc_self_fd, fd);
  if (!opened) {
    state->incomplete = true;
    return;
  }
  std::vector<FileState::Range> ranges;
  for (off_t at = 0; at < st.st_size;) {
    const off_t begin = ::lseek(opened.get(), at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;
    const off_t end = begin < 0 ? -1 : ::lseek(opened.get(), begin, SEEK_HOLE);
    if (end <= begin || ranges.size() == FileState::kMostRanges) {
      state->incomplete = true;
      return;
    }
    ranges.push_back(
        {static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)});
    at = end;
  }
  state->data = std::move(ranges);
}

void ReadChecksum(int proc_self_fd, int fd, FileState* state) {
  const UniqueFd opened = OpenForReading(proc_self_fd, fd);
  if (opened) state->checksum = FileChecksum(opened.get());
  state->incomplete |= !state->checksum;
}

class Walk {
 public:
  Walk(int proc_self_fd, const std::function<bool(uint64_t)>& touched,
       bool contents,
       const std::function<void(std::string_view, const FileState&)>& visit)
      : proc_self_fd_(proc_self_fd),
        touched_(touched),
        contents_(contents),
        visit_(visit) {}

  void Begin(UniqueFd root) {
    struct stat st;
    if (::fstat(root.get(), &st) != 0) return;
    device_ = st.st_dev;
    Into(std::move(root), 0);
  }

 private:
  static constexpr int kDeepest = 2048;

  void Into(UniqueFd fd, int depth) {
    if (depth > kDeepest) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()),
                                                  &::closedir);
    if (dir == nullptr) return;
    const int at = fd.Release();
    std::vector<std::string> below;
    while (const dirent* entry = ::readdir(dir.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || !touched_(entry->d_ino)) continue;
      if (One(at, entry->d_name)) below.emplace_back(name);
    }
    for (const std::string& name : below) {
      UniqueFd next(::openat(at, name.c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) continue;
      const size_t size = path_.size();
      path_ += '/' + name;
      Into(std::move(next), depth + 1);
      path_.resize(size);
    }
  }

  // True if it is a directory to go into.
  bool One(int at, const char* name) {
    const UniqueFd fd(::openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    FileState state;
    if (!fd || !ReadFileState(proc_self_fd_, fd.get(), &state) ||
        state.st.st_dev != device_) {
      return false;
    }
    if (contents_ && S_ISREG(state.st.st_mode)) {
      ReadChecksum(proc_self_fd_, fd.get(), &state);
    }
    visit_(path_ + '/' + name, state);
    return S_ISDIR(state.st.st_mode);
  }

  const int proc_self_fd_;
  const std::function<bool(uint64_t)>& touched_;
  const bool contents_;
  const std::function<void(std::string_view, const FileState&)>& visit_;
  dev_t device_ = 0;
  std::string path_;
};

}  // namespace

bool ReadFileState(int proc_self_fd, int fd, FileState* state) {
  if (::fstatat(fd, "", &state->st, AT_EMPTY_PATH) != 0) return false;
  if (S_ISLNK(state->st.st_mode)) {
    std::array<char, PATH_MAX> target;
    const ssize_t n = ::readlinkat(fd, "", target.data(), target.size());
    if (n > 0) state->target.assign(target.data(), static_cast<size_t>(n));
    state->incomplete |= n <= 0;
  }
  ReadXattrs(proc_self_fd, fd, state);
  if (S_ISREG(state->st.st_mode)) ReadRanges(proc_self_fd, fd, state);
  return true;
}

std::optional<uint32_t> StableChecksum(int proc_self_fd, int fd,
                                       uint64_t most) {
  FileState state;
  if (::fstatat(fd, "", &state.st, AT_EMPTY_PATH) != 0 ||
      !S_ISREG(state.st.st_mode) ||
      static_cast<uint64_t>(state.st.st_size) > most) {
    return std::nullopt;
  }
  ReadChecksum(proc_self_fd, fd, &state);
  struct stat after;
  if (!state.checksum || ::fstatat(fd, "", &after, AT_EMPTY_PATH) != 0) {
    return std::nullopt;
  }
  const struct stat& before = state.st;
  const auto same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  if (before.st_size != after.st_size || !same(before.st_mtim, after.st_mtim) ||
      !same(before.st_ctim, after.st_ctim)) {
    return std::nullopt;
  }
  return state.checksum;
}

void WalkTouched(
    UniqueFd root, int proc_self_fd,
    const std::function<bool(uint64_t)>& touched, bool contents,
    const std::function<void(std::string_view, const FileState&)>& visit) {
  Walk(proc_self_fd, touched, contents, visit).Begin(std::move(root));
}

}  // namespace tracefs
