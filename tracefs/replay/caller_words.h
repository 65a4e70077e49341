// What a trace tells of who did something, against what an expression asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/format/record.h"

namespace tracefs::replay {

class CallerWords {
 public:
  void See(const format::Record& record) {
    numbers_ |= record.event.present;
    texts_ |= record.text_present;
  }
  // Why the filter `text` cannot be answered: it asks for something that no
  // operation tells. Empty: it can be.
  std::string Missing(std::string_view text) const;

 private:
  bool Tells(Field field) const;

  uint64_t numbers_ = 0;
  uint64_t texts_ = 0;
};

}  // namespace tracefs::replay
