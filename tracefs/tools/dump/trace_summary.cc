#include "tracefs/tools/dump/trace_summary.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/text.h"
#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/frame.h"
#include "tracefs/query/group_counted.h"
#include "tracefs/query/table_text.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using format::ReadStats;

constexpr size_t kNameColumns = 24;
constexpr size_t kMostKeyColumns = 60;

// What is asked of operations, and their places in an answer.
using Asked = query::GroupValue;
constexpr std::array kValues = {Asked::kCount, Asked::kErrors, Asked::kBytes,
                                Asked::kTime,  Asked::kMean,   Asked::kMax,
                                Asked::kBefore};
enum Place : uint8_t { kCount, kErrors, kBytes, kTime, kMean, kMax, kBefore };

query::Row ValuesOf(const query::Tally& tally) {
  query::Row values;
  for (const Asked value : kValues) {
    values.push_back(query::ValueOf(value, tally, nullptr, tally));
  }
  return values;
}

std::string MomentText(uint64_t real_ns, TimeStyle style) {
  const uint64_t seconds = real_ns / kNsPerSecond;
  char text[64];
  if (style == TimeStyle::kEpoch) {
    snprintf(text, sizeof text, "%llu.%09llu",
             static_cast<unsigned long long>(seconds),
             static_cast<unsigned long long>(real_ns % kNsPerSecond));
    return text;
  }
  const auto in_zone = style == TimeStyle::kUtc ? &UtcText : &LocalText;
  return in_zone(static_cast<time_t>(seconds), "%Y-%m-%d %H:%M:%S %z");
}

// One line, or several below each other, of a value that may hold anything.
std::string ValueText(std::string_view value) {
  std::string text;
  const bool many = value.find('\n') != std::string_view::npos;
  while (!value.empty()) {
    const std::string_view line = TakeUpTo(value, '\n');
    text += (many ? "\n    " : "") + TerminalText(line);
  }
  return text;
}

struct Losses {
  std::map<std::string, uint64_t> by_reason;
  std::map<uint16_t, uint64_t> by_message;  // of what was still counted
  uint64_t missing_blocks = 0;
  uint64_t damaged_bytes = 0;
  uint64_t cut_bytes = 0;
  uint64_t missing_events = 0;
  uint64_t unreadable_blocks = 0;
  // No losses.
  uint64_t alarms = 0;
  uint64_t files = 0;  // embedded, or named as left out
  uint64_t index_pieces = 0;
};

Losses SumLosses(const std::vector<const ReadStats*>& traces) {
  Losses sum;
  for (const ReadStats* stats : traces) {
    for (const auto& [reason, count] : stats->losses) {
      sum.by_reason[reason] += count;
    }
    for (const auto& [msg_id, count] : stats->lost_messages) {
      sum.by_message[msg_id] += count;
    }
    sum.missing_blocks += stats->missing_blocks;
    sum.damaged_bytes += stats->damaged_bytes;
    sum.cut_bytes += stats->cut_bytes;
    // What is in blocks that cannot be read is not missing.
    if (stats->undecodable_blocks == 0) {
      sum.missing_events += stats->MissingEvents();
    }
    sum.unreadable_blocks += stats->undecodable_blocks;
    sum.alarms += stats->alarms;
    sum.files += stats->files;
    sum.index_pieces += stats->index_pieces;
  }
  return sum;
}

}  // namespace

std::string DescribeTrace(const format::TraceReader& trace, TimeStyle style) {
  const format::Preamble& preamble = trace.preamble();
  const format::TraceHeader& header = trace.description().header;
  std::string text = TerminalWord(trace.context().name) + "\n";
  const auto line = [&text](std::string_view key, std::string_view value) {
    text +=
        "  " + PadEnd(ValueText(key), kNameColumns) + ValueText(value) + "\n";
  };
  line("format version", std::to_string(preamble.format_version) +
                             ", for readers from version " +
                             std::to_string(preamble.min_reader_version));
  line("serial", format::SerialText(preamble.serial));
  line("chain", preamble.chain);
  line("tracer", std::to_string(header.tracer_id));
  if (trace.description().has_clock) {
    line("begin", MomentText(header.clock.real_ns, style));
  }
  for (const auto& [key, value] : header.properties) line(key, value);
  return text;
}

