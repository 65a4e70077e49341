#include "tracefs/replay/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tracefs/base/printable.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;

constexpr size_t kMostSteps = 4'000'000;

bool Changes(const Action& a) {
  switch (a.op) {
    case Op::setattr_:
    case Op::write_:
    case Op::setxattr_:
    case Op::removexattr_:
    case Op::fallocate_:
    case Op::copy_file_range_:
    case Op::rename_:
    case Op::link_:
    case Op::create_:
    case Op::mkdir_:
    case Op::mknod_:
    case Op::symlink_:
      return true;
    case Op::open_:
      return (a.arg_flags & O_TRUNC) != 0;
    default:
      return false;
  }
}

// Where a descriptor leads, by a path below `root`; false where it has none
// any more.
bool PathBelow(int root, int fd, std::string* path) {
  std::array<char, 4096> text[2];
  ssize_t sizes[2];
  const int fds[] = {root, fd};
  for (int i = 0; i < 2; ++i) {
    sizes[i] =
        ::readlink(FdPath(fds[i]).c_str(), text[i].data(), text[i].size());
    if (sizes[i] <= 0) return false;
  }
  const std::string_view top(text[0].data(), static_cast<size_t>(sizes[0]));
  std::string_view all(text[1].data(), static_cast<size_t>(sizes[1]));
  if (!all.starts_with(top)) return false;
  struct stat st;
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH) != 0 || st.st_nlink == 0) {
    return false;
  }
  all.remove_prefix(top.size());
  if (!all.empty() && all[0] != '/') return false;
  *path = all.empty() ? "" : all.substr(1);
  return true;
}

std::string Join(const std::string& dir, std::string_view name) {
  return dir.empty() ? std::string(name) : dir + "/" + std::string(name);
}

void ReadXattrs(int fd, UndoStep* step) {
  std::array<char, 65536> names;
  const std::string path = FdPath(fd);
  const ssize_t n = ::listxattr(path.c_str(), names.data(), names.size());
  std::string value(65536, '\0');
  for (const char* name = names.data(); n > 0 && name < names.data() + n;
       name += std::string_view(name).size() + 1) {
    const ssize_t size =
        ::getxattr(path.c_str(), name, value.data(), value.size());
    if (size >= 0) {
      step->xattrs.emplace_back(name,
                                value.substr(0, static_cast<size_t>(size)));
    }
  }
}

}  // namespace

// --- Recording.

struct UndoRecorder::File {
  int fd = -1;
  UniqueFd owned;
  struct stat st {};
  std::string path;  // empty: DIR, or it has no name any more
  bool named = false;
};

UndoRecorder::File UndoRecorder::Locate(const Action& a) const {
  File file;
  if (a.place == Place::kName) {
    file.owned.Reset(
        OpenBeneath(scratch_.DirFd(a.dir), a.name, O_PATH | O_NOFOLLOW));
    file.fd = file.owned.get();
  } else {
    const bool out = a.op == Op::copy_file_range_;
    file.fd = a.place == Place::kDir
                  ? scratch_.DirFd(a.dir)
                  : scratch_.HandleFd(out ? a.handle_out : a.handle);
  }
  if (file.fd >= 0 && ::fstatat(file.fd, "", &file.st, AT_EMPTY_PATH) == 0) {
    file.named = PathBelow(scratch_.root(), file.fd, &file.path);
  }
  return file;
}

UndoStep& UndoRecorder::Add(const Action& action, Kind kind, std::string path,
                            uint64_t inode) {
  UndoStep& step = steps_.emplace_back();
  step.kind = kind;
  step.sequence = action.sequence;
  step.path = std::move(path);
  step.inode = inode;
  return step;
}

