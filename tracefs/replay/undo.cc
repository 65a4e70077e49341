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

#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/event/op_set.h"
#include "tracefs/replay/acl.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;

constexpr size_t kMostSteps = 4'000'000;
constexpr size_t kMostXattrBytes = 65536;
constexpr uint32_t kSetId = S_ISUID | S_ISGID;
constexpr char kCapability[] = "security.capability";

// Whether what the file holds, or its attributes, become others. Times do not
// count: they do not come back.
bool Changes(const Action& a) {
  if (a.op == Op::setattr_) {
    return (a.valid & (FATTR_SIZE | FATTR_MODE | FATTR_UID | FATTR_GID)) != 0;
  }
  if (a.op == Op::open_) return (a.arg_flags & O_TRUNC) != 0;
  if (a.op == Op::write_ || a.op == Op::copy_file_range_) return a.result > 0;
  return IsAmong<38, Op::setxattr_, Op::removexattr_, Op::fallocate_>(a.op);
}

// Whether a file loses its capabilities by that: writing does it, and a new
// owner.
bool EndsCapability(const Action& a) {
  if (ChangesXattrs(a.op)) return false;
  constexpr uint32_t kEnding = FATTR_SIZE | FATTR_UID | FATTR_GID;
  return a.op != Op::setattr_ || (a.valid & kEnding) != 0;
}

// Whether the store notes a time of it with a file (st_ctim). What was counted
// here and did not change the file would hide what others did to it before.
bool IsNotedBelow(const Action& a) {
  if (a.op == Op::open_) return a.error == 0 && Changes(a);
  // Of what failed, what the store had begun to do.
  const bool begun = a.error == ENOSPC || a.error == EDQUOT || a.error == EIO;
  if (a.error != 0) return begun;
  if (a.op == Op::write_ || a.op == Op::copy_file_range_) return Changes(a);
  return ChangesFiles(a.op) || ChangesNames(a.op);
}

uint64_t ChangedFile(const Action& a) {
  return a.op == Op::copy_file_range_ ? a.file_out : a.file;
}

void ReadXattrs(int fd, UndoStep* step) {
  std::array<char, kMostXattrBytes> names;
  const std::string path = FdPath(fd);
  const ssize_t n = ::listxattr(path.c_str(), names.data(), names.size());
  std::string value(kMostXattrBytes, '\0');
  for (const char* name = names.data(); n > 0 && name < names.data() + n;
       name += std::string_view(name).size() + 1) {
    const ssize_t size = AsOwner(fd, [&] {
      return ::getxattr(path.c_str(), name, value.data(), value.size());
    });
    if (size >= 0) {
      step->xattrs.emplace_back(name,
                                value.substr(0, static_cast<size_t>(size)));
    }
  }
}

bool IsDevice(uint32_t mode) { return S_ISCHR(mode) || S_ISBLK(mode); }

}  // namespace

// What an action changes, as it is before.
struct UndoRecorder::File {
  int fd = -1;
  UniqueFd owned;
  struct stat st {};
  uint64_t number = kNoFile;
};

uint64_t UndoRecorder::DirOf(uint32_t slot) const {
  const auto at = dirs_.find(slot);
  return at == dirs_.end() ? kNoFile : at->second;
}

void UndoRecorder::Place(const TreeEntry& entry) {
  if (entry.slot != kNoSlot) dirs_[entry.slot] = entry.file;
  if (IsDevice(entry.mode)) devices_.insert(entry.file);
  record_.names.Add({DirOf(entry.parent), entry.name}, entry.file, 0);
}

UndoRecorder::File UndoRecorder::Open(const Action& a) const {
  File file;
  file.number = ChangedFile(a);
  if (a.place == Place::kName) {
    file.owned.Reset(
        OpenBeneath(scratch_.DirFd(a.dir), a.name, O_PATH | O_NOFOLLOW));
    file.fd = file.owned.get();
  } else if (a.place == Place::kDir) {
    file.fd = scratch_.DirFd(a.dir);
  } else {
    // Opening gives `handle`; what it is opened through is the other one.
    const bool other = a.op == Op::copy_file_range_ || a.op == Op::open_;
    file.fd = scratch_.HandleFd(other ? a.handle_out : a.handle);
  }
  if (file.fd >= 0 && ::fstatat(file.fd, "", &file.st, AT_EMPTY_PATH) != 0) {
    file.fd = -1;
  }
  return file;
}

