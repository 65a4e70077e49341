// What a watchdog has been told, for the one that takes its place if it dies.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/mount_info.h"

namespace tracefs {

struct WatchNote {
  bool goodbye = false;
  bool stays_shut = false;
  bool guards = false;
  MountPlace place = {};  // if it guards
  std::string path = {};  // of place
};

// A socket pair in which notes wait for the next one; nobody else has its ends.
class WatchNotes {
 public:
  static Result<WatchNotes> Make();

  // For DetachChild.
  int reading() const { return reading_.get(); }
  int writing() const { return writing_.get(); }

  // After each change; there are few.
  void Leave(const WatchNote& note) const;
  // The last one that was left, which stays there; else nothing is noted.
  WatchNote Take();

 private:
  UniqueFd reading_;
  UniqueFd writing_;
};

}  // namespace tracefs
