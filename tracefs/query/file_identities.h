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
#include <string_view>
#include <unordered_map>

#include "tracefs/format/record.h"
#include "tracefs/query/path_tree.h"

namespace tracefs::query {

// Used by one thread.
class FileIdentities {
 public:
  using Number = uint64_t;
  static constexpr Number kNone = 0;
  // Files that are followed at the same time.
  static constexpr size_t kMost = size_t{1} << 18;

  struct Touched {
    Number file = kNone;
    // The destination of a copy; what a rename replaced, or changed places
    // with.
    Number second = kNone;
  };

  // `gone` is called for each file that can no longer occur.
  explicit FileIdentities(std::function<void(Number)> gone)
      : gone_(std::move(gone)) {}

  // The files of an operation that has run, under names that it has or gets.
  // One that failed changes nothing.
  Touched Take(const Event& event, std::string_view path,
               std::string_view path2);
  // Forgets what ended with the last operation; before the next one.
  void Settle();

  // Who is called so now.
  Number Called(std::string_view path) const;

  // Operations on files that there was no room for.
  uint64_t not_followed() const { return not_followed_; }

 private:
  struct File {
    uint64_t inode = 0;  // 0: not known
    uint64_t names = 0;
    uint64_t handles = 0;  // opens that were not released
    bool removed = false;
  };

  Number ByInode(uint64_t inode) const;
  Number ByHandle(const Event& event, Field handle) const;
  Number Make(uint64_t inode);
  Number Find(uint64_t inode, std::string_view path, bool named_now);
  void Name(Number number, std::string_view path);
  void Unname(PathTree::Node node);
  void EndIfUnused(Number number);
  Number TakeMaking(const Event& event, std::string_view path);
  Touched TakeRename(const Event& event, std::string_view path,
                     std::string_view path2);
  void TakeRemoval(const Event& event, Number number, std::string_view path);
  void Open(const Event& event, Number number);
  void Close(const Event& event, Number number);
  Number Destination(const Event& event, std::string_view path2);

  const std::function<void(Number)> gone_;
  Number last_ = 0;
  std::unordered_map<Number, File> files_;
  std::unordered_map<uint64_t, Number> by_inode_;
  std::unordered_map<uint64_t, Number> by_handle_;
  PathTree names_;
  std::vector<Number> ended_;
  uint64_t not_followed_ = 0;
};

}  // namespace tracefs::query