UndoStep& UndoRecorder::Add(const Action& action, Kind kind, uint64_t file) {
  std::vector<UndoGroup>& groups = record_.groups;
  if (groups.empty() || groups.back().sequence != action.sequence) {
    groups.emplace_back().sequence = action.sequence;
  }
  ++steps_;
  UndoStep& step = groups.back().steps.emplace_back();
  step.kind = kind;
  step.file = file;
  (void)record_.names.PathOf(file, &step.path);
  return step;
}

UndoStep& UndoRecorder::AddName(const Action& action, Kind kind, uint64_t file,
                                uint32_t dir_slot, std::string_view name) {
  UndoStep& step = Add(action, kind, file);
  step.dir = DirOf(dir_slot);
  step.name = name;
  if (!record_.names.PathOf({step.dir, step.name}, &step.path)) {
    Refuse("its directory is not known");
  }
  return step;
}

// The group at hand cannot be done.
void UndoRecorder::Refuse(const std::string& why) {
  std::string& why_not = record_.groups.back().why_not;
  if (why_not.empty()) why_not = why;
}

Status UndoRecorder::Store(int fd, uint64_t begin, uint64_t end,
                           UndoStep* step) {
  return KeepPieces(fd, begin, end, store_, max_bytes_, &stored_, step);
}

// Neither the trace nor what was kept has it.
void UndoRecorder::RefuseUnknown(const Action& a, const char* what) {
  Refuse(a.not_kept == 0
             ? std::string(what)
             : Status::System(static_cast<int>(a.not_kept),
                              std::string(what) + ", and it could not be kept")
                   .message());
}

// What was kept of the bytes [begin, end) that the file had. It is looked at
// here, and copied: nobody can change it any more before it is used.
Status UndoRecorder::StoreKept(const Action& a, uint64_t begin, uint64_t end,
                               UndoStep* step) {
  if (begin >= end) return {};
  if (a.kept == 0 || begin < a.kept_offset ||
      end > a.kept_offset + a.kept_length) {
    Refuse("what was kept of it is not what was destroyed");
    return {};
  }
  const Result<int> fd =
      kept_.Open({.object = a.kept,
                  .at = a.kept_at,
                  .length = a.kept_length,
                  .is_copy = a.Has(kKeptCopy),
                  .checksum = static_cast<uint32_t>(a.kept_check),
                  .changed_ns = a.Has(kKeptCopy) ? 0 : a.kept_check});
  if (!fd.ok()) {
    Refuse(fd.status().message());
    return {};
  }
  const uint64_t at = a.kept_at + (begin - a.kept_offset);
  const size_t first = step->pieces.size();
  if (Status s = Store(*fd, at, at + (end - begin), step); !s.ok()) return s;
  for (size_t i = first; i < step->pieces.size(); ++i) {
    step->pieces[i].offset = step->pieces[i].offset - at + begin;
  }
  return {};
}

void UndoRecorder::NoteOthers(const Action& a) {
  if (Changes(a)) record_.others[ChangedFile(a)] = a.sequence;
}

void UndoRecorder::NoteTime(const Action& a) {
  if (a.sequence == 0 || !IsNotedBelow(a)) return;
  // What is copied is only read.
  const uint64_t first = a.op == Op::copy_file_range_ ? kNoFile : a.file;
  for (const uint64_t file : {first, a.file_out}) {
    if (file == kNoFile) continue;
    uint64_t& last = record_.touched[file];
    last = std::max(last, a.begin_ns + a.duration_ns);
    uint64_t& from = record_.touched_from[file];
    from = std::max(from, a.begin_ns);
  }
}

void UndoRecorder::NoteUntoldNames(const Action& a) {
  if (!a.Has(kHasStat) || !a.Has(kUnknownNames)) return;
  const uint64_t told = record_.names.CountOf(a.file);
  record_.untold_names[a.file] =
      a.stat_nlink - std::min<uint64_t>(a.stat_nlink, told);
}

