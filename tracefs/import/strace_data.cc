// StracePass: calls on open files and bytes, and on processes.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracefs/import/strace_pass.h"

namespace tracefs::import {

// kOther: close_range.
void StracePass::DoClose(uint32_t variant) {
  DescriptorArgument given;
  if (!ok() || !DecodeDescriptor(arg(0), &given)) return;
  if (variant != kOther) return Detach(given.number);
  constexpr uint64_t kCloseOnExec = 4;
  const auto last = static_cast<uint64_t>(DecodeNumber(arg(1)).value_or(0));
  auto& slots = thread_->descriptors->slots;
  auto at = slots.lower_bound(given.number);
  while (at != slots.end() && static_cast<uint64_t>(at->first) <= last) {
    if (arg(2) == "CLOSE_RANGE_CLOEXEC" || Unsigned(2) == kCloseOnExec) {
      (at++)->second.close_on_exec = true;
    } else {
      OpenFilePtr file = std::move(at->second.file);
      at = slots.erase(at);
      Close(std::move(file));
    }
  }
}

void StracePass::DoDup(uint32_t variant) {
  if (!ok()) return;
  const OpenFilePtr file = FileAt(0);
  DescriptorArgument made;
  if (!DecodeDescriptor(call_.result, &made) || made.number < 0) return;
  DescriptorArgument from;
  if (DecodeDescriptor(arg(0), &from) && from.number == made.number) return;
  if (file == nullptr) return Detach(made.number);
  Attach(made.number, file,
         variant == kFlags && (DecodeFlags(arg(2)) & O_CLOEXEC) != 0);
}

void StracePass::DoFcntl(uint32_t /*variant*/) {
  const std::string_view what = arg(1);
  if (what == "F_DUPFD" || what == "F_DUPFD_CLOEXEC") {
    DescriptorArgument made;
    if (!ok() || !DecodeDescriptor(call_.result, &made)) return;
    const OpenFilePtr file = FileAt(0);
    if (file == nullptr) return Detach(made.number);
    return Attach(made.number, file, what == "F_DUPFD_CLOEXEC");
  }
  if (what == "F_SETFD") {
    DescriptorArgument given;
    if (!ok() || !DecodeDescriptor(arg(0), &given)) return;
    const auto at = thread_->descriptors->slots.find(given.number);
    if (at != thread_->descriptors->slots.end()) {
      at->second.close_on_exec = (DecodeFlags(arg(2)) & FD_CLOEXEC) != 0;
    }
    return;
  }
  if (what == "F_SETFL") {
    const OpenFilePtr file = ok() ? FileAt(0) : nullptr;
    constexpr uint32_t kMay = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;
    if (file != nullptr) {
      file->flags = (file->flags & ~kMay) |
                    (static_cast<uint32_t>(DecodeFlags(arg(2))) & kMay);
    }
    return;
  }
  const bool ask = what == "F_GETLK" || what == "F_OFD_GETLK";
  const bool waits = what == "F_SETLKW" || what == "F_OFD_SETLKW";
  const bool of_file = what.starts_with("F_OFD_");
  if (!ask && !waits && what != "F_SETLK" && what != "F_OFD_SETLK") return;
  if (!ok() && IsKernels()) return;
  const OpenFilePtr file = FileAt(0);
  const std::string_view lock = arg(2);
  if (file == nullptr || !lock.starts_with('{')) return;
  const std::string_view type = Member(lock, "l_type");
  auto start = DecodeNumber(Member(lock, "l_start")).value_or(0);
  const auto length = DecodeNumber(Member(lock, "l_len")).value_or(0);
  const std::string_view from = Member(lock, "l_whence");
  if (from == "SEEK_CUR") start += static_cast<int64_t>(file->offset);
  if (from == "SEEK_END") {
    start += static_cast<int64_t>(tree_.node(file->node).size);
  }
  Event event = Make(ask ? Op::getlk_ : Op::setlk_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kOffset, static_cast<uint64_t>(start));
  event.Set(Field::kLength, static_cast<uint64_t>(length));
  event.Set(Field::kLockType, type == "F_RDLCK"   ? F_RDLCK
                              : type == "F_WRLCK" ? F_WRLCK
                                                  : F_UNLCK);
  event.Set(Field::kLockOwner, of_file ? file->fh << 32 : thread_->caller.pid);
  event.Set(Field::kLockPid, thread_->caller.pid);
  event.Set(Field::kFlags, waits ? 1 : 0);
  if (ok()) event.SetResult(0, 0);
  Emit(&event);
}

void StracePass::DoFlock(uint32_t /*variant*/) {
  if (!ok() && IsKernels()) return;
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  const std::string_view how = arg(1);
  Event event = Make(Op::flock_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kOffset, 0);
  event.Set(Field::kLength, 0);
  event.Set(Field::kLockType, how.find("LOCK_EX") != how.npos   ? F_WRLCK
                              : how.find("LOCK_SH") != how.npos ? F_RDLCK
                                                                : F_UNLCK);
  event.Set(Field::kLockOwner, file->fh << 32);
  event.Set(Field::kLockPid, thread_->caller.pid);
  event.Set(Field::kFlags, how.find("LOCK_NB") == how.npos ? 1 : 0);
  Emit(&event);
}

// Whether all of the bytes of argument `i`, but at most `most`, are told: they
// are then in data_. `vector`: the argument is that of readv and writev.
bool StracePass::TakeData(size_t i, bool vector, uint64_t most) {
  data_.clear();
  bool cut = false;
  if (!vector) {
    if (!DecodeString(arg(i), &data_, &cut)) return false;
  } else {
    std::string part;
    for (const std::string_view element : Elements(arg(i))) {
      bool part_cut = false;
      if (!DecodeString(Member(element, "iov_base"), &part, &part_cut)) {
        return false;
      }
      data_ += part;
      cut |= part_cut;
      if (cut) break;
    }
  }
  if (data_.size() > most) {
    data_.resize(most);
    return true;
  }
  return !cut && data_.size() == most;
}

void StracePass::DoTransfer(uint32_t variant) {
  const bool writes = (variant & kWrites) != 0;
  const bool vector = (variant & kVector) != 0;
  if (!ok() && IsKernels()) return;
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  if (file->is_dir) return LeaveOut("reads of directories");
  uint64_t length = Unsigned(2);
  if (vector) {
    length = 0;
    for (const std::string_view element : Elements(arg(1))) {
      length += static_cast<uint64_t>(
          DecodeNumber(Member(element, "iov_len")).value_or(0));
    }
  }
  int64_t given = -1;
  if ((variant & kPlaced) != 0) given = DecodeNumber(arg(3)).value_or(-1);
  const bool own = given < 0;  // preadv2 may say -1
  uint64_t offset = own ? file->offset : static_cast<uint64_t>(given);
  replay::Node& node = tree_.node(file->node);
  if (writes && (file->flags & O_APPEND) != 0) {
    offset = node.size;
    const auto found = found_->find(node.inode);
    if (node.initial && !node.written && !first() &&
        (found == found_->end() || !found->second.size)) {
      Guess("where a file ends that is appended to");
    }
  }
  const uint64_t done = ok() ? static_cast<uint64_t>(result_) : 0;
  const bool has_data =
      (ok() || writes) && TakeData(1, vector, ok() ? done : length);
  // A short read shows where the file ended.
  const bool was_there = node.initial || maybe_new_.contains(node.inode);
  if (first() && was_there && !writes && done != 0 && done < length &&
      !node.written) {
    FoundBefore& before = (*found_)[node.inode];
    if (!before.size) before.size = offset + done;
  }
  Moved(writes ? Op::write_ : Op::read_, file, offset, length, AsBytes(data_),
        has_data);
  if (ok() && own) file->offset = offset + done;
}

void StracePass::Moved(Op op, const OpenFilePtr& file, uint64_t offset,
                       uint64_t length, ByteSpan data, bool has_data) {
  replay::Node& node = tree_.node(file->node);
  const uint64_t done = ok() ? static_cast<uint64_t>(result_) : 0;
  if (op == Op::read_ && done != 0 && !node.written && first() &&
      (node.initial || maybe_new_.contains(node.inode))) {
    FoundBefore& before = (*found_)[node.inode];
    before.existed |= !node.initial;
    before.least_size = std::max(before.least_size, offset + done);
  }
  Event event = Make(op);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kFlags, file->flags);
  event.Set(Field::kOffset, offset);
  event.Set(Field::kLength, length);
  if (has_data) {
    // An empty one is there, too.
    event.data = data.data() == nullptr ? AsBytes(std::string_view("")) : data;
  }
  Emit(&event);
  if (op == Op::write_ && ok()) {
    Changed(file->node);
    node.size = std::max(node.size, offset + done);
  }
}

