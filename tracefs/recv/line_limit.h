// LineLimit: lines for an operator, but no more of them than anyone can read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tracefs/base/notice.h"

namespace tracefs {

// Of one thread.
class LineLimit {
 public:
  static constexpr int kMostPerSecond = 20;

  // Says it, or counts it for a line that says how many were not said.
  void Say(NoticeId id, const std::string& line) {
    const auto now = std::chrono::steady_clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      if (unsaid_ != 0) {
        Notify(NoticeId::kSender,
               "… " + std::to_string(unsaid_) + " more lines like these");
      }
      second_ = now;
      lines_ = 0;
      unsaid_ = 0;
    }
    if (++lines_ > kMostPerSecond) {
      ++unsaid_;
      return;
    }
    Notify(id, line);
  }

 private:
  std::chrono::steady_clock::time_point second_{};
  int lines_ = 0;
  uint64_t unsaid_ = 0;
};

}  // namespace tracefs