Status UndoRecorder::Before(const Action& a) {
  NoteTime(a);
  if (a.op == Op::setattr_ && (a.valid & FATTR_MTIME) != 0 &&
      (a.valid & FATTR_MTIME_NOW) == 0) {
    record_.dated.insert(a.file);
  }
  if (a.error != 0) return {};
  if (a.sequence == 0) {
    Follow(a);  // made up by the plan
    return {};
  }
  NoteUntoldNames(a);
  if (!a.Has(kMarked)) {
    NoteOthers(a);
  } else if (steps_ >= kMostSteps) {
    return Status::Invalid("undo: more than " + std::to_string(kMostSteps) +
                           " steps; select less");
  } else if (Status s = Undo(a); !s.ok()) {
    return s;
  }
  Follow(a);
  return {};
}

// Which names there are after it.
void UndoRecorder::Follow(const Action& a) {
  UndoNames& names = record_.names;
  const UndoNames::Name name(DirOf(a.dir), a.name);
  switch (a.op) {
    case Op::mkdir_:
      if (a.made_dir != kNoSlot) dirs_[a.made_dir] = a.file;
      return names.Add(name, a.file, a.sequence);
    case Op::mknod_:
      if (IsDevice(a.mode)) devices_.insert(a.file);
      return names.Add(name, a.file, a.sequence);
    case Op::create_:
    case Op::symlink_:
      return names.Add(name, a.file, a.sequence);
    case Op::unlink_:
    case Op::rmdir_:
      return names.Remove(name);
    case Op::link_:
      return names.Add({DirOf(a.new_dir), std::string(a.new_name)}, a.file,
                       a.sequence);
    case Op::rename_: {
      // Two names of one file: rename(2) does nothing.
      if (a.file == a.file_out) return;
      names.Remove(name);
      names.Add({DirOf(a.new_dir), std::string(a.new_name)}, a.file,
                a.sequence);
      if ((a.arg_flags & RENAME_EXCHANGE) != 0) {
        names.Add(name, a.file_out, a.sequence);
      }
      return;
    }
    case Op::lookup_:
    case Op::getattr_:
    case Op::setattr_:
    case Op::readlink_:
    case Op::open_:
    case Op::tmpfile_:
    case Op::read_:
    case Op::write_:
    case Op::flush_:
    case Op::release_:
    case Op::fsync_:
    case Op::opendir_:
    case Op::readdir_:
    case Op::releasedir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::fallocate_:
    case Op::lseek_:
    case Op::copy_file_range_:
    case Op::ioctl_:
    case Op::poll_:
    case Op::statx_:
      return;
  }
}

Status UndoRecorder::Undo(const Action& a) {
  switch (a.op) {
    case Op::mkdir_:
      record_.made.insert(a.file);
      AddName(a, Kind::kRemoveDir, a.file, a.dir, a.name);
      return {};
    case Op::create_:
    case Op::mknod_:
    case Op::symlink_:
      record_.made.insert(a.file);
      AddName(a, Kind::kRemove, a.file, a.dir, a.name);
      return {};
    case Op::tmpfile_:
      record_.made.insert(a.file);
      return {};
    case Op::link_:
      AddName(a, Kind::kRemove, a.file, a.new_dir, a.new_name);
      return {};
    case Op::unlink_:
    case Op::rmdir_:
      return KeepGone(a, a.file, a.dir, a.name);
    case Op::rename_:
      return UndoRename(a);
    case Op::lookup_:
    case Op::getattr_:
    case Op::setattr_:
    case Op::readlink_:
    case Op::open_:
    case Op::read_:
    case Op::write_:
    case Op::flush_:
    case Op::release_:
    case Op::fsync_:
    case Op::opendir_:
    case Op::readdir_:
    case Op::releasedir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::fallocate_:
    case Op::lseek_:
    case Op::copy_file_range_:
    case Op::ioctl_:
    case Op::poll_:
    case Op::statx_:
      break;
  }
  return UndoChange(a);
}

Status UndoRecorder::UndoRename(const Action& a) {
  if (a.file == a.file_out) return {};
  const bool exchange = (a.arg_flags & RENAME_EXCHANGE) != 0;
  UndoStep& step = AddName(a, exchange ? Kind::kExchange : Kind::kRename,
                           a.file, a.new_dir, a.new_name);
  step.other_dir = DirOf(a.dir);
  step.other_name = a.name;
  step.other_file = a.file_out;
  step.given_by = record_.names.GivenBy({step.other_dir, step.other_name});
  step.other_given_by = record_.names.GivenBy({step.dir, step.name});
  (void)record_.names.PathOf({step.other_dir, step.other_name}, &step.other);
  // First the name is free again, and then what had it comes back.
  if (exchange || a.file_out == kNoFile) return {};
  return KeepGone(a, a.file_out, a.new_dir, a.new_name);
}