std::string DescribeTraceAsJson(const format::TraceReader& trace) {
  const format::Preamble& preamble = trace.preamble();
  const format::TraceHeader& header = trace.description().header;
  std::string text;
  JsonWriter json(&text);
  json.PutExact("trace", trace.context().name);
  json.Put("format_version", preamble.format_version);
  json.Put("min_reader_version", preamble.min_reader_version);
  json.PutExact("serial", format::SerialText(preamble.serial));
  json.PutExact("chain", preamble.chain);
  json.Put("tracer", header.tracer_id);
  if (trace.description().has_clock) json.Put("ts", header.clock.real_ns);
  json.Open("properties");
  for (const auto& [key, value] : header.properties) {
    // Keys, too, are from the trace.
    const std::string quoted = JsonString(key);
    json.PutExact(std::string_view(quoted).substr(1, quoted.size() - 2), value);
  }
  json.Close();
  json.End();
  return text + "\n";
}

query::GroupSpec OpStats::Question() {
  return {.keys = *query::ParseGroupKeys("op", ""),
          .values = {kValues.begin(), kValues.end()}};
}

void OpStats::TakeOperations(query::Grouping* answer) {
  const query::Table table = answer->Finish();
  for (const query::Row& row : table.rows) {
    operations_.all.push_back({row[0].text,
                               "\"op\":\"" + row[0].text + "\"",
                               {row.begin() + 1, row.end()}});
  }
  std::ranges::sort(operations_.all, {},
                    [](const Line& line) { return OpFromName(line.name); });
  operations_.total = ValuesOf(answer->all());
}

void OpStats::AddCounts(size_t trace, const format::AggregateRecord& record,
                        bool both_files) {
  const DriverName by{trace, record.tracer_id, record.aggregate};
  if (drivers_.size() >= kMaxDrivers && !drivers_.contains(by)) {
    too_many_ = true;
    return;
  }
  Driver& driver = drivers_[by];
  driver.has_total |= record.total;
  both_files = both_files && query::IsAboutFiles(record);
  (record.total ? driver.total : driver.periods).Add(record, both_files);
  driver.maybe_twice |=
      both_files &&
      std::ranges::count(record.key,
                         static_cast<uint16_t>(format::ArgId::kKeyOp),
                         &format::AggregateKeyPart::arg_id) == 0;
}

void OpStats::Counted::Add(const format::AggregateRecord& record,
                           bool both_files) {
  std::string name = AggregateKeysText(record);
  std::string members;
  JsonWriter json = JsonWriter::Within(&members);
  PutAggregateKey(record, &json);
  if (keys_.size() >= kMost && !places_.contains(name)) {
    name = "(other)";
    members = "\"other\":true";
  }
  const auto [at, fresh] = places_.try_emplace(name, keys_.size());
  if (fresh) keys_.push_back({std::move(name), std::move(members), {}});
  keys_[at->second].tally.Add(
      query::TallyOf(record, both_files, /*by_file=*/true));
  total_.Add(query::TallyOf(record, both_files, /*by_file=*/false));
}

OpStats::Lines OpStats::Counted::Answer() const {
  Lines lines;
  for (const auto& [name, members, tally] : keys_) {
    lines.all.push_back({name, members, ValuesOf(tally)});
  }
  lines.total = ValuesOf(total_);
  return lines;
}

std::string OpStats::Table(std::string_view head, const Lines& lines) {
  const bool any_before = lines.total[kBefore].number != 0;
  size_t width = 16;
  for (const Line& one : lines.all) {
    width = std::max(width, std::min(WidthOf(one.name) + 1, kMostKeyColumns));
  }
  std::string text = PadEnd(head, width) + "       count      errors" +
                     "           bytes        mean         max" +
                     (any_before ? "      before" : "") + "\n";
  const auto add = [&](std::string_view name, const query::Row& values) {
    const auto cell = [&](size_t i, size_t columns) {
      text += PadFront(
          query::CellText(query::ColumnOf(kValues[i]), values[i], 0), columns);
    };
    text += PadEnd(name, width);
    cell(kCount, 12);
    cell(kErrors, 12);
    if (values[kBytes].number != 0) {
      cell(kBytes, 16);
    } else {
      text += PadFront("-", 16);
    }
    cell(kMean, 12);
    cell(kMax, 12);
    if (any_before) cell(kBefore, 12);
    text += "\n";
  };
  for (const Line& one : lines.all) add(one.name, one.values);
  add("total", lines.total);
  return text;
}