void StracePass::DoSeek(uint32_t /*variant*/) {
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  const std::string_view whence = arg(2);
  if (ok()) file->offset = static_cast<uint64_t>(result_);
  // The kernel settles the others by itself.
  const bool data = whence == "SEEK_DATA";
  if (!data && whence != "SEEK_HOLE") return;
  if (!ok() && error_ != ENXIO) return;
  Event event = Make(Op::lseek_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kOffset, Unsigned(1));
  event.Set(Field::kFlags, data ? SEEK_DATA : SEEK_HOLE);
  Emit(&event);
}

// kOther: sendfile, and not copy_file_range.
void StracePass::DoCopy(uint32_t variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("copies that were refused");
    return;
  }
  const bool range = variant != kOther;
  const OpenFilePtr from = FileAt(range ? 0 : 1);
  const OpenFilePtr to = FileAt(range ? 2 : 0);
  // "[10] => [20]"
  const auto offset_at = [this](size_t i, const OpenFilePtr& file) {
    const std::vector<std::string_view> given = Elements(arg(i));
    if (given.empty() || file == nullptr) {
      return file == nullptr ? 0 : file->offset;
    }
    return static_cast<uint64_t>(DecodeNumber(given[0]).value_or(0));
  };
  const auto done = static_cast<uint64_t>(result_);
  const size_t from_at = range ? 1 : 2;
  const uint64_t offset = offset_at(from_at, from);
  const uint64_t offset_out = range           ? offset_at(3, to)
                              : to == nullptr ? 0
                                              : to->offset;
  if (done == 0) return;  // the end: no file system is asked
  if (range && from != nullptr && to != nullptr) {
    Event event = Make(Op::copy_file_range_);
    About(from->node, &event);
    event.Set(Field::kFh, from->fh);
    event.new_parent = tree_.InodeOf(to->node);
    event.Set(Field::kFhOut, to->fh);
    event.Set(Field::kInodeOut, event.new_parent);
    event.Set(Field::kOffset, offset);
    event.Set(Field::kOffsetOut, offset_out);
    // What is beyond the end of the file is not asked for.
    event.Set(Field::kLength, done);
    event.Set(Field::kFlags, 0);
    Emit(&event);
    Changed(to->node);
    tree_.node(to->node).size =
        std::max(tree_.node(to->node).size, offset_out + done);
  } else {
    if (from != nullptr) Moved(Op::read_, from, offset, done, {}, false);
    if (to != nullptr) Moved(Op::write_, to, offset_out, done, {}, false);
  }
  if (from != nullptr && Elements(arg(from_at)).empty()) {
    from->offset = offset + done;
  }
  if (to != nullptr && (!range || Elements(arg(3)).empty())) {
    to->offset = offset_out + done;
  }
}

