#include "tracefs/export/table.h"

#include "tracefs/export/feed.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/text.h"

namespace tracefs {
namespace {

constexpr ExportFormat kFormats[] = {
    {"text", "one line an operation, for people", &MakeTextExporter},
    {"jsonl", "JSON Lines: one object an operation", &MakeJsonlExporter},
    {"ocsf", "OCSF 1.3.0, File System Activity, as JSON Lines",
     &MakeOcsfExporter},
    {"ecs", "Elastic Common Schema 8.17, as JSON Lines", &MakeEcsExporter},
    {"cef", "ArcSight Common Event Format", &MakeCefExporter},
};

}  // namespace

std::span<const ExportFormat> ExportFormats() { return kFormats; }

const ExportFormat* FindExportFormat(std::string_view name) {
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace tracefs
