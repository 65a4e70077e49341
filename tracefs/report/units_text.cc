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

}  // namespace tracefs::report
