#include "tracefs/query/file_lives.h"

#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

#include "tracefs/format/file_paths.h"
#include "tracefs/query/analysis.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {

using format::Record;

namespace {

bool MakesNonDirectory(Op op) {
  return op == Op::create_ || op == Op::mknod_ || op == Op::tmpfile_ ||
         op == Op::symlink_;
}

bool IsDirectoryOp(Op op) {
  return op == Op::mkdir_ || op == Op::rmdir_ || op == Op::opendir_ ||
         op == Op::readdir_ || op == Op::releasedir_ || op == Op::fsyncdir_ ||
         op == Op::statfs_;
}

}  // namespace

void FileLife::Users::Add(Process process, std::string_view name) {
  for (const auto& [known, text] : kept) {
    if (known == process) return;
  }
  if (kept.size() == kMostUsers) {
    more.Add(MixedHash(process));
    return;
  }
  kept.emplace_back(process, name);
}

std::string FileLife::Users::Names() const {
  std::vector<std::string> names;
  for (const auto& [pid, name] : kept) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + (name.empty() ? "?" : name);
  }
  return more.Estimate() == 0 ? text : text + " and more";
}

FileLives::Number FileLives::Find(uint64_t inode, std::string_view path) const {
  if (inode != 0) {
    const auto found = names_->by_inode.find(inode);
    return found == names_->by_inode.end() ? kNone : found->second;
  }
  const PathTree::Node node = names_->by_path.Find(path);
  return node == PathTree::kNone ? kNone : names_->by_path.number(node);
}

FileLives::Number FileLives::FindOrMake(uint64_t inode, std::string_view path) {
  if (const Number number = Find(inode, path); number != kNone) return number;
  if (inode == 0 && path.empty()) return kNone;
  if (lives_.size() >= kMost) {
    ++not_followed_;
    return kNone;
  }
  const Number number = ++last_;
  FileLife& life = lives_[number];
  life.mount = mount_;
  life.inode = inode;
  if (inode != 0) names_->by_inode[inode] = number;
  if (!path.empty()) Name(number, path);
  return number;
}

void FileLives::Name(Number number, std::string_view path) {
  FileLife& life = lives_[number];
  life.path = path;
  life.node = names_->by_path.Make(path);
  if (life.node == PathTree::kNone) return;
  // The file that had the name keeps it as a text.
  const Number before = names_->by_path.number(life.node);
  if (const auto at = lives_.find(before);
      before != number && at != lives_.end() && at->second.node == life.node) {
    at->second.path = path;
    at->second.node = PathTree::kNone;
  }
  names_->by_path.SetNumber(life.node, number);
}

bool FileLives::IsNameOf(PathTree::Node node, Number number) const {
  return node != PathTree::kNone && names_->by_path.number(node) == number;
}

std::string FileLives::PathOf(Number number, const FileLife& life) const {
  return IsNameOf(life.node, number) ? names_->by_path.PathOf(life.node)
                                     : life.path;
}

void FileLives::Drop(PathTree::Node node, Number number) {
  if (IsNameOf(node, number)) names_->by_path.Drop(node);
}

void FileLives::Part(Number number) {
  FileLife& life = lives_[number];
  life.path = PathOf(number, life);
  const auto by = lives_.find(life.replaced_by);
  ended_(life, by == lives_.end() ? nullptr : &by->second);
  if (const auto at = names_->by_inode.find(life.inode);
      at != names_->by_inode.end() && at->second == number) {
    names_->by_inode.erase(at);
  }
  Drop(life.node, number);
  Drop(life.other, number);
  lives_.erase(number);
}

void FileLives::End(FileLife& life, const Record& record, FileLife::End end) {
  life.end = end;
  life.end_ns = record.real_ns;
  life.ended_by_ns =
      tally::AddTo(record.real_ns, NumberOr0(record.event, Field::kLatency));
  life.ender = record.Text(Field::kComm);
}

