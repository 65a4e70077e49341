// Feed: where a viewer's numbers come from: running mounts, or traces.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/screen/activity.h"

namespace tracefs::screen {

// What there is to say beside the numbers.
struct Notice {
  enum class Level : uint8_t { kGood, kPlain, kBad };
  Level level = Level::kPlain;
  std::string text;  // safe for a terminal
};

// Used by one thread.
class Feed {
 public:
  virtual ~Feed() = default;

  // What to wait for besides keys.
  virtual void AddDescriptors(std::vector<pollfd>* fds) const = 0;
  // Counts what has come since. True if an interval has ended: there is
  // something new to show. Does not wait.
  virtual Result<bool> Take(Activity* activity) = 0;
  // Nothing more will come.
  virtual bool ended() const = 0;
  // Losses and alarms, worst first; asked after each interval.
  virtual std::vector<Notice> Notices() = 0;
  // A page about what records: lines that are safe for a terminal.
  virtual std::vector<std::string> About() = 0;

  // Begins to list operations that the filter keeps; those before are no
  // longer listed.
  virtual Status Follow(const std::string& filter) = 0;
  virtual void StopFollowing() = 0;
  // The lines that have come since, safe for a terminal.
  virtual Status TakeLines(std::vector<std::string>* lines) = 0;

  // Of traces: shows another part of the time, so many of its lengths later or
  // earlier; a longer (> 1) or shorter one. False if there is none.
  virtual bool Move(int /*steps*/) { return false; }
  virtual bool Zoom(double /*factor*/) { return false; }
  // The part of the time that is shown; empty of mounts.
  virtual std::string Window() const { return {}; }
};

}  // namespace tracefs::screen
