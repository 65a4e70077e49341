// LineQueue: keeps lines about a moment until the operations before it have
// been listed. Blocks are read a little before their operations are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tracefs {

// Used by one thread.
class LineQueue {
 public:
  void Add(uint64_t real_ns, std::string line) {
    lines_.emplace(real_ns, std::move(line));
  }
  // Hands out, in order, what is before `until_ns` (since the epoch); and what
  // is more than the queue is to hold.
  template <typename Use>
  void TakeUntil(uint64_t until_ns, Use use) {
    while (!lines_.empty() &&
           (lines_.begin()->first < until_ns || lines_.size() > kMaxKept)) {
      use(lines_.begin()->second);
      lines_.erase(lines_.begin());
    }
  }

 private:
  // Some hours of alarms: rules tell no more than one a second.
  static constexpr size_t kMaxKept = 10000;

  std::multimap<uint64_t, std::string> lines_;
};

}  // namespace tracefs
