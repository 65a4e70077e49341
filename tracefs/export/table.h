// The table of export formats: what --format knows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/export/exporter.h"

namespace tracefs {

struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Exporter> (*make)(OutputBuffer& out,
                                    const ExportOptions& options);
};

std::span<const ExportFormat> ExportFormats();

// All their names, with commas between.
std::string ExportFormatNames();

// nullptr if there is none of that name.
const ExportFormat* FindExportFormat(std::string_view name);

}  // namespace tracefs
