// EventFd: a descriptor that poll(2) finds readable from Set until Clear: how
// one thread wakes another that waits for descriptors.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Threads: any.
class EventFd {
 public:
  // Without a descriptor, and errno says why, if the process has no more.
  EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  explicit operator bool() const { return fd_.valid(); }
  int get() const { return fd_.get(); }

  void Set() const {
    const uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof one);
  }
  void Clear() const {
    uint64_t count;
    (void)!::read(fd_.get(), &count, sizeof count);
  }

 private:
  UniqueFd fd_;
};

}  // namespace tracefs