Status UndoRecorder::UndoChange(const Action& a) {
  if (!Changes(a)) return {};
  const uint64_t number = ChangedFile(a);
  // What is made by an operation to be undone is removed in the end; where it
  // has no name, its removal gives all of it back.
  if (record_.made.contains(number) || !record_.names.IsThere(number)) {
    return {};
  }
  const File file = Open(a);
  if (file.fd < 0) {
    Add(a, Kind::kContents, number);
    Refuse("the trace does not say what it was");
    return {};
  }
  const auto size = static_cast<uint64_t>(file.st.st_size);
  const auto moved = static_cast<uint64_t>(a.result);
  Status kept;
  if (a.op == Op::open_) {
    kept = KeepBytes(a, file, 0, size);
  } else if (a.op == Op::write_) {
    kept = KeepBytes(a, file, a.offset, a.offset + moved);
  } else if (a.op == Op::copy_file_range_) {
    kept = KeepBytes(a, file, a.offset_out, a.offset_out + moved);
  } else if (a.op == Op::fallocate_) {
    kept =
        a.Has(kUnknownBytes) && a.Has(kWasKept)
            ? KeepBytes(a, file, a.kept_offset, a.kept_offset + a.kept_length)
            : KeepBytes(a, file, 0, UINT64_MAX);
  } else if (a.op == Op::setattr_) {
    kept = KeepAttributes(a, file);
  } else {
    KeepXattr(a, file);
  }
  if (kept.ok() && EndsCapability(a)) KeepCapability(a, file);
  return kept;
}

Status UndoRecorder::KeepGone(const Action& a, uint64_t number,
                              uint32_t dir_slot, std::string_view name) {
  const int dir = scratch_.DirFd(dir_slot);
  UndoStep& step = AddName(a, Kind::kMakeFile, number, dir_slot, name);
  step.given_by = record_.names.GivenBy({step.dir, step.name});
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  struct stat st;
  if (!fd || ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) {
    Refuse("the trace does not say what it was");
    return {};
  }
  if (a.Has(kUnknownNames)) Refuse("it has names that the trace does not tell");
  if (record_.names.CountOf(number) > 1) {
    step.kind = Kind::kLinkAgain;
    return {};
  }
  step.mode = st.st_mode & 07777;
  step.uid = st.st_uid;
  step.gid = st.st_gid;
  // Beside an ACL these are its mask. Nobody minds what all others may do, too.
  if (a.Has(kUnknownAcl) && (st.st_mode >> 3 & ~st.st_mode & 07) != 0) {
    Refuse(
        "what its group may do may be said by an ACL, which is not in the "
        "trace");
  }
  ReadXattrs(fd.get(), &step);
  step.is_passing = S_ISREG(st.st_mode) && record_.made.contains(number) &&
                    !record_.others.contains(number);
  if (a.Has(kUnknownBytes) && !a.Has(kWasKept) && !step.is_passing) {
    RefuseUnknown(a, "what it held is not in the trace");
  }
  step.has_mtime = a.Has(kHasMtime);
  step.mtime_ns = a.kept_mtime_ns;
  if (devices_.contains(number) && !step.is_passing) {
    Refuse("device nodes are not made");
  }
  if (S_ISDIR(st.st_mode)) {
    step.kind = Kind::kMakeDir;
  } else if (S_ISLNK(st.st_mode)) {
    step.kind = Kind::kMakeLink;
    std::array<char, 4096> target;
    const ssize_t n = ::readlinkat(fd.get(), "", target.data(), target.size());
    if (n > 0) step.other.assign(target.data(), static_cast<size_t>(n));
  } else if (S_ISREG(st.st_mode)) {
    step.length = step.size = static_cast<uint64_t>(st.st_size);
    if (!step.is_passing && a.Has(kUnknownBytes) && a.Has(kWasKept)) {
      step.length = step.size = a.kept_length;
      return StoreKept(a, 0, step.length, &step);
    }
    if (step.is_passing || a.Has(kUnknownBytes)) return {};
    const UniqueFd file(OpenAsOwner(fd.get(), O_RDONLY));
    if (!file) return Status::System(errno, "undo: " + Printable(step.path));
    return Store(file.get(), 0, step.length, &step);
  } else {
    step.kind = Kind::kMakeNode;
    step.mode = st.st_mode;
  }
  return {};
}

