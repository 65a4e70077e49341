// MountProcess: a separate process that serves the mount of tracefs-run, in its
// own session, so that signals of the terminal go to the command.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/process_feed.h"

namespace tracefs {

class MountProcess {
 public:
  // Returns when it is mounted; `feed` brings it process records. An error has
  // the process's message. While there is only one thread.
  static Result<MountProcess> Start(const MountOptions& options,
                                    ProcessFeed& feed);

  pid_t pid() const { return pid_; }
  // What it has said for people so far, up to 64 KiB.
  std::string Words() const;
  // Waits for its end, which comes with that of the mount. Returns its exit
  // status.
  int Wait() const;

 private:
  MountProcess(pid_t pid, UniqueFd words)
      : pid_(pid), words_(std::move(words)) {}

  pid_t pid_;
  UniqueFd words_;
};

}  // namespace tracefs
