// What files of tables are called: SERIAL-FIRST-LAST.FORMAT, with the numbers
// of the blocks that they are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tracefs {

struct TableName {
  std::string serial;
  uint64_t first = 0;
  uint64_t last = 0;  // among them
  std::string format;

  std::string Text() const;
  // Nothing on the name of something else.
  static std::optional<TableName> Parse(std::string_view text);
};

// A file that stands for others before it has its name (merge.h).
inline constexpr std::string_view kMergedPrefix = ".merged-";

}  // namespace tracefs
