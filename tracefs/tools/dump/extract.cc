#include "tracefs/tools/dump/extract.h"

#include <algorithm>

namespace tracefs {
namespace {

struct Extract {
  std::string_view name;
  std::string_view property;  // with '.' at its end: all that begin so
};
constexpr Extract kExtracts[] = {
    {"config", "config.text"}, {"filter", "filter.text"},
    {"dag", "filter.dag"},     {"command", "command.line"},
    {"environment", "env."},   {"versions", "versions"},
};

const Extract* Find(std::string_view name) {
  const auto* const found = std::ranges::find(kExtracts, name, &Extract::name);
  return found == std::end(kExtracts) ? nullptr : found;
}

std::string Lines(std::string_view text) {
  if (text.empty()) return {};
  return std::string(text) + (text.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::string ExtractNames() {
  std::string names;
  for (const Extract& extract : kExtracts) {
    names += std::string(extract.name) + ", ";
  }
  return names + std::string(kExtractFiles);
}

std::string ExtractFrom(const format::TraceHeader& header,
                        std::string_view name) {
  const std::string_view property = Find(name)->property;
  if (!property.ends_with('.')) return Lines(header.Get(property));
  std::string text;
  for (const auto& [key, value] : header.properties) {
    if (!key.starts_with(property)) continue;
    text += Lines(key.substr(property.size()) + '=' + value);
  }
  return text;
}

}  // namespace tracefs
