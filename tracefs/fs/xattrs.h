// Xattrs: the extended attributes of a file behind an O_PATH descriptor.
#pragma once

#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "tracefs/fs/inode_table.h"

#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif

namespace tracefs {

// struct xattr_args of linux/xattr.h, since 6.13.
struct XattrArgs {
  alignas(8) uint64_t value;
  uint32_t size;
  uint32_t flags;
};

// Neither f…xattr nor …xattrat with AT_EMPTY_PATH takes an O_PATH descriptor;
// both ways lead through its link in /proc/self/fd, but that of …xattrat does
// not need /proc to be where it was.
inline std::atomic<bool> has_xattrat{true};

// The …xattrat calls on a descriptor's file, or the older ones if the kernel
// lacks those (before 6.13).
class Xattrs {
 public:
  // `proc_self_fd`: /proc/self/fd.
  Xattrs(int proc_self_fd, BackingFd fd)
      : proc_(proc_self_fd), fd_(std::move(fd)) {
    *std::to_chars(link_.data(), link_.data() + link_.size() - 1, fd_.get())
         .ptr = '\0';
  }

  int fd() const { return fd_.get(); }

  ssize_t Get(const char* name, char* value, size_t size) const {
    XattrArgs args = {reinterpret_cast<uint64_t>(value),
                      static_cast<uint32_t>(size), 0};
    return Call(
        [&] {
          return ::syscall(SYS_getxattrat, proc_, link_.data(), 0, name, &args,
                           sizeof args);
        },
        [&](const char* path) { return ::getxattr(path, name, value, size); });
  }

  ssize_t Set(const char* name, const char* value, size_t size,
              int flags) const {
    XattrArgs args = {reinterpret_cast<uint64_t>(value),
                      static_cast<uint32_t>(size),
                      static_cast<uint32_t>(flags)};
    return Call(
        [&] {
          return ::syscall(SYS_setxattrat, proc_, link_.data(), 0, name, &args,
                           sizeof args);
        },
        [&](const char* path) {
          return static_cast<ssize_t>(
              ::setxattr(path, name, value, size, flags));
        });
  }

  ssize_t List(char* list, size_t size) const {
    return Call(
        [&] {
          return ::syscall(SYS_listxattrat, proc_, link_.data(), 0, list, size);
        },
        [&](const char* path) { return ::listxattr(path, list, size); });
  }

  ssize_t Remove(const char* name) const {
    return Call(
        [&] {
          return ::syscall(SYS_removexattrat, proc_, link_.data(), 0, name);
        },
        [&](const char* path) {
          return static_cast<ssize_t>(::removexattr(path, name));
        });
  }

 private:
  template <typename New, typename Old>
  ssize_t Call(New&& with_fd, Old&& with_path) const {
    if (has_xattrat.load(std::memory_order_relaxed)) {
      const long rc = with_fd();
      if (rc >= 0 || errno != ENOSYS) return rc;
      has_xattrat.store(false, std::memory_order_relaxed);
    }
    return with_path(("/proc/self/fd/" + std::to_string(fd_.get())).c_str());
  }

  const int proc_;
  const BackingFd fd_;
  std::array<char, 16> link_;
};

}  // namespace tracefs