// The file that was called so is not any more; it ends with its last name.
void FileLives::Unname(std::string_view path, const Record& record,
                       FileLife::End end, Number by) {
  const PathTree::Node node = names_->by_path.Find(path);
  Number number =
      node == PathTree::kNone ? kNone : names_->by_path.number(node);
  const bool unlinks = record.event.op == Op::unlink_;
  // By a name that it had before the trace began.
  if (number == kNone && unlinks && record.event.Has(Field::kNlink)) {
    number = Find(NumberOr0(record.event, Field::kInode), {});
  }
  if (number == kNone || number == by) return;
  Drop(node, number);
  const auto found = lives_.find(number);
  if (found == lives_.end()) return;
  FileLife& life = found->second;
  if (life.node == node) {
    life.path = path;
    life.node = IsNameOf(life.other, number) ? life.other : PathTree::kNone;
  }
  if (life.links != 0) --life.links;
  // Names that were given before the trace began only the count tells of.
  const bool remains = unlinks && record.event.Has(Field::kNlink)
                           ? record.event.Get(Field::kNlink) > 1
                           : life.links != 0;
  if (remains || life.end != FileLife::End::kNone) return;
  life.path = PathOf(number, life);
  End(life, record, end);
  life.open_at_end = life.handles != 0;
  life.replaced_by = by;
  // Who has it open goes on using it.
  if (!life.open_at_end || life.inode == 0) Part(number);
}

void FileLives::TakeCreation(const Record& record, uint64_t inode,
                             std::string_view path) {
  // A create that found the file there is an open.
  const bool may_open = record.event.op == Op::create_;
  const auto found = lives_.find(Find(inode, may_open ? path : ""));
  // A number that is given again: its file has gone, maybe unseen. One that is
  // new has one name.
  const auto has_name = [&] {
    return path.empty() || PathOf(found->first, found->second) == path ||
           Find(0, path) == found->first ||
           NumberOr0(record.event, Field::kNlink) > 1;
  };
  const bool stale =
      found != lives_.end() && inode != 0 &&
      (!may_open || found->second.end != FileLife::End::kNone || !has_name());
  const bool fresh = found == lives_.end() || stale;
  const Number before = stale ? found->first : kNone;
  // What is told of one without a name is its directory.
  const bool nameless = record.event.op == Op::tmpfile_;
  // One with a new inode under a known name took the place of what went unseen.
  if (fresh && !nameless) {
    Unname(path, record, FileLife::End::kRemoved, kNone);
  }
  if (lives_.contains(before)) Part(before);
  const Number number = FindOrMake(inode, nameless ? "" : path);
  if (number == kNone) return;
  FileLife& life = lives_[number];
  if (fresh) {
    life.created = counts_;
    life.begin_ns = record.real_ns;
    life.born_path = path;
    life.nameless = nameless;
    if (nameless) life.links = 0;
    life.maker = record.Text(Field::kComm);
  }
  if (record.event.Has(Field::kFh)) ++life.handles;
}

void FileLives::TakeLink(uint64_t inode, std::string_view path,
                         std::string_view to) {
  const Number number = FindOrMake(inode, path);
  if (number == kNone || to.empty()) return;
  FileLife& life = lives_[number];
  ++life.links;
  if (life.nameless) {
    life.nameless = false;
    life.born_path = to;
  }
  if (life.node == PathTree::kNone) {
    Name(number, to);
    return;
  }
  life.other = names_->by_path.Make(to);
  if (life.other != PathTree::kNone) {
    names_->by_path.SetNumber(life.other, number);
  }
}

void FileLives::TakeOpen(uint64_t inode, std::string_view path) {
  const Number number = FindOrMake(inode, path);
  if (number == kNone) return;
  FileLife& life = lives_[number];
  ++life.handles;
  // Found by a name that it had before the trace began.
  const bool named = life.node != PathTree::kNone || path.empty();
  if (!named && life.end == FileLife::End::kNone) Name(number, path);
}

void FileLives::TakeRelease(const Record& record, uint64_t inode,
                            std::string_view path) {
  const Number number = FindOrMake(inode, path);
  if (number == kNone) return;
  FileLife& life = lives_[number];
  if (life.handles == 0 || --life.handles != 0) return;
  if (life.nameless) End(life, record, FileLife::End::kRemoved);
  if (life.end == FileLife::End::kNone) return;
  // The kernel tells of a close after it: beside the removal, it was before it.
  if (record.real_ns < life.ended_by_ns) life.open_at_end = false;
  Part(number);
}