std::string OpStats::Table(const std::vector<const ReadStats*>& traces) const {
  const bool only_counted = !drivers_.empty() && operations_.all.empty();
  std::string text = only_counted ? "" : Table("operation", operations_);
  for (const auto& [by, driver] : drivers_) {
    const auto& [trace, tracer, aggregate] = by;
    if (!text.empty()) text += '\n';
    text +=
        "counted by aggregate " + std::to_string(aggregate) + " of tracer " +
        std::to_string(tracer) +
        (traces.size() > 1 ? " of trace " + std::to_string(trace + 1) : "") +
        (driver.has_total ? "" : ", so far") + ":\n" +
        Table("key", driver.counted().Answer());
    if (driver.maybe_twice) {
      text +=
          "(bytes of copies, if there were any, are in the total twice: keys "
          "are about files\nand not about operations)\n";
    }
  }
  if (too_many_) {
    text += "more than " + std::to_string(kMaxDrivers) +
            " aggregate drivers have counted: the others are left out\n";
  }
  const Losses losses = SumLosses(traces);
  const auto loss = [&text](const std::string& what, uint64_t count) {
    if (count != 0) {
      text += PadEnd(what, kNameColumns) + std::to_string(count) + "\n";
    }
  };
  loss("alarms ", losses.alarms);
  loss("files embedded ", losses.files);
  loss("blocks of an index ", losses.index_pieces);
  for (const auto& [reason, count] : losses.by_reason) {
    loss("not recorded: " + TerminalWord(reason) + " ", count);
  }
  for (const auto& [msg_id, count] : losses.by_message) {
    bool before = false;
    const auto op = format::OperationOf(msg_id, &before);
    if (op && !before) {
      loss("only counted: " + std::string(OpName(*op)) + " ", count);
    }
  }
  loss("unreadable blocks ", losses.unreadable_blocks);
  loss("missing blocks ", losses.missing_blocks);
  loss("missing operations ", losses.missing_events);
  loss("damaged bytes ", losses.damaged_bytes);
  loss("cut bytes ", losses.cut_bytes);
  return text;
}

void OpStats::AddJson(const Lines& lines, const std::string& more,
                      std::string* text) {
  for (const auto& [name, members, values] : lines.all) {
    std::string head = more + members;
    if (head.ends_with(',')) head.pop_back();
    *text += "{" + head;
    JsonWriter json = JsonWriter::Within(text);
    // clang 14 captures no structured binding without a name of its own.
    const auto put = [&json, &values = values](std::string_view key, size_t i) {
      if (values[i].present) json.Put(key, values[i].number);
    };
    put("count", kCount);
    put("errors", kErrors);
    put("bytes", kBytes);
    put("dur_total", kTime);
    put("dur_max", kMax);
    if (values[kBefore].number != 0) put("before", kBefore);
    *text += "}\n";
  }
}

std::string OpStats::JsonLines(
    const std::vector<const ReadStats*>& traces) const {
  std::string text;
  AddJson(operations_, "", &text);
  for (const auto& [by, driver] : drivers_) {
    const auto& [trace, tracer, aggregate] = by;
    AddJson(driver.counted().Answer(),
            "\"trace\":" + std::to_string(trace + 1) +
                ",\"tracer\":" + std::to_string(tracer) +
                ",\"aggregate\":" + std::to_string(aggregate) + ",",
            &text);
  }
  if (too_many_) {
    text += "{\"aggregates_left_out\":true}\n";
  }
  const Losses losses = SumLosses(traces);
  std::string reasons;
  for (const auto& [reason, count] : losses.by_reason) {
    reasons += (reasons.empty() ? "" : ",") + JsonString(reason) + ":" +
               std::to_string(count);
  }
  text += "{\"lost\":{" + reasons + "}";
  JsonWriter json = JsonWriter::Within(&text);
  json.Put("alarms", losses.alarms);
  if (losses.files != 0) json.Put("files", losses.files);
  if (losses.index_pieces != 0) json.Put("index_pieces", losses.index_pieces);
  json.Put("unreadable_blocks", losses.unreadable_blocks);
  json.Put("missing_blocks", losses.missing_blocks);
  json.Put("missing_operations", losses.missing_events);
  json.Put("damaged_bytes", losses.damaged_bytes);
  json.Put("cut_bytes", losses.cut_bytes);
  return text + "}\n";
}

}  // namespace tracefs
