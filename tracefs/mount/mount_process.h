// MountProcess: a process of its own that serves the mount of tracefs-run, in a
// session of its own, so that signals of the terminal are for the command.
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
  // Returns when it is mounted, with `feed` bringing it process records. An
  // error says what the process said. While there is one thread.
  static Result<MountProcess> Start(const MountOptions& options,
                                    ProcessFeed& feed);

  pid_t pid() const { return pid_; }
  // What it has said for people so far, up to 64 KiB.
  std::string Words() const;
  // Waits for its end, which comes with that of the mount. Its exit status.
  int Wait() const;

 private:
  MountProcess(pid_t pid, UniqueFd words)
      : pid_(pid), words_(std::move(words)) {}

  pid_t pid_;
  UniqueFd words_;
};

}  // namespace tracefs
