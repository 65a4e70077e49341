#include "tracefs/query/file_identities.h"

#include <linux/fs.h>

#include <utility>

#include "tracefs/query/analysis.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {
namespace {

bool MakesFile(Op op) {
  return op == Op::create_ || op == Op::mknod_ || op == Op::tmpfile_ ||
         op == Op::symlink_ || op == Op::mkdir_;
}

// Whether the operation found the file under this name. Who has it open goes on
// using it by a name that it may not have any more.
bool FindsByName(Op op) {
  return op == Op::lookup_ || op == Op::open_ || op == Op::opendir_ ||
         op == Op::link_;
}

}  // namespace

FileIdentities::Number FileIdentities::ByInode(uint64_t inode) const {
  if (inode == 0) return kNone;
  const uint32_t place = by_inode_.Find(
      MixedHash(inode), [&](uint32_t at) { return files_[at].inode == inode; });
  return place == HashIndex::kNone ? kNone : files_[place].number;
}

// One that nobody has.
void FileIdentities::SetInode(File* file, uint64_t inode) {
  file->inode = inode;
  if (inode == 0) return;
  file->by_inode = true;
  by_inode_.Add(MixedHash(inode), static_cast<uint32_t>(file - files_.data()));
}

void FileIdentities::ForgetInode(File* file) {
  if (!std::exchange(file->by_inode, false)) return;
  by_inode_.Remove(MixedHash(file->inode),
                   static_cast<uint32_t>(file - files_.data()));
}

FileIdentities::Number FileIdentities::ByHandle(const Event& event,
                                                Field handle) {
  if (!event.Has(handle)) return kNone;
  const auto found = by_handle_.find(event.Get(handle));
  return found == by_handle_.end() || FileOf(found->second) == nullptr
             ? kNone
             : found->second;
}

FileIdentities::Number FileIdentities::Called(std::string_view path) {
  const PathTree::Node node = names_.Find(path);
  if (node == PathTree::kNone) return kNone;
  const Number number = names_.number(node);
  return FileOf(number) != nullptr ? number : kNone;
}

std::string FileIdentities::PathOf(Number number) const {
  const File* const file = FileOf(number);
  if (file == nullptr) return {};
  for (const PathTree::Node node : {file->node, file->other}) {
    if (IsNameOf(node, number)) return names_.PathOf(node);
  }
  return {};
}

bool FileIdentities::IsRemoved(Number number) const {
  const File* const file = FileOf(number);
  return file != nullptr && file->removed;
}

bool FileIdentities::IsOpen(Number number) const {
  const File* const file = FileOf(number);
  return file != nullptr && file->handles != 0;
}

