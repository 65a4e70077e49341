#include "tracefs/query/file_identities.h"

#include <linux/fs.h>

#include "tracefs/query/analysis.h"

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
  const auto found = by_inode_.find(inode);
  return inode == 0 || found == by_inode_.end() ? kNone : found->second;
}

FileIdentities::Number FileIdentities::ByHandle(const Event& event,
                                                Field handle) const {
  if (!event.Has(handle)) return kNone;
  const auto found = by_handle_.find(event.Get(handle));
  return found == by_handle_.end() || !files_.contains(found->second)
             ? kNone
             : found->second;
}

FileIdentities::Number FileIdentities::Called(std::string_view path) const {
  const PathTree::Node node = names_.Find(path);
  if (node == PathTree::kNone) return kNone;
  const Number number = names_.number(node);
  return files_.contains(number) ? number : kNone;
}

FileIdentities::Number FileIdentities::Make(uint64_t inode) {
  if (files_.size() >= kMost) {
    ++not_followed_;
    return kNone;
  }
  const Number number = ++last_;
  files_[number].inode = inode;
  if (inode != 0) by_inode_[inode] = number;
  return number;
}

FileIdentities::Number FileIdentities::Find(uint64_t inode,
                                            std::string_view path,
                                            bool named_now) {
  Number number = ByInode(inode);
  const Number called = Called(path);
  if (number == kNone && called != kNone) {
    File& file = files_[called];
    if (inode == 0 || file.inode == 0) {
      number = called;
      if (inode != 0) {
        file.inode = inode;
        by_inode_[inode] = called;
      }
    }
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
  if (node == PathTree::kNone || names_.number(node) == number) return;
  if (names_.number(node) != kNone) {
    const Number before = names_.number(node);
    const auto file = files_.find(before);
    if (file != files_.end() && file->second.names != 0 &&
        --file->second.names == 0) {
      file->second.removed = true;
      EndIfUnused(before);
    }
  }
  names_.SetNumber(node, number);
  File& file = files_[number];
  ++file.names;
  file.removed = false;  // a link may name one that had none
}

void FileIdentities::Unname(PathTree::Node node) {
  if (node == PathTree::kNone) return;
  const Number number = names_.number(node);
  names_.Drop(node);
  const auto file = files_.find(number);
  if (file != files_.end() && file->second.names != 0) --file->second.names;
}

// Until the operation that ended it has been taken account of.
void FileIdentities::EndIfUnused(Number number) {
  const auto file = files_.find(number);
  if (file == files_.end()) return;
  if (file->second.removed && file->second.handles == 0) {
    ended_.push_back(number);
  }
}

void FileIdentities::Settle() {
  for (const Number number : ended_) {
    const auto file = files_.find(number);
    if (file == files_.end()) continue;
    const uint64_t inode = file->second.inode;
    if (const auto at = by_inode_.find(inode);
        at != by_inode_.end() && at->second == number) {
      by_inode_.erase(at);
    }
    files_.erase(file);
    gone_(number);
  }
  ended_.clear();
}

FileIdentities::Number FileIdentities::TakeMaking(const Event& event,
                                                  std::string_view path) {
  const uint64_t inode = NumberOr0(event, Field::kInode);
  const Number before = ByInode(inode);
  // A create that found the file there is an open.
  const bool opens = event.op == Op::create_ && before != kNone &&
                     !files_[before].removed && Called(path) == before;
  if (opens) return before;
  // A number that is given again: its file has gone, maybe unseen.
  if (before != kNone) {
    by_inode_.erase(inode);
    ended_.push_back(before);
  }
  const Number number = Make(inode);
  // What is told of one without a name is its directory.
  if (event.op == Op::tmpfile_) {
    if (number != kNone) files_[number].removed = true;
  } else if (number == kNone) {
    Unname(names_.Find(path));
  } else {
    Name(number, path);
  }
  return number;
}

FileIdentities::Touched FileIdentities::TakeRename(const Event& event,
                                                   std::string_view path,
                                                   std::string_view path2) {
  const uint64_t inode = NumberOr0(event, Field::kInode);
  if ((NumberOr0(event, Field::kFlags) & RENAME_EXCHANGE) != 0) {
    const Touched both = {Find(inode, path, /*named_now=*/true),
                          Find(0, path2, /*named_now=*/true)};
    names_.Exchange(path, path2);
    return both;
  }
  const Number moved = Find(inode, path, /*named_now=*/true);
  if (path == path2 || path2.empty()) return {moved};
  const Number replaced = Called(path2);
  // Two names of one file: rename(2) does nothing.
  if (replaced == moved && moved != kNone) return {moved};
  if (const auto file = files_.find(replaced); file != files_.end()) {
    Unname(names_.Find(path2));
    file->second.removed = file->second.names == 0;
    EndIfUnused(replaced);
  }
  names_.Move(path, path2);
  if (moved != kNone && Called(path2) != moved) {
    // There was no room for its name, or it would lie in itself.
    Unname(names_.Find(path));
    Name(moved, path2);
  }
  return {moved, replaced};
}

void FileIdentities::TakeRemoval(const Event& event, Number number,
                                 std::string_view path) {
  Unname(names_.Find(path));
  const auto found = files_.find(number);
  if (found == files_.end()) return;
  // Names that were given before the trace began only the count tells of.
  found->second.removed = event.Has(Field::kNlink)
                              ? event.Get(Field::kNlink) <= 1
                              : found->second.names == 0;
  EndIfUnused(number);
}

void FileIdentities::Open(const Event& event, Number number) {
  if (number == kNone) return;
  ++files_[number].handles;
  if (!event.Has(Field::kFh)) return;
  if (by_handle_.size() >= kMost) by_handle_.clear();
  by_handle_[event.Get(Field::kFh)] = number;
}

void FileIdentities::Close(const Event& event, Number number) {
  by_handle_.erase(NumberOr0(event, Field::kFh));
  const auto file = files_.find(number);
  if (file == files_.end()) return;
  if (file->second.handles != 0) --file->second.handles;
  EndIfUnused(number);
}

// Older traces lack the path; the handle or inode tells instead.
FileIdentities::Number FileIdentities::Destination(const Event& event,
                                                   std::string_view path2) {
  const Number by_handle = ByHandle(event, Field::kFhOut);
  if (by_handle != kNone) return by_handle;
  return Find(NumberOr0(event, Field::kInodeOut), path2, /*named_now=*/false);
}

FileIdentities::Touched FileIdentities::Take(const Event& event,
                                             std::string_view path,
                                             std::string_view path2) {
  Settle();
  const uint64_t inode = NumberOr0(event, Field::kInode);
  if (Failed(event)) {
    const Number number = ByInode(inode);
    return {number != kNone ? number : Called(path)};
  }
  if (event.op == Op::rename_) return TakeRename(event, path, path2);
  if (MakesFile(event.op)) {
    const Number number = TakeMaking(event, path);
    if (event.Has(Field::kFh)) Open(event, number);
    return {number};
  }
  Number number = ByHandle(event, Field::kFh);
  const bool opens = event.op == Op::open_ || event.op == Op::opendir_;
  if (number == kNone || opens) {
    number = Find(inode, path, FindsByName(event.op));
  }
  if (event.op == Op::link_) {
    if (number != kNone) Name(number, path2);
  } else if (event.op == Op::unlink_ || event.op == Op::rmdir_) {
    TakeRemoval(event, number, path);
  } else if (opens) {
    Open(event, number);
  } else if (event.op == Op::release_ || event.op == Op::releasedir_) {
    Close(event, number);
  } else if (event.op == Op::copy_file_range_) {
    return {number, Destination(event, path2)};
  }
  return {number};
}

}  // namespace tracefs::query
