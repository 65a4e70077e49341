#include "tracefs/mount/run_summary.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/event/process_record.h"
#include "tracefs/headline/headline.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/grouping.h"
#include "tracefs/query/table_text.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/tally/transfer.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using query::Row;
using Asked = query::GroupValue;

constexpr size_t kSlowest = 5;
constexpr size_t kFiles = 10;

[[gnu::format(printf, 1, 2)]] std::string Formatted(const char* format, ...) {
  std::array<char, 512> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

// What is asked of the operations of a trace: the same as
//   tracefs-dump --by op --values time_share,time,… TRACE
//   tracefs-dump --by path --filter 'errno = 0' --values count,bytes TRACE
//   tracefs-dump --sort latency --limit 5 TRACE
// in one pass.
query::GroupSpec Question(std::string_view keys, std::vector<Asked> values) {
  return {.keys = *query::ParseGroupKeys(keys, ""),
          .values = std::move(values)};
}

class Summary {
 public:
  void Add(const format::Record& record) {
    headline_.Add(record);
    operations_.AddRecord(record, 0);
    slowest_->Take(record, 0);
    // Names that are looked up but do not exist are not files.
    if (!tally::Failed(record.event)) files_.AddRecord(record, 0);
  }

  void Add(const ProcessRecord& record, std::string_view mount_point) {
    headline_.AddProcess(record, mount_point);
    using Kind = ProcessRecord::Kind;
    if (record.kind == Kind::kFork) {
      ++(record.child_tid != record.child.pid ? threads_ : processes_);
    } else if (record.kind == Kind::kExec) {
      ++programs_;
    } else if (record.kind == Kind::kExit && !record.is_thread()) {
      ++ended_;
      failed_ += record.signal || record.exit_code.value_or(0) != 0;
    }
  }

  std::string Text(const format::TraceReader& trace, const RunFacts& facts) {
    std::string text = "\n " + TerminalText(facts.command) + "\n";
    text += HeadlineLines(trace.context(), facts) + '\n';
    text += Table();
    text += SlowestText();
    text += FilesText();
    text += ProcessText(facts);
    text += LossesText(trace.stats());
    if (!facts.added.empty()) text += " " + facts.added + '\n';
    for (const auto& [key, value] : trace.description().header.properties) {
      if (key == "mount.lost") {
        text += " without root: " + TerminalText(value) + '\n';
      } else if (key == "visibility.invisible") {
        text += " never seen: " + TerminalText(value) + '\n';
      }
    }
    return text;
  }

 private:
  static std::string Cell(const query::Table& table, const Row& row,
                          size_t column) {
    if (!row[column].present) return {};
    return query::CellText(table.columns[column], row[column], 0);
  }
  // The sentences, and below them what could be saved.
  std::string HeadlineLines(const format::TraceContext& trace,
                            const RunFacts& facts) const {
    HeadlineFacts known = {.traces = {facts.trace}};
    if (trace.stats.process_records == 0) known.elapsed_ns = facts.elapsed_ns;
    const format::TraceContext* const traces[] = {&trace};
    const HeadlineText headline = headline_.Finish(traces, known);
    std::string text = " " + headline.sentences + '\n';
    for (const Saving& finding : headline.findings) {
      text += PadFront(SpanText(finding.time_ns), 11) + "  " +
              CountText(finding.count) + " " + finding.what + ": " +
              finding.command + '\n';
    }
    return text;
  }
  static std::string SizeCell(const query::Value& value) {
    return value.number == 0 ? "" : SizeText(value.number);
  }

  std::string Table() {
    query::Table table = operations_.Finish();
    (void)query::Arrange({.sort = "time"}, &table);  // it has such a column
    Row total = {query::Value::Text("total")};
    for (const Asked value : operations_.spec().values) {
      total.push_back(
          query::ValueOf(value, operations_.all(), nullptr, operations_.all()));
    }
    table.rows.push_back(std::move(total));
    std::string text =
        " % time      total  operations    errors       bytes       mean"
        "        max\n";
    for (const Row& row : table.rows) {
      text += Formatted("%7.2f", 100 * row[1].share);
      const std::pair<std::string, size_t> cells[] = {
          {DurationText(row[2].number), 10}, {Cell(table, row, 3), 11},
          {Cell(table, row, 4), 9},          {SizeCell(row[5]), 11},
          {DurationText(row[6].number), 10}, {DurationText(row[7].number), 10}};
      for (const auto& [cell, width] : cells)
        text += ' ' + PadFront(cell, width);
      text += "  " + row[0].text + '\n';
    }
    return text;
  }

  std::string SlowestText() {
    const query::Table table = slowest_->Finish().front();
    if (table.rows.empty()) return {};
    const auto text_of = [&table](const Row& row, std::string_view column) {
      return row[*table.Find(column)].text;
    };
    std::string text = "\n slowest\n";
    for (const Row& row : table.rows) {
      const std::string who = text_of(row, "cname");
      text += PadFront(Cell(table, row, *table.Find("latency")), 11) + "  " +
              PadEnd(text_of(row, "op"), 12) + ' ' +
              TerminalText(text_of(row, "path")) +
              (who.empty() ? "" : " by " + TerminalText(who)) + '\n';
    }
    return text;
  }

  std::string FilesText() {
    query::Table table = files_.Finish();
    std::erase_if(table.rows, [](const Row& row) { return !row[0].present; });
    if (table.rows.empty()) return {};
    const size_t files = table.rows.size();
    (void)query::Arrange({.sort = "count", .limit = kFiles}, &table);
    std::string text = Formatted("\n most used of %zu files\n", files);
    for (const Row& row : table.rows) {
      text += PadFront(Cell(table, row, 1), 11) + ' ' +
              PadFront(SizeCell(row[2]), 11) + "  " +
              TerminalText(row[0].text) + '\n';
    }
    return text;
  }

  std::string ProcessText(const RunFacts& facts) const {
    std::string text = "\n processes: ";
    if (processes_ + programs_ + ended_ == 0) {
      text += "not recorded";
    } else {
      text += Formatted(
          "%llu, %llu threads, %llu programs run, %llu ended with an error",
          static_cast<unsigned long long>(processes_),
          static_cast<unsigned long long>(threads_),
          static_cast<unsigned long long>(programs_),
          static_cast<unsigned long long>(failed_));
    }
    if (!facts.processes.empty()) text += "; " + facts.processes;
    return text + '\n';
  }

  static std::string LossesText(const format::ReadStats& stats) {
    std::string text = " losses: ";
    if (stats.losses.empty()) text += "none";
    bool first = true;
    for (const auto& [reason, count] : stats.losses) {
      if (!std::exchange(first, false)) text += ", ";
      text += std::to_string(count) + ' ' + TerminalText(reason);
    }
    if (!stats.final_record) text += "; the trace was cut";
    return text + '\n';
  }

  Headline headline_;
  query::Grouping operations_{Question(
      "op", {Asked::kTimeShare, Asked::kTime, Asked::kCount, Asked::kErrors,
             Asked::kBytes, Asked::kMean, Asked::kMax})};
  query::Grouping files_{Question("path", {Asked::kCount, Asked::kBytes})};
  const std::unique_ptr<query::Analysis> slowest_ =
      query::MakeSlowest({.top = kSlowest});
  uint64_t processes_ = 0, threads_ = 0, programs_ = 0, ended_ = 0, failed_ = 0;
};

}  // namespace

Result<std::string> SummaryOf(const std::string& trace, const RunFacts& facts) {
  Summary summary;
  reader::InputSinks sinks;
  std::unique_ptr<reader::TraceInput> input;  // its sinks use it
  sinks.process = [&](const ProcessRecord& record) {
    summary.Add(record, MountPointOf(input->trace(0).context()));
  };
  auto opened = reader::TraceInput::Open({.traces = {trace}}, std::move(sinks));
  if (!opened.ok()) return opened.status();
  input = *std::move(opened);
  input->ForEach(
      [&](const format::Record& record, size_t) { summary.Add(record); });
  if (Status s = input->status(); !s.ok()) return s;
  return summary.Text(input->trace(0), facts);
}

}  // namespace tracefs
