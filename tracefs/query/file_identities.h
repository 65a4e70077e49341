// FileIdentities: which file or directory an operation is about, whatever it is
// called at that moment: by the handle it was opened with, by its inode while
// that is one file's, by its name where there is neither; over renames, those
// of directories above as well.
//
// What a trace says is taken as it is, and may be made up: nothing here trusts
// that names are unique, that what ends has begun, or that there is an end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/format/file_paths.h"
#include "tracefs/format/path_memo.h"
#include "tracefs/format/record.h"
#include "tracefs/query/path_tree.h"

namespace tracefs::query {

// Used by one thread.
class FileIdentities {
 public:
  using Number = uint64_t;
  static constexpr Number kNone = 0;
  // Files that are followed at the same time.
  static constexpr unsigned kMostBits = 18;
  static constexpr size_t kMost = size_t{1} << kMostBits;

  struct Touched {
    Number file = kNone;
    bool made = false;  // by this operation
    // The destination of a copy; what a rename replaced, or changed places
    // with.
    Number second = kNone;
  };

  // `gone` is called for each file that can no longer occur, while its path may
  // still be asked for.
  explicit FileIdentities(std::function<void(Number)> gone)
      : gone_(std::move(gone)) {}

  // The files of an operation that has run, under names that it has or gets.
  // One that failed changes no names; its inode is there.
  Touched Take(const Event& event, format::RecordPaths& paths);
  // Forgets what ended with the last operation; before the next one.
  void Settle();

  // Who is called so now.
  Number Called(std::string_view path);
  // Its name, of several the one it was last found by, or the one before; ""
  // where neither is one any more.
  std::string PathOf(Number number) const;
  // Calls visit(number, path) for files that have only names other than these.
  template <typename Visit>
  void ForEachOtherName(Visit&& visit) const {
    names_.ForEach([&](PathTree::Node node) {
      const File* const file = FileOf(names_.number(node));
      if (file != nullptr && !IsNameOf(file->node, file->number) &&
          !IsNameOf(file->other, file->number)) {
        visit(file->number, names_.PathOf(node));
      }
    });
  }
  // Whether its last name is gone, and whether it is open. Both false of one
  // that is not followed.
  bool IsRemoved(Number number) const;
  bool IsOpen(Number number) const;

  // Operations on files that there was no room for.
  uint64_t not_followed() const { return not_followed_; }

 private:
  struct File {
    Number number = kNone;                   // kNone: its place is free
    uint64_t inode = 0;                      // 0: not known
    PathTree::Node node = PathTree::kNone;   // by which it was last named
    PathTree::Node other = PathTree::kNone;  // and before that
    uint32_t names = 0;
    uint32_t handles = 0;   // opens that were not released
    bool by_inode = false;  // the inode leads to it
    bool removed = false;
  };

  // Null: it is gone. Good until the next one is made.
  const File* FileOf(Number number) const {
    const size_t place = number % kMost;
    return number != kNone && place < files_.size() &&
                   files_[place].number == number
               ? &files_[place]
               : nullptr;
  }
  File* FileOf(Number number) {
    return const_cast<File*>(std::as_const(*this).FileOf(number));
  }
  bool IsNameOf(PathTree::Node node, Number number) const {
    return node != PathTree::kNone && names_.number(node) == number;
  }
  Number ByInode(uint64_t inode) const;
  void SetInode(File* file, uint64_t inode);
  void ForgetInode(File* file);
  Number ByHandle(const Event& event, Field handle);
  Number Make(uint64_t inode);
  Number Find(uint64_t inode, format::RecordPaths& paths, bool named_now);
  Number FindNamed(uint64_t inode, std::string_view path, bool named_now);
  // Whether the path of the operation is the name that it got last; told
  // without making the path.
  bool IsCalledSo(Number number, const format::Record& record);
  void Name(Number number, std::string_view path);
  void Unname(PathTree::Node node);
  void EndIfUnused(const File& file);
  Touched TakeMaking(const Event& event, std::string_view path);
  Touched TakeRename(const Event& event, format::RecordPaths& paths);
  void TakeRemoval(const Event& event, Number number, std::string_view path);
  void Open(const Event& event, Number number);
  void Close(const Event& event, Number number);
  Number Destination(const Event& event, format::RecordPaths& paths);

  const std::function<void(Number)> gone_;
  Number last_ = 0;
  std::vector<File> files_;
  std::vector<uint32_t> free_;  // places of files_
  HashIndex by_inode_;          // of these
  std::unordered_map<uint64_t, Number> by_handle_;
  PathTree names_;
  format::PathMemo<PathTree::Mark> marks_;
  std::vector<Number> ended_;
  uint64_t not_followed_ = 0;
};

}  // namespace tracefs::query
