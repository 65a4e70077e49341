// What a trace tells of who did something, against what an expression asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tracefs/format/record.h"

namespace tracefs::replay {

class CallerWords {
 public:
  // `question`: a filter, which outlives it.
  explicit CallerWords(std::string_view question);

  // `is_answer`: the filter keeps it.
  void See(format::Record& record, bool is_answer);
  // Why the question cannot be answered: it asks for something that no
  // operation tells. `process_records`: the trace has such. Empty: it can be.
  std::string Missing(bool process_records) const;
  // How many processes have changed something and are no answer, but may be:
  // the question is about processes above them, and who these are is not known.
  size_t doubtful() const { return doubtful_.size(); }

 private:
  bool Tells(Field field) const;
  std::string AllTold() const;

  const std::string_view question_;
  bool asks_for_ancestors_ = false;
  uint64_t numbers_ = 0;
  uint64_t texts_ = 0;
  std::unordered_set<uint64_t> doubtful_;
};

}  // namespace tracefs::replay
