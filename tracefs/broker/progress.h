// SendProgress: which messages a broker has acknowledged, in whatever order it
// does so, as told by the threads of its library.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"

namespace tracefs {

// Threads: any.
class SendProgress {
 public:
  void Done(uint64_t number) {
    {
      std::lock_guard lock(mu_);
      if (number != first_) {
        if (number > first_) later_.insert(number);
        return;
      }
      ++first_;
      while (!later_.empty() && *later_.begin() == first_) {
        later_.erase(later_.begin());
        ++first_;
      }
    }
    event_.Set();
  }
  // The first failure stays.
  void Fail(int error, const std::string& why) {
    {
      std::lock_guard lock(mu_);
      if (status_.ok()) status_ = Status::SystemSaid(error, why);
    }
    event_.Set();
  }
  Result<uint64_t> Take() {
    event_.Clear();
    std::lock_guard lock(mu_);
    if (!status_.ok()) return status_;
    return first_;
  }
  int event_fd() const { return event_.get(); }

 private:
  EventFd event_;
  std::mutex mu_;
  // Guarded by mu_.
  uint64_t first_ = 0;        // all below are done
  std::set<uint64_t> later_;  // done, above
  Status status_;
};

}  // namespace tracefs
