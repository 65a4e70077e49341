// The system calls that a daemon at work may make.
//
// Any other call fails with EPERM and is counted. It kills nobody: it may be a
// harmless one of a newer C library, and somebody's read or write would die
// with it. ENOSYS would be the friendlier answer to a library, but one that
// reached the kernel as the result of an operation would switch that operation
// off for the whole mount.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Answers refused calls, on a thread of its own, and counts them.
class RefusalCounter {
 public:
  // `notifications`: what the kernel made with the filter.
  explicit RefusalCounter(UniqueFd notifications);
  ~RefusalCounter();
  RefusalCounter(const RefusalCounter&) = delete;
  RefusalCounter& operator=(const RefusalCounter&) = delete;

  // "socket 2, execve 1"; empty if there were none.
  std::string Text() const;

 private:
  static constexpr int kCalls = 1024;  // higher numbers share the last place

  void Serve();
  void AnswerOne();

  UniqueFd notifications_;
  const EventFd stop_;
  std::array<std::atomic<uint64_t>, kCalls> counts_{};
  std::thread thread_;
};

struct SeccompOptions {
  bool uring = false;        // io_uring and memory policy calls as well
  bool receiver = false;     // only what tracefs-recv calls
  bool file_handles = true;  // open_by_handle_at as well
};

struct SeccompResult {
  bool installed = false;
  std::string why;         // it is not
  UniqueFd notifications;  // for a RefusalCounter; none if not counted
};

// Restricts this thread, and those it makes, for good. Needs no_new_privs or
// CAP_SYS_ADMIN. Not installed where the build has no libseccomp or a
// sanitizer; kSystem if the kernel refuses.
Result<SeccompResult> InstallSeccompFilter(const SeccompOptions& options);

// "libseccomp 2.5.4" or why there is none, for --version.
std::string SeccompVersion();

}  // namespace tracefs
