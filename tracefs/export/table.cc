#include "tracefs/export/table.h"

#include <array>
#include <iterator>
#include <utility>

#include "tracefs/export/feed.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/text.h"

namespace tracefs {
namespace {

template <size_t feed>
std::unique_ptr<Exporter> MakeFeed(OutputBuffer& out, const ExportOptions&) {
  return MakeFeedExporter(out, kFeeds[feed].make());
}

// Our own, and every feed.
template <size_t... feed>
constexpr auto AllFormats(std::index_sequence<feed...>) {
  return std::to_array<ExportFormat>(
      {{"text", "one line an operation, for people", &MakeTextExporter},
       {"jsonl", "JSON Lines: one object an operation", &MakeJsonlExporter},
       {kFeeds[feed].name, kFeeds[feed].summary, &MakeFeed<feed>}...});
}
constexpr auto kFormats =
    AllFormats(std::make_index_sequence<std::size(kFeeds)>());

}  // namespace

std::span<const ExportFormat> ExportFormats() { return kFormats; }

std::string ExportFormatNames() {
  std::string names;
  for (const ExportFormat& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += format.name;
  }
  return names;
}

const ExportFormat* FindExportFormat(std::string_view name) {
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace tracefs