Result<uint64_t> UndoRecorder::Store(int fd, uint64_t begin, uint64_t end) {
  const uint64_t at = stored_;
  if (end < begin || end - begin > max_bytes_ - stored_) {
    return Status::System(EDQUOT, "undo: room for the bytes to be kept");
  }
  std::vector<std::byte> bytes(size_t{256} << 10);
  while (begin < end) {
    const ssize_t n =
        ::pread(fd, bytes.data(), std::min<uint64_t>(bytes.size(), end - begin),
                static_cast<off_t>(begin));
    if (n < 0) return Status::System(errno, "undo: bytes to be kept");
    if (n == 0) break;
    for (ssize_t done = 0; done < n;) {
      const ssize_t put =
          ::pwrite(store_, bytes.data() + done, static_cast<size_t>(n - done),
                   static_cast<off_t>(stored_) + done);
      if (put <= 0) return Status::System(errno, "undo: bytes to be kept");
      done += put;
    }
    begin += static_cast<uint64_t>(n);
    stored_ += static_cast<uint64_t>(n);
  }
  return at;
}

void UndoRecorder::NoteOthers(const Action& a) {
  const bool removes =
      a.op == Op::unlink_ || a.op == Op::rmdir_ || a.op == Op::rename_;
  std::string dir;
  if (removes && PathBelow(scratch_.root(), scratch_.DirFd(a.dir), &dir)) {
    made_names_.erase(Join(dir, a.name));  // not ours to remove any more
  }
  if (!Changes(a)) return;
  const File file = Locate(a);
  if (file.fd < 0) return;
  others_[file.st.st_ino] = a.sequence;
  if (made_names_.contains(file.path)) others_names_[file.path] = a.sequence;
}

Status UndoRecorder::Before(const Action& a) {
  if (a.sequence == 0 || a.error != 0) return {};
  if (a.Has(kMarked)) {
    if (steps_.size() >= kMostSteps) {
      return Status::Invalid("undo: more than " + std::to_string(kMostSteps) +
                             " steps; select less");
    }
    return Undo(a);
  }
  NoteOthers(a);
  return {};
}

Status UndoRecorder::Undo(const Action& a) {
  std::string dir;
  std::string new_dir;
  const bool by_name = a.place == Place::kName;
  if (by_name && !PathBelow(scratch_.root(), scratch_.DirFd(a.dir), &dir)) {
    return {};
  }
  if (a.new_dir != kNoSlot &&
      !PathBelow(scratch_.root(), scratch_.DirFd(a.new_dir), &new_dir)) {
    return {};
  }
  const std::string path = by_name ? Join(dir, a.name) : std::string();
  switch (a.op) {
    case Op::mkdir_:
      made_names_.insert(path);
      Add(a, Kind::kRemoveDir, path, 0);
      return {};
    case Op::create_:
    case Op::mknod_:
    case Op::symlink_:
      made_names_.insert(path);
      Add(a, Kind::kRemove, path, 0);
      return {};
    case Op::link_:
      Add(a, Kind::kRemove, Join(new_dir, a.new_name), 0);
      return {};
    case Op::unlink_:
    case Op::rmdir_:
      return KeepGone(a, scratch_.DirFd(a.dir), a.name, path, a.text);
    case Op::rename_: {
      const std::string to = Join(new_dir, a.new_name);
      const bool exchange = (a.arg_flags & RENAME_EXCHANGE) != 0;
      if (!exchange) {
        // First the name is free again, and then what had it comes back: steps
        // are done last one first.
        struct stat st;
        if (::fstatat(scratch_.DirFd(a.new_dir),
                      std::string(a.new_name).c_str(), &st,
                      AT_SYMLINK_NOFOLLOW) == 0) {
          if (Status s = KeepGone(a, scratch_.DirFd(a.new_dir), a.new_name, to,
                                  a.text);
              !s.ok()) {
            return s;
          }
        }
      }
      if (made_names_.erase(path) != 0) {
        made_names_.insert(to);
      } else {
        made_names_.erase(to);
      }
      Add(a, exchange ? Kind::kExchange : Kind::kRename, to, 0).other = path;
      return {};
    }
    default:
      break;
  }
  const File file = Locate(a);
  // Where it has no name, its removal gives all of it back.
  if (file.fd < 0 || !file.named) return {};
  const auto size = static_cast<uint64_t>(file.st.st_size);
  switch (a.op) {
    case Op::open_:
      if ((a.arg_flags & O_TRUNC) == 0) return {};
      return KeepBytes(a, file, 0, size);
    case Op::write_:
      return KeepBytes(a, file, a.offset,
                       a.offset + static_cast<uint64_t>(a.result));
    case Op::copy_file_range_:
      return KeepBytes(a, file, a.offset_out,
                       a.offset_out + static_cast<uint64_t>(a.result));
    case Op::fallocate_:
      return KeepBytes(a, file, 0, UINT64_MAX);
    case Op::setattr_:
      return KeepAttributes(a, file);
    case Op::setxattr_:
    case Op::removexattr_:
      return KeepXattr(a, file);
    default:
      return {};
  }
}

