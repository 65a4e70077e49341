// --step: a replay one operation at a time, forward and back.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/replay/action.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

// Used by one thread.
class Stepper {
 public:
  explicit Stepper(OutputBuffer& out) : out_(out) {}

  // Shows the operation and asks what to do; false ends this run, also at the
  // end of standard input and where it is told to end.
  bool Before(const replay::Action& action);
  // For a run from the begin: where it is to ask again. 0: nowhere.
  uint64_t again_at() const { return again_at_; }
  void Restart();

 private:
  bool NextLine(std::string* line);

  OutputBuffer& out_;
  std::string input_;        // read, and not yet a line
  uint64_t done_ = 0;        // operations, in this run
  uint64_t free_until_ = 0;  // so many are done before it asks
  uint64_t again_at_ = 0;
  bool going_ = false;  // to the end
};

}  // namespace tracefs
