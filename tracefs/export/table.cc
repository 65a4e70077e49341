#include "tracefs/export/table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/export/buildxl.h"
#include "tracefs/export/csv.h"
#include "tracefs/export/ctf.h"
#include "tracefs/export/feed_exporter.h"
#include "tracefs/export/fio.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/nfsdb.h"
#include "tracefs/export/parquet.h"
#include "tracefs/export/perfetto.h"
#include "tracefs/export/process_tree.h"
#include "tracefs/export/sqlite.h"
#include "tracefs/export/stacks.h"
#include "tracefs/export/strace.h"
#include "tracefs/export/text.h"
#include "tracefs/export/xml.h"
#include "tracefs/export/xray.h"

namespace tracefs {
namespace {

template <size_t feed>
std::unique_ptr<Exporter> MakeFeed(OutputBuffer& out, const ExportOptions&) {
  return MakeFeedExporter(out, kFeeds[feed].make());
}

// Our own, and every feed.
template <size_t... feed>
constexpr auto AllFormats(std::index_sequence<feed...>) {
  using enum ExportKind;
  // clang-format off
  return std::to_array<ExportFormat>({
      {"text", "one line an operation, for people", &MakeTextExporter},
      {"jsonl", "JSON Lines: one object an operation", &MakeJsonlExporter,
       kLines, {}, kIsJson},
      {kFeeds[feed].name, kFeeds[feed].summary, &MakeFeed<feed>,
       kLines, {}, static_cast<uint8_t>(kFeeds[feed].json ? kIsJson : 0)}...,
      {"csv", "comma-separated values with a head line", &MakeCsvExporter,
       kText, kCsvChoices, kHasColumns},
      {"strace", "as strace -f -ttt -T -y prints system calls",
       &MakeStraceExporter, kText, kStraceChoices},
      {"xml", "one document, valid against trace.xsd", &MakeXmlExporter, kText},
#if TRACEFS_HAVE_SQLITE
      {"sqlite", "a database: operations, paths, processes, losses, views",
       &MakeSqliteExporter, kFile, kSqliteChoices},
#endif
      {"parquet", "a table for pandas, DuckDB, Spark and the like",
       &MakeParquetExporter, kBinary, kParquetChoices, kHasColumns,
       "partition"},
      {"ctf", "a CTF 1.8 folder for babeltrace2 and Trace Compass",
       &MakeCtfExporter, kFolder},
      {"perfetto", "Chrome's and Perfetto's trace events, as JSON",
       &MakePerfettoExporter, kText, {}, kIsJson},
      {"speedscope", "stacks of process, path and operation for speedscope",
       &MakeSpeedscopeExporter, kText, kStackChoices, kIsJson},
      {"folded", "the same stacks, a line each, for flame graphs",
       &MakeFoldedExporter, kText, kStackChoices},
      {"xray-fdr", "a flight recorder log for llvm-xray",
       &MakeXrayFdrExporter, kBinary, kXrayFdrChoices},
      {"xray-basic", "a plain log for llvm-xray", &MakeXrayBasicExporter,
       kBinary, kXrayBasicChoices},
      {"fio", "an I/O log for fio --read_iolog", &MakeFioExporter, kText},
      {"tree", "processes: who started whom, and what became of each",
       &MakeTreeExporter, kText, kTreeChoices, kFollowsProcesses},
      {"buildxl", "BuildXL's file access trace",
       &MakeBuildXlExporter, kText, kBuildXlChoices, kFollowsProcesses,
       "split"},
      {"nfsdb", "what CAS's tracer writes, for its parser",
       &MakeNfsdbExporter, kText, kNfsdbRawChoices, kFollowsProcesses},
      {"nfsdb-json", "what CAS's parser makes of it: an entry for each program",
       &MakeNfsdbJsonExporter, kText, kNfsdbChoices,
       kIsJson | kFollowsProcesses},
  });
  // clang-format on
}
constexpr auto kFormats =
    AllFormats(std::make_index_sequence<std::size(kFeeds)>());

// "a, b, c" of those that `wanted` keeps.
template <typename Wanted>
std::string Names(Wanted wanted) {
  std::string names;
  for (const ExportFormat& format : kFormats) {
    if (wanted(format)) AppendWord(format.name, ", ", &names);
  }
  return names;
}

bool Takes(const ExportChoice& choice, std::string_view value) {
  if (choice.values == "FILE") return !value.empty();
  if (choice.values == "N") {
    const auto number = ParseUnsigned(value);
    return number && *number != 0 && *number <= INT32_MAX;
  }
  std::string_view rest = choice.values;
  while (!rest.empty()) {
    if (TakeUpTo(rest, ' ') == value) return true;
  }
  return false;
}

}  // namespace

std::span<const ExportFormat> ExportFormats() { return kFormats; }

std::string ExportFormatNames() {
  return Names([](const ExportFormat&) { return true; });
}

std::string LineFormatNames() {
  return Names(
      [](const ExportFormat& f) { return f.kind == ExportKind::kLines; });
}

const ExportFormat* FindExportFormat(std::string_view name) {
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const ExportFormat* FindLineFormat(std::string_view name) {
  const ExportFormat* const format = FindExportFormat(name);
  return format != nullptr && format->kind == ExportKind::kLines ? format
                                                                 : nullptr;
}

ExportKind KindOf(const ExportFormat& format, const ExportOptions& options) {
  const bool folder = !format.folder_choice.empty() &&
                      options.Choice(format.folder_choice) == "yes";
  return folder ? ExportKind::kFolder : format.kind;
}

Status AddChoice(const ExportFormat& format, std::string_view choice,
                 ExportOptions* options) {
  const size_t equals = std::min(choice.find('='), choice.size());
  const std::string name(choice.substr(0, equals));
  const std::string_view value =
      choice.substr(std::min(equals + 1, choice.size()));
  const std::string where = "--set: " + std::string(format.name);
  std::string known;
  std::vector<std::string_view> names;
  for (const ExportChoice& c : format.choices) {
    if (c.name == name) {
      if (!Takes(c, value)) {
        return Status::Invalid(where + ": " + name + " is one of " +
                               std::string(c.values) + ", not \"" +
                               std::string(value) + "\"");
      }
      options->choices[name] = value;
      return {};
    }
    names.push_back(c.name);
    known += (known.empty() ? "" : ", ") + std::string(c.name);
  }
  if (known.empty()) return Status::Invalid(where + " has no such choices");
  return Status::Invalid(where + " has no \"" + name + "\"" +
                         DidYouMean(name, names) + "; it has " + known);
}

}  // namespace tracefs
