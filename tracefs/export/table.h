// The table of export formats: what --format knows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/export/exporter.h"

namespace tracefs {

enum class ExportKind : uint8_t {
  kLines,   // a line for each operation, complete at any time
  kText,    // one document, from its head to its end
  kBinary,  // the same, not for a terminal
  kFile,    // its exporter makes the file ExportOptions::path
  kFolder,  // its exporter makes the folder ExportOptions::path
};

// A choice of one format: --set NAME=VALUE.
struct ExportChoice {
  std::string_view name;
  // "yes no"; "N": a number from 1 on; "FILE": a path.
  std::string_view values;
  std::string_view help;  // with the default
};

// What else a format is. A format has a set of these.
enum ExportTrait : uint8_t {
  kIsJson = 1 << 0,      // --safe-numbers is for it
  kHasColumns = 1 << 1,  // --columns is for it
  // It follows processes: it gets the records of processes, whichever
  // operations are chosen.
  kFollowsProcesses = 1 << 2,
};

struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Exporter> (*make)(OutputBuffer& out,
                                    const ExportOptions& options);
  ExportKind kind = ExportKind::kLines;
  std::span<const ExportChoice> choices = {};
  uint8_t traits = 0;
  // A choice that, set to "yes", makes it one of kFolder.
  std::string_view folder_choice = {};

  bool Has(ExportTrait trait) const { return (traits & trait) != 0; }
};

// As it is with these choices.
ExportKind KindOf(const ExportFormat& format, const ExportOptions& options);

// All of them.
std::span<const ExportFormat> ExportFormats();

// All their names, with commas between; and those of lines, which can be
// written while operations go on.
std::string ExportFormatNames();
std::string LineFormatNames();

// nullptr if there is none of that name.
const ExportFormat* FindExportFormat(std::string_view name);
const ExportFormat* FindLineFormat(std::string_view name);

// Takes "NAME=VALUE". kInvalid, with what there is, if the format has no such
// choice or value.
Status AddChoice(const ExportFormat& format, std::string_view choice,
                 ExportOptions* options);

}  // namespace tracefs
