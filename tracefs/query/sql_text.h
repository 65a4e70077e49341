// Names and texts as SQL has them.
#pragma once

#include <string>
#include <string_view>

namespace tracefs::query {

// "a ""b""": what a column is called.
inline std::string SqlName(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

// 'it''s'.
inline std::string SqlText(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace tracefs::query
