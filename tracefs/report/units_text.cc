#include "tracefs/report/units_text.h"

namespace tracefs::report {

std::string_view ValueHead(std::string_view key) {
  if (key == "count") return "ops";
  return key.substr(0, key.find("_ns"));
}

std::string ValueText(std::string_view key, uint64_t value) {
  if (key.ends_with("_ns")) return SpanText(value);
  return key == "bytes" ? SizeText(value) : CountText(value);
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    // What follows a backslash belongs to it, another one too.
    const std::string_view pair = text.substr(i, 2);
    if (pair == "\\n") {
      line += "\u21b5";
      ++i;
    } else if (pair[0] == '\\') {
      line += pair;
      ++i;
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace tracefs::report
