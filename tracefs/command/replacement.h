// Replacement: a file or folder that is made under another name beside its
// place, and takes its place when it is whole. Until then, and if it never is,
// what stood there stays as it was.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Used by one thread.
class Replacement {
 public:
  enum class Kind { kFile, kFolder };

  // A link is followed: what it leads to is replaced. What is no file, such as
  // a pipe or a device, is written to as it is. A folder gives way only if it
  // is empty or was made by a Replacement, so that a slip of the hand deletes
  // nothing.
  static Result<Replacement> Begin(const std::string& path, Kind kind);

  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  // Takes away what was made, unless it was committed.
  ~Replacement();

  // Where it is being made; of a file also open for writing.
  const std::string& path() const { return temporary_; }
  int fd() const { return fd_.get(); }
  // False: what is there is written to as it is.
  bool replaces() const { return replaces_; }

  // Makes it durable and puts it in its place. Once.
  Status Commit();

 private:
  Replacement(std::string path, std::string temporary, Kind kind)
      : path_(std::move(path)), temporary_(std::move(temporary)), kind_(kind) {}

  std::string path_;
  std::string temporary_;
  Kind kind_;
  UniqueFd fd_;
  bool replaces_ = true;
  bool done_ = false;
};

}  // namespace tracefs
