#include "tracefs/export/exporter.h"

namespace tracefs {

std::vector<std::pair<std::string_view, uint64_t>> LeftOut::Kinds() const {
  std::vector<std::pair<std::string_view, uint64_t>> kinds;
  const auto add = [&kinds](std::string_view name, uint64_t count) {
    if (count != 0) kinds.emplace_back(name, count);
  };
  add("operations", operations);
  add("process_records", processes);
  add("counted_groups", counted);
  add("alarms", alarms);
  return kinds;
}

std::string LeftOut::Text() const {
  std::string text;
  const auto kinds = Kinds();
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i != 0) text += i + 1 == kinds.size() ? " and " : ", ";
    text += std::to_string(kinds[i].second) + " ";
    for (const char c : kinds[i].first) text += c == '_' ? ' ' : c;
    if (kinds[i].second == 1) text.pop_back();
  }
  return text;
}

}  // namespace tracefs