void FileLives::TakeRename(const Record& record, std::string_view path,
                           std::string_view to) {
  if (path.empty() || to.empty() || to == path) return;
  const Event& event = record.event;
  if ((NumberOr0(event, Field::kFlags) & RENAME_EXCHANGE) != 0) {
    names_->by_path.Exchange(path, to);
    return;
  }
  const PathTree::Node node = names_->by_path.Find(path);
  const bool directory =
      event.Has(Field::kMode)
          ? S_ISDIR(event.Get(Field::kMode))
          : node != PathTree::kNone && names_->by_path.IsDirectory(node);
  if (directory) {
    names_->by_path.Move(path, to);
    return;
  }
  const Number moved = FindOrMake(NumberOr0(event, Field::kInode), path);
  if (moved == kNone) return;
  Unname(to, record, FileLife::End::kReplaced, moved);
  if (const PathTree::Node at = names_->by_path.Find(path);
      at != PathTree::kNone && names_->by_path.number(at) == moved) {
    names_->by_path.Drop(at);
  }
  Name(moved, to);
}

void FileLives::Use(FileLife& life, const Record& record,
                    FileLife::Process process,
                    const tally::Transfer& transfer) {
  const bool write = transfer.writes();
  (write ? life.writes : life.reads) += 1;
  uint64_t& moved = write ? life.written : life.read;
  moved = tally::AddTo(moved, transfer.bytes);
  (write ? life.writers : life.readers).Add(process, record.Text(Field::kComm));
  if (life.used) {
    const auto order =
        static_cast<size_t>((write ? 2 : 0) + (life.wrote ? 1 : 0));
    ++(life.user == process ? life.by_same : life.by_other)[order];
  }
  life.used = true;
  life.user = process;
  life.wrote = write;
}

// A copy uses two files: it reads one and writes the other.
void FileLives::TakeTransfers(const Record& record, FileLife::Process process) {
  for (const tally::Transfer& transfer : tally::TransfersOf(record.event)) {
    PathBuffer buffer;
    const Number number =
        FindOrMake(NumberOr0(record.event, tally::InodeField(transfer.end)),
                   format::PathOf(record, transfer.end, buffer));
    if (number == kNone) continue;
    if (counts_) Use(lives_[number], record, process, transfer);
  }
}

void FileLives::GoTo(uint32_t mount) {
  if (names_ != nullptr && mount == mount_) return;
  mount_ = mount;
  names_ = &mounts_[mount];
}

void FileLives::Take(const Record& record, bool counts) {
  counts_ = counts;
  const Event& event = record.event;
  if (!HasRun(record)) return;
  const FileLife::Process process = processes_.Of(record).number;
  if (Failed(event) || IsDirectoryOp(event.op)) return;
  GoTo(OriginOf(record).mount);
  if (tally::Transfers(event.op)) {
    TakeTransfers(record, process);
    return;
  }
  format::RecordPaths paths(record);
  const uint64_t inode = NumberOr0(event, Field::kInode);
  if (MakesNonDirectory(event.op)) {
    TakeCreation(record, inode, paths.first());
  } else if (event.op == Op::unlink_) {
    // There is nothing to tell about a file that was never seen before.
    Unname(paths.first(), record, FileLife::End::kRemoved, kNone);
  } else if (event.op == Op::rename_) {
    TakeRename(record, paths.first(), paths.second());
  } else if (event.op == Op::link_) {
    TakeLink(inode, paths.first(), paths.second());
  } else if (event.op == Op::open_) {
    TakeOpen(inode, paths.first());
  } else if (event.op == Op::release_) {
    TakeRelease(record, inode, paths.first());
  }
}

void FileLives::Finish() {
  std::vector<Number> numbers;
  for (const auto& [number, life] : lives_) numbers.push_back(number);
  std::ranges::sort(numbers);
  for (const Number number : numbers) {
    GoTo(lives_[number].mount);
    Part(number);
  }
}

std::string FileLives::Note() const {
  if (not_followed_ == 0) return {};
  return std::to_string(not_followed_) +
         " operations were on files beyond the " + std::to_string(kMost) +
         " that are followed at the same time";
}

}  // namespace tracefs::query