void StracePass::DoFallocate(uint32_t /*variant*/) {
  if (!ok() && IsKernels()) return;
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  const uint64_t mode = DecodeFlags(arg(1));
  Event event = Make(Op::fallocate_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kFlags, mode);
  event.Set(Field::kOffset, Unsigned(2));
  event.Set(Field::kLength, Unsigned(3));
  Emit(&event);
  if (!ok()) return;
  Changed(file->node);
  replay::Node& node = tree_.node(file->node);
  if (mode == 0) node.size = std::max(node.size, Unsigned(2) + Unsigned(3));
}

// kOther: fdatasync.
void StracePass::DoSync(uint32_t variant) {
  if (!ok() && IsKernels()) return;
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  Event event = Make(file->is_dir ? Op::fsyncdir_ : Op::fsync_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kFlags, variant == kOther ? 1 : 0);
  Emit(&event);
}

void StracePass::DoList(uint32_t /*variant*/) {
  if (!ok()) return;
  const OpenFilePtr file = FileAt(0);
  if (file == nullptr) return;
  if (!file->is_dir) {
    return LeaveOut("listings of directories that were opened as files");
  }
  Event event = Make(Op::readdir_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kOffset, file->offset);
  event.Set(Field::kLength, Unsigned(2));
  Emit(&event);
  file->offset += static_cast<uint64_t>(result_);
}

void StracePass::DoMap(uint32_t /*variant*/) {
  DescriptorArgument given;
  if (!ok() || !DecodeDescriptor(arg(4), &given) || given.number < 0) return;
  if (given.has_path && !tree_.Below(given.path)) return;
  LeaveOut("mmap: what was read and written through memory");
}

void StracePass::DoFolder(uint32_t variant) {
  if (!ok()) return;
  if (variant == kFd) {
    DescriptorArgument given;
    if (DecodeDescriptor(arg(0), &given) && given.has_path) {
      thread_->surroundings->folder = given.path;
    }
    return;
  }
  const std::string path = PathOf(0, -1);
  if (!path.empty()) thread_->surroundings->folder = Normal(path);
}

void StracePass::DoUmask(uint32_t /*variant*/) {
  thread_->surroundings->umask = static_cast<uint32_t>(Unsigned(0)) & 0777;
}

void StracePass::DoClone(uint32_t /*variant*/) {
  if (!ok() || result_ <= 0 || result_ > UINT32_MAX) return;
  Child(*thread_, static_cast<uint32_t>(result_), CloneFlagsOf(call_));
}

void StracePass::DoExec(uint32_t variant) {
  if (!ok()) return;
  std::string path;
  bool cut = false;
  if (DecodeString(arg(variant == kAt ? 1 : 0), &path, &cut)) {
    const std::string name = path.substr(path.rfind('/') + 1);
    CallerInfo& caller = thread_->caller;
    constexpr size_t kCommBytes = 15;  // as the kernel cuts it
    caller.comm_size = static_cast<uint8_t>(std::min(name.size(), kCommBytes));
    std::copy_n(name.begin(), caller.comm_size, caller.comm_bytes.begin());
    caller.serial = next_serial_++;
  }
  // No other process has them any more.
  if (thread_->descriptors.use_count() != 1) {
    thread_->descriptors = std::make_shared<Descriptors>(*thread_->descriptors);
  }
  auto& slots = thread_->descriptors->slots;
  for (auto at = slots.begin(); at != slots.end();) {
    if (!at->second.close_on_exec) {
      ++at;
      continue;
    }
    OpenFilePtr file = std::move(at->second.file);
    at = slots.erase(at);
    Close(std::move(file));
  }
}

void StracePass::DoNothing(uint32_t /*variant*/) {}

}  // namespace tracefs::import
