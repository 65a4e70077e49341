#include "tracefs/import/strace_pass.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"

namespace tracefs::import {
namespace {

bool MakesChild(std::string_view name) {
  return name == "clone" || name == "clone3" || name == "fork" ||
         name == "vfork";
}

}  // namespace

StracePass::StracePass(std::string_view top, std::string_view folder,
                       Foundling* found, TraceOutput* out, ImportCounts* counts)
    : tree_(top), folder_(folder), found_(found), out_(out), counts_(counts) {}

// --- Lines.

TracedThread* StracePass::ThreadOf(uint32_t tid) {
  if (tid == 0) tid = 1;  // strace without -f does not say
  const auto known = threads_.find(tid);
  if (known != threads_.end()) return &known->second;
  if (threads_.size() >= kMostThreads) return nullptr;
  // Whoever is about to have a child, and has not said its number, has this
  // one.
  TracedThread* parent = nullptr;
  for (auto& [number, other] : threads_) {
    if (other.awaits_child &&
        (parent == nullptr || other.pending_ns < parent->pending_ns)) {
      parent = &other;
    }
  }
  if (parent != nullptr) {
    parent->awaits_child = false;
    StraceCall call;
    ParseStraceArguments(parent->pending_text, &call);
    Child(*parent, tid, CloneFlagsOf(call));
    return &threads_.at(tid);
  }
  TracedThread& made = threads_[tid];
  made.caller.tid = made.caller.pid = tid;
  made.caller.serial = next_serial_++;
  made.descriptors = std::make_shared<Descriptors>();
  made.surroundings = std::make_shared<Surroundings>();
  made.surroundings->folder = folder_;
  return &made;
}

void StracePass::Child(TracedThread& parent, uint32_t tid, uint64_t flags) {
  if (threads_.contains(tid) || threads_.size() >= kMostThreads) return;
  TracedThread child;
  child.caller = parent.caller;
  child.caller.tid = tid;
  if ((flags & CLONE_THREAD) == 0) {
    child.caller.ppid = parent.caller.pid;
    child.caller.pid = tid;
    child.caller.serial = next_serial_++;
  }
  child.descriptors = (flags & CLONE_FILES) != 0
                          ? parent.descriptors
                          : Inherited(*parent.descriptors);
  child.surroundings =
      (flags & CLONE_FS) != 0
          ? parent.surroundings
          : std::make_shared<Surroundings>(*parent.surroundings);
  threads_.emplace(tid, std::move(child));
}

std::shared_ptr<Descriptors> StracePass::Inherited(const Descriptors& parents) {
  const size_t count = parents.slots.size();
  if (count > kMostInherited - inherited_) {
    LeaveOut("descriptors that a child inherited: more than " +
             std::to_string(kMostInherited) + " at once");
    return std::make_shared<Descriptors>();
  }
  inherited_ += count;
  return {new Descriptors(parents), [this, count](Descriptors* copy) {
            inherited_ -= count;
            delete copy;
          }};
}

void StracePass::Gone(uint32_t tid) {
  const auto at = threads_.find(tid == 0 ? 1 : tid);
  if (at == threads_.end()) return;
  thread_ = &at->second;
  if (!thread_->pending_name.empty()) EndPending(thread_->pending_ns);
  if (thread_->descriptors.use_count() == 1) {
    std::map<int64_t, Descriptors::Slot> slots =
        std::move(thread_->descriptors->slots);
    for (auto& [fd, slot] : slots) Close(std::move(slot.file));
  }
  threads_.erase(at);
  thread_ = nullptr;
}

void StracePass::EndPending(uint64_t begin_ns) {
  const auto pending = pending_.find(begin_ns);
  if (pending != pending_.end()) pending_.erase(pending);
}

uint64_t StracePass::Watermark() const {
  return pending_.empty() ? now_ns_ : std::min(now_ns_, *pending_.begin());
}

// With -r each line has the time since the one before. No clock is in its first
// second: there it begins.
void StracePass::SumTime(std::string_view line) {
  const std::optional<uint64_t> time = TimeOfStraceLine(line);
  if (!time) return;
  if (!has_time_) {
    has_time_ = true;
    is_relative_ = *time < kNsPerSecond;
    sum_ns_ = kNsPerSecond;
    if (is_relative_) Guess("the time of day, which strace -r does not tell");
  }
  if (is_relative_) sum_ns_ += *time;
}

Status StracePass::Take(std::string_view line, uint32_t tid) {
  ++counts_->lines;
  if (line.empty()) return {};
  SumTime(line);
  std::optional<StraceLine> parsed = ParseStraceLine(line);
  if (parsed && parsed->tid == 0) parsed->tid = tid;
  if (parsed && is_relative_) parsed->real_ns = sum_ns_;
  if (!parsed) {
    Unread("not a line of strace: " + Printable(line.substr(0, 40)));
    return {};
  }
  using Kind = StraceLine::Kind;
  if (parsed->kind == Kind::kSignal) return {};
  if (!parsed->has_time) {
    Unread("without a time: strace -ttt was not given");
    return {};
  }
  TracedThread* const thread = ThreadOf(parsed->tid);
  if (thread == nullptr) {
    LeaveOut("calls of too many threads");
    return {};
  }
  if (first_ns_ == 0) first_ns_ = parsed->real_ns;
  // A clock that was set back: the order stays.
  now_ns_ = std::max(now_ns_, parsed->real_ns);
  call_ = {};
  begin_ns_ = now_ns_;
  error_ = 0;
  switch (parsed->kind) {
    case Kind::kCall:
      Call(*thread, std::max(parsed->real_ns, Watermark()), parsed->name,
           parsed->rest);
      break;
    case Kind::kUnfinished:
      // No line of strace's.
      if (!thread->pending_name.empty() || parsed->name.empty()) break;
      thread->pending_name = parsed->name;
      thread->pending_text = parsed->rest;
      thread->pending_ns = std::max(parsed->real_ns, Watermark());
      thread->awaits_child = MakesChild(parsed->name);
      pending_.insert(thread->pending_ns);
      break;
    case Kind::kResumed: {
      if (parsed->name.empty() || thread->pending_name != parsed->name) {
        LeaveOut("the end of a call without its begin");
        break;
      }
      const std::string name = std::exchange(thread->pending_name, {});
      std::string text = std::exchange(thread->pending_text, {});
      text += parsed->rest;
      const uint64_t begin = thread->pending_ns;
      Call(*thread, begin, name, text);
      EndPending(begin);
      // An execve ends under the number of the process.
      if (const auto still = threads_.find(parsed->tid);
          still != threads_.end()) {
        still->second.awaits_child = false;
      }
      break;
    }
    case Kind::kExit:
      Gone(parsed->tid);
      break;
    case Kind::kSuperseded: {
      // The thread goes on under the number of its process.
      const auto from = threads_.find(parsed->tid);
      const auto to = threads_.find(parsed->other_tid);
      if (from == threads_.end()) break;
      if (to == threads_.end() || from == to) break;
      if (!to->second.pending_name.empty()) {
        EndPending(to->second.pending_ns);
      }
      TracedThread moved = std::move(from->second);
      threads_.erase(from);
      moved.caller.tid = parsed->other_tid;
      threads_[parsed->other_tid] = std::move(moved);
      break;
    }
    case Kind::kSignal:
      break;
  }
  if (tree_.full() && status_.ok()) {
    status_ = Status::Corrupt(
        "more than " + std::to_string(FileTree::kMostFiles) + " files at once");
  }
  return status_;
}

Status StracePass::Finish() {
  while (!threads_.empty() && status_.ok()) {
    begin_ns_ = now_ns_;
    call_ = {};
    error_ = 0;
    Gone(threads_.begin()->first);
  }
  return status_;
}

void StracePass::Call(TracedThread& thread, uint64_t begin_ns,
                      std::string_view name, std::string_view rest) {
  thread_ = &thread;
  begin_ns_ = begin_ns;
  const auto row = Rows().find(name);
  if (row == Rows().end()) {
    LeaveOut(name);
    return;
  }
  if (row->second.handler == &StracePass::DoNothing) return;
  if (!ParseStraceCall(rest, &call_)) {
    Unread("a call that is cut: " + std::string(name));
    return;
  }
  if (call_.result == "?") return;  // the process ended in it
  const std::optional<int64_t> number = DecodeNumber(call_.result);
  result_ = number.value_or(0);
  error_ = 0;
  if (!call_.error.empty()) {
    error_ = ErrnoOf(call_.error);
    if (error_ == 0) return;  // ERESTARTSYS: it is told again
    result_ = -1;
  } else if (!number) {
    LeaveOut("a call without a result: " + std::string(name));
    return;
  }
  (this->*row->second.handler)(row->second.variant);
}

// --- Arguments.

uint64_t StracePass::Unsigned(size_t i) const {
  return static_cast<uint64_t>(DecodeNumber(arg(i)).value_or(0));
}

std::string StracePass::PathOf(size_t i, int dir) {
  std::string text;
  bool cut = false;
  if (!DecodeString(arg(i), &text, &cut)) {
    if (arg(i) != "NULL") LeaveOut("a name that is not told");
    return {};
  }
  if (cut) {
    LeaveOut("a name that strace cut (-s)");
    return {};
  }
  std::string from = thread_->surroundings->folder;
  if (dir >= 0) {
    DescriptorArgument base;
    DecodeDescriptor(arg(static_cast<size_t>(dir)), &base);
    if (base.has_path) {
      from = base.path;
      if (base.number == DescriptorArgument::kWorkingDirectory) {
        thread_->surroundings->folder = base.path;
      }
    } else if (base.number != DescriptorArgument::kWorkingDirectory) {
      from.clear();
    }
  }
  if (text.starts_with('/')) return text;
  if (from.empty()) {
    LeaveOut("a relative name, and the directory is not told (-y)");
    return {};
  }
  return from + '/' + text;
}

NodeId StracePass::Announce(NodeId parent, std::string_view name,
                            uint32_t type) {
  const NodeId id = tree_.Make(type);
  AnnounceAs(id, parent, name);
  return id;
}

void StracePass::AnnounceAs(NodeId id, NodeId parent, std::string_view name) {
  tree_.Link(parent, name, id);
  const uint64_t inode = tree_.InodeOf(id);
  const auto found = found_->find(inode);
  replay::Node& node = tree_.node(id);
  node.initial = true;
  if (!first() && found != found_->end()) {
    const FoundBefore& before = found->second;
    if (before.mode) node.mode = static_cast<uint16_t>(*before.mode);
    node.size = std::max(before.size.value_or(0), before.least_size);
  }
  Event event = Make(Op::lookup_);
  event.Set(Field::kLatency, 0);
  event.SetResult(0, 0);
  In(parent, name, &event);
  About(id, &event);
  event.node = 0;
  event.Set(Field::kType, node.mode >> 12);
  if (!first() && found != found_->end()) {
    const FoundBefore& before = found->second;
    const bool sized = before.size || before.least_size != 0;
    if (before.mode) event.Set(Field::kMode, *before.mode);
    if (sized) event.Set(Field::kSize, node.size);
    if (before.links != 0) event.Set(Field::kNlink, before.links);
    if (sized && !before.mode) event.Set(Field::kMode, S_IFREG | 0644);
  }
  Emit(&event);
}

Spot StracePass::Reach(const std::string& path, bool follow, uint32_t type) {
  using State = Spot::State;
  Spot spot;
  if (path.empty()) return spot;
  for (;;) {
    spot = tree_.Find(path, follow);
    if (spot.state != State::kUnknown && spot.state != State::kMissing) break;
    Announce(spot.parent, spot.name,
             spot.state == State::kUnknown ? S_IFDIR | 0755 : type);
  }
  if (spot.state == State::kOutside) LeaveOut("files outside of the directory");
  if (spot.state == State::kRefused) LeaveOut("names that no kernel takes");
  return spot;
}

Spot StracePass::ReachParent(const std::string& path) {
  using State = Spot::State;
  Spot spot;
  if (path.empty()) return spot;
  for (;;) {
    spot = tree_.Find(path, /*follow=*/false);
    if (spot.state != State::kUnknown) break;
    Announce(spot.parent, spot.name, S_IFDIR | 0755);
  }
  if (spot.state == State::kOutside) LeaveOut("files outside of the directory");
  if (spot.state == State::kRefused) LeaveOut("names that no kernel takes");
  if (spot.state == State::kFound && spot.name.empty()) {
    spot.state = State::kRefused;  // the top directory itself
  }
  return spot;
}

NodeId StracePass::NodeAt(size_t i, int dir, bool follow, uint32_t type) {
  return Reach(PathOf(i, dir), follow, type).node;
}

OpenFilePtr StracePass::FileAt(size_t i) {
  DescriptorArgument given;
  if (!DecodeDescriptor(arg(i), &given) || given.number < 0) return nullptr;
  auto& slots = thread_->descriptors->slots;
  const auto at = slots.find(given.number);
  const bool has_file = given.has_path && given.path.starts_with('/');
  if (given.has_path && !has_file) return nullptr;  // pipe:[17]
  Spot spot;
  if (has_file && !given.deleted) {
    spot = tree_.Find(given.path, /*follow=*/false);
    using State = Spot::State;
    if (spot.state == State::kOutside || spot.state == State::kRefused) {
      if (at != slots.end()) Detach(given.number);
      LeaveOut("files outside of the directory");
      return nullptr;
    }
  }
  if (at != slots.end()) {
    // Where it leads elsewhere, something was not told.
    if (spot.node == kNoNode || spot.node == at->second.file->node) {
      return at->second.file;
    }
    Guess("descriptors whose opening was not told");
    Detach(given.number);
  }
  if (!has_file || given.deleted) {
    LeaveOut(given.deleted ? "files that had no name when first seen"
                           : "descriptors whose file is not told (-y)");
    return nullptr;
  }
  if (slots.size() >= kMostDescriptors) return nullptr;
  spot = Reach(given.path, /*follow=*/false, S_IFREG | 0644);
  if (spot.node == kNoNode) return nullptr;
  Guess("descriptors that were open before, at offset 0");
  auto file = std::make_shared<OpenFile>();
  file->fh = next_fh_++;
  file->node = spot.node;
  file->flags = O_RDWR;
  file->is_dir = S_ISDIR(tree_.node(spot.node).mode);
  tree_.Opened(spot.node);
  slots[given.number] = {file, false};
  return file;
}

void StracePass::Missing(const std::string& path, bool follow) {
  if (path.empty()) return;
  const Spot spot = tree_.Find(path, follow);
  using State = Spot::State;
  switch (spot.state) {
    case State::kMissing: {
      Event event = Make(Op::lookup_);
      In(spot.parent, spot.name, &event);
      event.SetResult(-1, ENOENT);
      Emit(&event);
      return;
    }
    case State::kUnknown:
      return LeaveOut("missing files in directories that nobody has seen");
    case State::kFound:
      return LeaveOut("missing files that should be there");
    case State::kOutside:
      return LeaveOut("files outside of the directory");
    case State::kRefused:
      return LeaveOut("names that no kernel takes");
  }
}

bool StracePass::IsKernels() {
  switch (error_) {
    case EBADF:
    case EFAULT:
    case ENAMETOOLONG:
    case ELOOP:
    case EINTR:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EXDEV:
    case EINVAL:
    case ENOTDIR:
    case EBUSY:
    case ENOSYS:
    case ERANGE:
    case ESPIPE:
      LeaveOut("calls that failed before a file system was asked");
      return true;
    default:
      return false;
  }
}

// --- Events.

Event StracePass::Make(Op op) const {
  Event event;
  event.op = op;
  event.Set(Field::kTime, begin_ns_);
  if (call_.duration_ns) event.Set(Field::kLatency, *call_.duration_ns);
  if (thread_ != nullptr) {
    event.Set(Field::kTid, thread_->caller.tid);
    event.caller = &thread_->caller;
  }
  event.caller_resolved = true;
  event.attributes_resolved = true;
  event.details_resolved = true;
  event.SetResult(result_, error_);
  return event;
}

void StracePass::About(NodeId node, Event* event) const {
  event->node = tree_.InodeOf(node);
  event->Set(Field::kInode, event->node);
}

void StracePass::In(NodeId parent, std::string_view name, Event* event) const {
  event->parent = tree_.InodeOf(parent);
  event->Set(Field::kParentInode, event->parent);
  event->name = name;
}

void StracePass::Emit(Event* event) {
  if (first()) return;
  ++counts_->operations;
  event->resolver = &tree_;
  event->rename_epoch = tree_.epoch();
  if (Status s = out_->Put(*event, Watermark()); !s.ok() && status_.ok()) {
    status_ = s;
  }
}

void StracePass::NewFile(int64_t fd, NodeId node, uint32_t flags, bool is_dir,
                         Event* event) {
  auto file = std::make_shared<OpenFile>();
  file->fh = next_fh_++;
  file->node = node;
  file->flags = flags;
  file->is_dir = is_dir;
  event->Set(Field::kFh, file->fh);
  event->Set(Field::kFlags, flags);
  event->SetResult(0, 0);
  Emit(event);
  tree_.Opened(node);
  Attach(fd, file, (flags & O_CLOEXEC) != 0);
}

void StracePass::Attach(int64_t fd, const OpenFilePtr& file,
                        bool close_on_exec) {
  Detach(fd);
  auto& slots = thread_->descriptors->slots;
  if (fd < 0 || slots.size() >= kMostDescriptors) return Close(file);
  slots[fd] = {file, close_on_exec};
}

void StracePass::Detach(int64_t fd) {
  auto& slots = thread_->descriptors->slots;
  const auto at = slots.find(fd);
  if (at == slots.end()) return;
  OpenFilePtr file = std::move(at->second.file);
  slots.erase(at);
  Close(std::move(file));
}

void StracePass::Close(OpenFilePtr file) {
  const bool last = file.use_count() == 1;
  if (!file->is_dir) {
    Event event = Make(Op::flush_);
    About(file->node, &event);
    event.Set(Field::kFh, file->fh);
    event.Set(Field::kLockOwner, thread_ == nullptr ? 0 : thread_->caller.pid);
    event.SetResult(0, 0);
    Emit(&event);
  }
  if (!last) return;
  Event event = Make(file->is_dir ? Op::releasedir_ : Op::release_);
  About(file->node, &event);
  event.Set(Field::kFh, file->fh);
  event.Set(Field::kFlags, file->flags);
  event.SetResult(0, 0);
  Emit(&event);
  tree_.Closed(file->node);
}

// What the first pass learns of files that were there before.
void StracePass::Note(NodeId id, std::string_view stat) {
  const auto member = [&](std::string_view old_name,
                          std::string_view new_name) {
    const std::string_view value = Member(stat, old_name);
    return value.empty() ? Member(stat, new_name) : value;
  };
  const std::string_view mode = member("st_mode", "stx_mode");
  if (mode.empty()) return;
  replay::Node& node = tree_.node(id);
  const auto bits = static_cast<uint16_t>(DecodeFlags(mode));
  const std::string_view size = member("st_size", "stx_size");
  const auto bytes = static_cast<uint64_t>(DecodeNumber(size).value_or(0));
  const uint64_t inode = node.inode;
  if (!node.initial && maybe_new_.contains(inode) && !node.written &&
      bytes != 0 && first()) {
    (*found_)[inode].existed = true;
  }
  if (first() && (node.initial || maybe_new_.contains(inode))) {
    FoundBefore& before = (*found_)[inode];
    if (!before.mode && (node.known & kModeKnown) == 0) {
      before.mode = bits;
    }
    if (!before.size && !node.written && !size.empty()) before.size = bytes;
    const std::string_view links = member("st_nlink", "stx_nlink");
    if (before.links == 0 && !links.empty()) {
      before.links = static_cast<uint32_t>(DecodeNumber(links).value_or(0));
    }
  }
  node.mode = bits;
  if (!size.empty()) node.size = bytes;
}

}  // namespace tracefs::import