Status UndoRecorder::KeepGone(const Action& a, int dir, std::string_view name,
                              const std::string& path, std::string_view also) {
  made_names_.erase(path);
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  struct stat st;
  if (!fd || ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) return {};
  if (!S_ISDIR(st.st_mode) && st.st_nlink > 1 && !also.empty()) {
    Add(a, Kind::kLinkAgain, path, st.st_ino).other = also;
    return {};
  }
  UndoStep step;
  step.sequence = a.sequence;
  step.path = path;
  step.inode = st.st_ino;
  step.mode = st.st_mode & 07777;
  step.uid = st.st_uid;
  step.gid = st.st_gid;
  ReadXattrs(fd.get(), &step);
  if (S_ISDIR(st.st_mode)) {
    step.kind = Kind::kMakeDir;
  } else if (S_ISLNK(st.st_mode)) {
    step.kind = Kind::kMakeLink;
    std::array<char, 4096> target;
    const ssize_t n = ::readlinkat(fd.get(), "", target.data(), target.size());
    if (n > 0) step.other.assign(target.data(), static_cast<size_t>(n));
  } else if (S_ISREG(st.st_mode)) {
    step.kind = Kind::kMakeFile;
    step.length = static_cast<uint64_t>(st.st_size);
    const UniqueFd file(OpenBeneath(dir, name, O_RDONLY | O_NOFOLLOW));
    if (!file) return Status::System(errno, "undo: " + Printable(path));
    auto stored = Store(file.get(), 0, step.length);
    if (!stored.ok()) return stored.status();
    step.stored = *stored;
    if (a.Has(kUnknownBytes)) step.why_not = "its bytes are not in the trace";
  } else if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) {
    step.kind = Kind::kMakeNode;
    step.mode = st.st_mode;
  } else {
    step.kind = Kind::kMakeNode;
    step.why_not = "device nodes are not made";
  }
  steps_.push_back(std::move(step));
  return {};
}

