// SafeNumbers: JSON in which whole numbers that a double cannot hold, beyond
// 2^53 - 1, are strings: for readers that take every number for a double.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/text/output_buffer.h"

namespace tracefs {

// Takes JSON texts and passes them on. Used by one thread.
class SafeNumbers final : public OutputBuffer {
 public:
  explicit SafeNumbers(OutputBuffer& out) : out_(out) {}

 protected:
  Status Emit(std::string_view text) override;

 private:
  void EndNumber();

  OutputBuffer& out_;
  // Where the last text ended.
  bool in_string_ = false;
  bool escaped_ = false;
  std::string number_;
};

}  // namespace tracefs
