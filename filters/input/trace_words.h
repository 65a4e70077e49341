// Words that only filters of traces have: what is not known, or not yet, when a
// filter decides about an operation that is being recorded. A config refuses
// them by name; tracefs-dump evaluates them beside the compiled rest.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "tracefs/base/spelling.h"

namespace tracefs {

enum class TraceWord {
  kTime,  // when it began, since 1970
  kFh,
  kTarget,
  kXattr,
  kInferred,
  kHost,
};

struct TraceWordRow {
  std::string_view name;
  TraceWord word;
  bool text;
};
inline constexpr std::array kTraceWords = {
    TraceWordRow{"time", TraceWord::kTime, false},
    TraceWordRow{"fh", TraceWord::kFh, false},
    TraceWordRow{"target", TraceWord::kTarget, true},
    TraceWordRow{"xattr", TraceWord::kXattr, true},
    TraceWordRow{"inferred", TraceWord::kInferred, false},
    TraceWordRow{"host", TraceWord::kHost, true},
};

// In upper or lower case; null if it is none.
inline const TraceWordRow* FindTraceWord(std::string_view name) {
  for (const TraceWordRow& row : kTraceWords) {
    if (SameButForCase(row.name, name)) return &row;
  }
  return nullptr;
}

}  // namespace tracefs