Status UndoRecorder::KeepBytes(const Action& a, const File& file,
                               uint64_t begin, uint64_t end) {
  const auto size = static_cast<uint64_t>(file.st.st_size);
  if (made_names_.contains(file.path)) return {};  // it is removed in the end
  // Its size comes back first, then its bytes: the last step is done first.
  const uint64_t most = std::min(end, size);
  if (begin < most) {
    const UniqueFd opened(
        ::open(FdPath(file.fd).c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return Status::System(errno, "undo: " + Printable(file.path));
    auto stored = Store(opened.get(), begin, most);
    if (!stored.ok()) return stored.status();
    UndoStep& step = Add(a, Kind::kWriteBack, file.path, file.st.st_ino);
    step.offset = begin;
    step.length = most - begin;
    step.stored = *stored;
    if (a.Has(kUnknownBytes)) step.why_not = "these bytes are not in the trace";
  }
  if (end > size || a.op == Op::open_ || a.op == Op::setattr_) {
    Add(a, Kind::kResize, file.path, file.st.st_ino).length = size;
  }
  return {};
}

Status UndoRecorder::KeepAttributes(const Action& a, const File& file) {
  if (made_names_.contains(file.path)) return {};
  if ((a.valid & FATTR_SIZE) != 0) {
    const auto size = static_cast<uint64_t>(file.st.st_size);
    if (Status s = KeepBytes(a, file, std::min(a.new_size, size), size);
        !s.ok()) {
      return s;
    }
  }
  if ((a.valid & FATTR_MODE) != 0) {
    Add(a, Kind::kMode, file.path, file.st.st_ino).mode =
        file.st.st_mode & 07777;
  }
  if ((a.valid & (FATTR_UID | FATTR_GID)) != 0) {
    UndoStep& step = Add(a, Kind::kOwner, file.path, file.st.st_ino);
    step.uid = file.st.st_uid;
    step.gid = file.st.st_gid;
  }
  return {};
}

Status UndoRecorder::KeepXattr(const Action& a, const File& file) {
  if (made_names_.contains(file.path)) return {};
  const std::string name(a.text);
  std::string value(65536, '\0');
  const ssize_t n = ::getxattr(FdPath(file.fd).c_str(), name.c_str(),
                               value.data(), value.size());
  UndoStep& step = Add(a, n < 0 ? Kind::kRemoveXattr : Kind::kXattr, file.path,
                       file.st.st_ino);
  step.other = name;
  if (n >= 0) step.value = value.substr(0, static_cast<size_t>(n));
  return {};
}

std::vector<UndoStep> UndoRecorder::Take() {
  std::reverse(steps_.begin(), steps_.end());
  for (UndoStep& step : steps_) {
    const auto other = others_.find(step.inode);
    if (step.inode != 0 && step.why_not.empty() && other != others_.end() &&
        other->second > step.sequence) {
      step.why_not =
          "operation " + std::to_string(other->second) + " changed it since";
    }
    const auto written = others_names_.find(step.path);
    if (step.kind == Kind::kRemove && written != others_names_.end() &&
        written->second > step.sequence) {
      step.why_not =
          "operation " + std::to_string(written->second) + " changed it since";
    }
  }
  return std::move(steps_);
}

std::string UndoStep::Text() const {
  const std::string name = Printable(path);
  const std::string bytes = std::to_string(length) + " bytes";
  switch (kind) {
    case Kind::kRemove:
      return "remove " + name;
    case Kind::kRemoveDir:
      return "remove directory " + name;
    case Kind::kRename:
      return "rename " + name + " to " + Printable(other);
    case Kind::kExchange:
      return "exchange " + name + " and " + Printable(other);
    case Kind::kMakeFile:
      return "make file " + name + ", " + bytes;
    case Kind::kMakeDir:
      return "make directory " + name;
    case Kind::kMakeLink:
      return "make link " + name + " to " + Printable(other);
    case Kind::kMakeNode:
      return "make node " + name;
    case Kind::kLinkAgain:
      return "make " + name + " a name of " + Printable(other);
    case Kind::kWriteBack:
      return "write back " + bytes + " at " + std::to_string(offset) + " of " +
             name;
    case Kind::kResize:
      return "resize " + name + " to " + bytes;
    case Kind::kMode:
      return "mode of " + name;
    case Kind::kOwner:
      return "owner of " + name;
    case Kind::kXattr:
      return "attribute " + Printable(other) + " of " + name;
    case Kind::kRemoveXattr:
      return "remove attribute " + Printable(other) + " of " + name;
  }
  return {};
}

// --- Doing it.

namespace {

// The directory of a path below `root`, and its last name.
UniqueFd DirectoryOf(int root, const std::string& path, std::string* name) {
  UniqueFd at(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  size_t begin = 0;
  for (size_t end; at && (end = path.find('/', begin)) != path.npos;
       begin = end + 1) {
    const std::string part = path.substr(begin, end - begin);
    if (!IsSafeName(part)) {
      errno = EINVAL;
      return {};
    }
    UniqueFd next(
        OpenBeneath(at.get(), part, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    at = std::move(next);
  }
  *name = path.substr(begin);
  if (at && !IsSafeName(*name)) {
    errno = EINVAL;
    return {};
  }
  return at;
}

bool CopyBack(int store, const UndoStep& step, int to) {
  std::vector<std::byte> bytes(size_t{256} << 10);
  for (uint64_t done = 0; done < step.length;) {
    const ssize_t n =
        ::pread(store, bytes.data(),
                std::min<uint64_t>(bytes.size(), step.length - done),
                static_cast<off_t>(step.stored + done));
    if (n <= 0) return false;
    for (ssize_t put = 0; put < n;) {
      const ssize_t k =
          ::pwrite(to, bytes.data() + put, static_cast<size_t>(n - put),
                   static_cast<off_t>(step.offset + done) + put);
      if (k <= 0) return false;
      put += k;
    }
    done += static_cast<uint64_t>(n);
  }
  return true;
}

// Attributes of what was made under that name.
bool Dress(int dir, const std::string& name, bool owners,
           const UndoStep& step) {
  if (owners && ::fchownat(dir, name.c_str(), step.uid, step.gid,
                           AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  if (!fd) return false;
  if (step.kind != Kind::kMakeLink &&
      ChmodFd(fd.get(), step.mode & 07777) != 0) {
    return false;
  }
  for (const auto& [key, value] : step.xattrs) {
    if (::setxattr(FdPath(fd.get()).c_str(), key.c_str(), value.data(),
                   value.size(), 0) != 0 &&
        errno != EOPNOTSUPP && errno != EPERM) {
      return false;
    }
  }
  return true;
}

bool DoMake(int store, int dir, const std::string& name, bool owners,
            const UndoStep& step) {
  switch (step.kind) {
    case Kind::kMakeDir:
      if (::mkdirat(dir, name.c_str(), 0700) != 0) return false;
      break;
    case Kind::kMakeLink:
      if (::symlinkat(step.other.c_str(), dir, name.c_str()) != 0) return false;
      break;
    case Kind::kMakeNode:
      if (::mknodat(dir, name.c_str(), (step.mode & S_IFMT) | 0600, 0) != 0) {
        return false;
      }
      break;
    default: {
      const UniqueFd fd(OpenBeneath(
          dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
      if (!fd || !CopyBack(store, step, fd.get())) return false;
      break;
    }
  }
  return Dress(dir, name, owners, step);
}

bool DoChange(int store, int dir, const std::string& name,
              const UndoStep& step) {
  const bool writes =
      step.kind == Kind::kWriteBack || step.kind == Kind::kResize;
  const UniqueFd fd(OpenBeneath(
      dir, name, (writes ? O_WRONLY | O_NONBLOCK : O_PATH) | O_NOFOLLOW));
  if (!fd) return false;
  switch (step.kind) {
    case Kind::kWriteBack:
      return CopyBack(store, step, fd.get());
    case Kind::kResize:
      return ::ftruncate(fd.get(), static_cast<off_t>(step.length)) == 0;
    case Kind::kMode:
      return ChmodFd(fd.get(), step.mode) == 0;
    case Kind::kXattr:
      return ::setxattr(FdPath(fd.get()).c_str(), step.other.c_str(),
                        step.value.data(), step.value.size(), 0) == 0;
    default:
      return ::removexattr(FdPath(fd.get()).c_str(), step.other.c_str()) == 0;
  }
}

bool DoIn(int root, int store, bool owners, const UndoStep& step) {
  std::string name;
  const UniqueFd dir = DirectoryOf(root, step.path, &name);
  if (!dir) return false;
  std::string other;
  UniqueFd other_dir;
  if (step.kind == Kind::kRename || step.kind == Kind::kExchange ||
      step.kind == Kind::kLinkAgain) {
    other_dir = DirectoryOf(root, step.other, &other);
    if (!other_dir) return false;
  }
  switch (step.kind) {
    case Kind::kRemove:
    case Kind::kRemoveDir:
      return ::unlinkat(dir.get(), name.c_str(),
                        step.kind == Kind::kRemoveDir ? AT_REMOVEDIR : 0) == 0;
    case Kind::kRename:
    case Kind::kExchange:
      return ::renameat2(dir.get(), name.c_str(), other_dir.get(),
                         other.c_str(),
                         step.kind == Kind::kRename ? RENAME_NOREPLACE
                                                    : RENAME_EXCHANGE) == 0;
    case Kind::kLinkAgain:
      return ::linkat(other_dir.get(), other.c_str(), dir.get(), name.c_str(),
                      0) == 0;
    case Kind::kOwner:
      return !owners || ::fchownat(dir.get(), name.c_str(), step.uid, step.gid,
                                   AT_SYMLINK_NOFOLLOW) == 0;
    case Kind::kMakeFile:
    case Kind::kMakeDir:
    case Kind::kMakeLink:
    case Kind::kMakeNode:
      return DoMake(store, dir.get(), name, owners, step);
    default:
      return DoChange(store, dir.get(), name, step);
  }
}

}  // namespace

Status DoUndoStep(int root, int store, bool owners, const UndoStep& step) {
  return DoIn(root, store, owners, step) ? Status()
                                         : Status::System(errno, step.Text());
}

}  // namespace tracefs::replay