Status UndoRecorder::KeepBytes(const Action& a, const File& file,
                               uint64_t begin, uint64_t end) {
  const auto size = static_cast<uint64_t>(file.st.st_size);
  UndoStep& step = Add(a, Kind::kContents, file.number);
  step.offset = std::min(begin, size);
  step.length = std::min(end, size) - step.offset;
  step.size = size;
  step.has_mtime = a.Has(kHasMtime);
  step.mtime_ns = a.kept_mtime_ns;
  if (a.Has(kUnknownBytes) && a.Has(kWasKept)) {
    if (Status s = StoreKept(a, step.offset, step.offset + step.length, &step);
        !s.ok()) {
      return s;
    }
  } else if (a.Has(kUnknownBytes)) {
    RefuseUnknown(a, "the bytes that it had are not in the trace");
  } else if (step.length != 0) {
    const UniqueFd opened(OpenAsOwner(file.fd, O_RDONLY));
    if (!opened) return Status::System(errno, "undo: " + Printable(step.path));
    if (Status s =
            Store(opened.get(), step.offset, step.offset + step.length, &step);
        !s.ok()) {
      return s;
    }
  }
  // A write may have cleared them.
  if ((file.st.st_mode & kSetId) != 0) {
    Add(a, Kind::kMode, file.number).mode = file.st.st_mode & 07777;
  }
  return {};
}

Status UndoRecorder::KeepAttributes(const Action& a, const File& file) {
  if ((a.valid & FATTR_SIZE) != 0) {
    const auto size = static_cast<uint64_t>(file.st.st_size);
    if (Status s = KeepBytes(a, file, a.new_size, size); !s.ok()) return s;
  }
  const bool owner = (a.valid & (FATTR_UID | FATTR_GID)) != 0;
  if (owner) {
    UndoStep& step = Add(a, Kind::kOwner, file.number);
    step.uid = file.st.st_uid;
    step.gid = file.st.st_gid;
  }
  // A new owner ends set-id bits.
  if ((a.valid & FATTR_MODE) != 0 || (owner && !S_ISLNK(file.st.st_mode))) {
    Add(a, Kind::kMode, file.number).mode = file.st.st_mode & 07777;
  }
  if (a.Has(kUnknownBytes) && !a.Has(kWasKept)) {
    RefuseUnknown(a, "what it had is not in the trace");
  }
  return {};
}

// What a program may do is kept like its set-id bits.
void UndoRecorder::KeepCapability(const Action& a, const File& file) {
  std::array<char, 64> value;
  const ssize_t n = ::getxattr(FdPath(file.fd).c_str(), kCapability,
                               value.data(), value.size());
  if (n < 0) return;
  UndoStep& step = Add(a, Kind::kXattr, file.number);
  step.other = kCapability;
  step.value.assign(value.data(), static_cast<size_t>(n));
}

void UndoRecorder::KeepXattr(const Action& a, const File& file) {
  const std::string name(a.text);
  std::string value(kMostXattrBytes, '\0');
  const ssize_t n = AsOwner(file.fd, [&] {
    return ::getxattr(FdPath(file.fd).c_str(), name.c_str(), value.data(),
                      value.size());
  });
  const bool was_there = n >= 0;
  const bool is_known = was_there || errno == ENODATA;
  UndoStep& step =
      Add(a, was_there ? Kind::kXattr : Kind::kRemoveXattr, file.number);
  step.other = name;
  if (was_there) step.value = value.substr(0, static_cast<size_t>(n));
  if (a.Has(kUnknownBytes) || !is_known) {
    Refuse("the value that it had is not in the trace");
  }
  // Without the ACL, or with another one, its mask is what the group may do.
  if (name == kAccessAcl) {
    Add(a, Kind::kMode, file.number).mode = file.st.st_mode & 07777;
  }
}

}  // namespace tracefs::replay
