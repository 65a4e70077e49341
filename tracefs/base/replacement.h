// Replacement: a file or folder that is made under another name beside its
// place, and moved into place when it is complete. Until then, and if it never
// is, the existing one stays as it was.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Used by one thread.
class Replacement {
 public:
  enum class Kind { kFile, kFolder };

  // A link is followed: its target is replaced; unless another user made it in
  // a directory where others can write, which is refused for files, too.
  // Anything that is not a file, such as a pipe or a device, is written to
  // directly. A folder is replaced only if it is empty or was made by a
  // Replacement, so that a typing mistake deletes nothing. Errors name `path`
  // and what to do.
  static Result<Replacement> Begin(const std::string& path, Kind kind);

  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  // Removes what was made, unless it was committed.
  ~Replacement();

  // Where it is being made; of a file also open for writing.
  const std::string& path() const { return temporary_; }
  int fd() const { return fd_.get(); }
  // False: the existing one is written to directly.
  bool replaces() const { return replaces_; }

  // Makes it durable, gives it the mode and, where permitted, the owner of what
  // it replaces, and moves it into place. Once.
  Status Commit();

 private:
  Replacement(std::string path, std::string temporary, Kind kind)
      : path_(std::move(path)), temporary_(std::move(temporary)), kind_(kind) {}

  std::string path_;
  std::string temporary_;
  Kind kind_;
  UniqueFd fd_;
  std::optional<struct stat> replaced_;  // of files
  bool replaces_ = true;
  bool done_ = false;
};

// The path with that ending, for a file beside it: of its last part no more
// than a name has room for.
std::string NameBeside(std::string_view path, std::string_view ending);

// Gives a file another name, unless there is a file of that name: EEXIST. False
// with errno. Not every file system knows hard links, nor every other one a
// rename that replaces nothing: where neither is known, EPERM and the like.
bool RenameToFree(const std::string& from, const std::string& to);

// All of `text` in a file of that name, or the file as it was before.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace tracefs
