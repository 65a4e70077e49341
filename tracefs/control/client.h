// ControlClient: asks the mount that a path lies in.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/place.h"

namespace tracefs {

// Used by one thread.
class ControlClient {
 public:
  // The mount at `path`, which must be one of this process's effective user:
  // the mount of another user is served by that user's program. Refuses a
  // socket whose listener is neither root nor the user who mounted it. kSystem
  // with the next step if it cannot be reached.
  static Result<ControlClient> Connect(const std::string& path,
                                       std::chrono::seconds patience);
  // The socket itself; for tests.
  static Result<ControlClient> ConnectSocket(const std::string& socket_path,
                                             uid_t owner,
                                             std::chrono::seconds patience);

  // Sends one request (a JSON object, without a line end) with descriptors,
  // and waits for its answer, at most `patience` in all: the result's JSON, or
  // the error that the mount answered. Either is bounded and printable; it is
  // nevertheless only the claim of the other end.
  Result<std::string> Call(std::string_view request,
                           std::span<const int> files = {});

  // After a call that is followed by a stream: the stream. Reads wait
  // indefinitely.
  UniqueFd TakeStream();

  // The process that listens at the socket, to wait for its end: a pidfd, or
  // nothing if that is impossible.
  UniqueFd ServerPidfd() const;

  const MountIdentity& mount() const { return mount_; }

 private:
  using Clock = std::chrono::steady_clock;

  ControlClient(UniqueFd fd, std::chrono::seconds patience)
      : fd_(std::move(fd)), patience_(patience) {}
  Status Wait(short events, Clock::time_point deadline) const;
  Status Send(std::string_view text, std::span<const int> files,
              Clock::time_point deadline) const;
  Result<std::string> ReadLine(Clock::time_point deadline) const;

  UniqueFd fd_;
  std::chrono::seconds patience_;
  MountIdentity mount_;
};

}  // namespace tracefs
