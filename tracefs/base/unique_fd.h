// UniqueFd: owns one file descriptor. 0 is a valid descriptor; -1 is none.
#pragma once

#include <unistd.h>

#include <utility>

namespace tracefs {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor away; the caller closes it.
  int Release() { return std::exchange(fd_, -1); }
  // Closes what is owned and owns `fd`. Keeps errno.
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

}  // namespace tracefs