FileIdentities::Number FileIdentities::Make(uint64_t inode) {
  if (free_.empty() && files_.size() >= kMost) {
    ++not_followed_;
    return kNone;
  }
  size_t place = files_.size();
  if (free_.empty()) {
    files_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  // Later ones have larger numbers.
  files_[place] = {.number = ++last_ << kMostBits | place};
  SetInode(&files_[place], inode);
  return files_[place].number;
}

FileIdentities::Number FileIdentities::Find(uint64_t inode,
                                            format::RecordPaths& paths,
                                            bool named_now) {
  const Number number = ByInode(inode);
  if (number == kNone) return FindNamed(inode, paths.first(), named_now);
  if (named_now && !IsCalledSo(number, paths.record())) {
    Name(number, paths.first());
  }
  return number;
}

bool FileIdentities::IsCalledSo(Number number, const format::Record& record) {
  const Event& event = record.event;
  const uint64_t id = event.parent != 0 ? event.parent : event.node;
  if (id == 0 || record.HasText(Field::kPath)) return false;
  const PathTree::Node node = FileOf(number)->node;
  if (!IsNameOf(node, number)) return false;
  PathTree::Mark& mark = marks_.OfPath(record, id);
  if (!names_.Holds(mark)) {
    PathBuffer buffer;
    const std::string_view path = record.block->Path(id, {}, buffer);
    const PathTree::Node found =
        path == "/" ? PathTree::kRoot : names_.Find(path);
    if (found == PathTree::kNone) return false;
    mark = names_.MarkOf(found);
  }
  return event.parent != 0 ? names_.IsAt(node, mark.node, event.name)
                           : mark.node == node;
}

// One that its inode does not tell.
FileIdentities::Number FileIdentities::FindNamed(uint64_t inode,
                                                 std::string_view path,
                                                 bool named_now) {
  Number number = kNone;
  const Number called = Called(path);
  if (File* const file = FileOf(called); file != nullptr) {
    if (inode == 0 || file->inode == 0) number = called;
    if (inode != 0 && file->inode == 0) SetInode(file, inode);
  }
  if (number == kNone) {
    if (inode == 0 && path.empty()) return kNone;
    number = Make(inode);
    // Another may have that name by now.
    named_now |= called == kNone;
  }
  if (number != kNone && named_now) Name(number, path);
  return number;
}

// `path` is now a name of this file, and of no other.
void FileIdentities::Name(Number number, std::string_view path) {
  if (path.empty()) return;
  const PathTree::Node node = names_.Make(path);
  if (node == PathTree::kNone) return;
  File& file = *FileOf(number);
  if (file.node != node) file.other = std::exchange(file.node, node);
  const Number before = names_.number(node);
  if (before == number) return;
  if (File* const other = FileOf(before);
      other != nullptr && other->names != 0 && --other->names == 0) {
    other->removed = true;
    EndIfUnused(*other);
  }
  names_.SetNumber(node, number);
  ++file.names;
  file.removed = false;  // a link may name one that had none
}

void FileIdentities::Unname(PathTree::Node node) {
  if (node == PathTree::kNone) return;
  const Number number = names_.number(node);
  names_.Drop(node);
  File* const file = FileOf(number);
  if (file != nullptr && file->names != 0) --file->names;
}

// Until the operation that ended it has been taken account of.
void FileIdentities::EndIfUnused(const File& file) {
  if (file.removed && file.handles == 0) ended_.push_back(file.number);
}

void FileIdentities::Settle() {
  for (const Number number : ended_) {
    File* const file = FileOf(number);
    if (file == nullptr) continue;
    gone_(number);
    ForgetInode(file);
    *file = {};
    free_.push_back(static_cast<uint32_t>(file - files_.data()));
  }
  ended_.clear();
}

FileIdentities::Touched FileIdentities::TakeMaking(const Event& event,
                                                   std::string_view path) {
  const uint64_t inode = event.GetOr0(Field::kInode);
  const Number called = Called(path);
  const bool may_open = event.op == Op::create_;
  const Number before = inode == 0 && may_open ? called : ByInode(inode);
  // A create that found the file there is an open, maybe by a name that it had
  // before the trace began.
  const bool opens =
      may_open && before != kNone && !FileOf(before)->removed &&
      (path.empty() || called == before || event.GetOr0(Field::kNlink) > 1);
  if (opens) return {before};
  // A number that is given again: its file has gone, maybe unseen.
  if (before != kNone) {
    ForgetInode(FileOf(before));
    ended_.push_back(before);
  }
  const Number number = Make(inode);
  // What is told of one without a name is its directory.
  if (event.op == Op::tmpfile_) {
    if (number != kNone) FileOf(number)->removed = true;
  } else if (number == kNone) {
    Unname(names_.Find(path));
  } else {
    Name(number, path);
  }
  return {.file = number, .made = number != kNone};
}

FileIdentities::Touched FileIdentities::TakeRename(const Event& event,
                                                   format::RecordPaths& paths) {
  const std::string_view path = paths.first();
  const std::string_view path2 = paths.second();
  const uint64_t inode = event.GetOr0(Field::kInode);
  if ((event.GetOr0(Field::kFlags) & RENAME_EXCHANGE) != 0) {
    const Touched both = {.file = Find(inode, paths, /*named_now=*/true),
                          .second = FindNamed(0, path2, /*named_now=*/true)};
    names_.Exchange(path, path2);
    return both;
  }
  const Number moved = Find(inode, paths, /*named_now=*/true);
  if (path == path2 || path2.empty()) return {moved};
  const Number replaced = Called(path2);
  // Two names of one file: rename(2) does nothing.
  if (replaced == moved && moved != kNone) return {moved};
  if (File* const file = FileOf(replaced); file != nullptr) {
    Unname(names_.Find(path2));
    file->removed = file->names == 0;
    EndIfUnused(*file);
  }
  names_.Move(path, path2);
  if (moved != kNone && Called(path2) != moved) {
    // There was no room for its name, or it would lie in itself.
    Unname(names_.Find(path));
    Name(moved, path2);
  }
  return {.file = moved, .second = replaced};
}

void FileIdentities::TakeRemoval(const Event& event, Number number,
                                 std::string_view path) {
  Unname(names_.Find(path));
  File* const file = FileOf(number);
  if (file == nullptr) return;
  // Names that were given before the trace began only the count tells of.
  file->removed = event.Has(Field::kNlink) ? event.Get(Field::kNlink) <= 1
                                           : file->names == 0;
  EndIfUnused(*file);
}

void FileIdentities::Open(const Event& event, Number number) {
  if (number == kNone) return;
  ++FileOf(number)->handles;
  if (!event.Has(Field::kFh)) return;
  if (by_handle_.size() >= kMost) by_handle_.clear();
  by_handle_[event.Get(Field::kFh)] = number;
}

void FileIdentities::Close(const Event& event, Number number) {
  by_handle_.erase(event.GetOr0(Field::kFh));
  File* const file = FileOf(number);
  if (file == nullptr) return;
  if (file->handles != 0) --file->handles;
  EndIfUnused(*file);
}

// Older traces lack the path; the handle or inode tells instead.
FileIdentities::Number FileIdentities::Destination(const Event& event,
                                                   format::RecordPaths& paths) {
  const Number by_handle = ByHandle(event, Field::kFhOut);
  if (by_handle != kNone) return by_handle;
  const uint64_t inode = event.GetOr0(Field::kInodeOut);
  const Number number = ByInode(inode);
  return number != kNone
             ? number
             : FindNamed(inode, paths.second(), /*named_now=*/false);
}

FileIdentities::Touched FileIdentities::Take(const Event& event,
                                             format::RecordPaths& paths) {
  Settle();
  const uint64_t inode = event.GetOr0(Field::kInode);
  if (Failed(event)) {
    Touched touched = {ByHandle(event, Field::kFh)};
    if (touched.file == kNone) {
      touched.file = inode == 0 ? Called(paths.first())
                                : Find(inode, paths, /*named_now=*/false);
    }
    if (event.op == Op::copy_file_range_) {
      touched.second = Destination(event, paths);
    }
    return touched;
  }
  if (event.op == Op::rename_) return TakeRename(event, paths);
  if (MakesFile(event.op)) {
    const Touched touched = TakeMaking(event, paths.first());
    if (event.Has(Field::kFh)) Open(event, touched.file);
    return touched;
  }
  const bool opens = event.op == Op::open_ || event.op == Op::opendir_;
  const bool named_now = FindsByName(event.op);
  // An inode is one file's as long as that is open.
  Number number = named_now ? kNone : ByInode(inode);
  if (number == kNone && !opens) number = ByHandle(event, Field::kFh);
  if (number == kNone) number = Find(inode, paths, named_now);
  if (event.op == Op::link_) {
    if (number != kNone) Name(number, paths.second());
  } else if (event.op == Op::unlink_ || event.op == Op::rmdir_) {
    TakeRemoval(event, number, paths.first());
  } else if (opens) {
    Open(event, number);
  } else if (event.op == Op::release_ || event.op == Op::releasedir_) {
    Close(event, number);
  } else if (event.op == Op::copy_file_range_) {
    return {.file = number, .second = Destination(event, paths)};
  }
  return {number};
}

}  // namespace tracefs::query
