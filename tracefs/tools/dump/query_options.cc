#include "tracefs/tools/dump/query_options.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr size_t kDefaultLongest = 20;

// Which columns a listing can be sorted by: those of the slowest ones.
constexpr std::string_view kListingSort = "latency";

Status ReadGroup(const CommandLine& given, QueryOptions* result) {
  if (given.Has("by")) {
    auto keys = query::ParseGroupKeys(given.Text("by"), "--by");
    if (!keys.ok()) return keys.status();
    result->group.keys = *std::move(keys);
  }
  auto values = query::ParseGroupValues(given.Text("values"), "--values");
  if (!values.ok()) return values.status();
  result->group.values = *std::move(values);
  if (given.Has("every")) {
    const auto every = ParseDuration(given.Text("every"));
    if (!every || *every == 0) {
      return Status::Invalid("--every needs a duration, as 1s or 10m, not " +
                             Quoted(given.Text("every")));
    }
    result->group.every_ns = *every;
  }
  if (Status s = given.TakeSize("memory", size_t{1} << 20, UINT64_MAX,
                                &result->group.memory_bytes);
      !s.ok()) {
    return s;
  }
  result->group.exact = given.Has("exact");
  const query::DetailNeeds needs = query::NeedsOf(result->group.values);
  if (result->group.exact && (needs.files || needs.processes)) {
    return Status::Invalid(
        "--exact: files and processes are estimates beyond 128; group by inode "
        "or pid as well, and count the rows");
  }
  return {};
}

Status ReadHist(const CommandLine& given, QueryOptions* result) {
  if (!given.Has("hist")) return {};
  const std::string text = given.Text("hist");
  const size_t comma = std::min(text.find(','), text.size());
  result->hist = text.substr(0, comma);
  if (comma != text.size()) {
    constexpr std::string_view kLinear = "linear=";
    const std::string_view how = std::string_view(text).substr(comma + 1);
    if (how.starts_with(kLinear)) {
      const std::string_view width = how.substr(kLinear.size());
      const bool time =
          result->hist == "latency" || IsDerivedHistogram(result->hist);
      result->width =
          (time ? ParseDuration(width) : ParseSize(width)).value_or(0);
    }
    if (result->width == 0) {
      return Status::Invalid(
          "--hist: after the comma goes linear=WIDTH, as length,linear=4K or "
          "latency,linear=10us, not " +
          Quoted(how));
    }
  }
  // What is between operations, or of files, is no value of any of them.
  if (IsDerivedHistogram(result->hist)) {
    result->group.values = {query::GroupValue::kCount};
    return {};
  }
  // Bytes that were moved are the results of what moves bytes.
  const std::string column = result->hist == "size" ? "result" : result->hist;
  auto keys = query::ParseGroupKeys("log2(" + column + ")", "--hist");
  if (keys.ok() && result->width != 0) {
    keys->front().from = query::GroupKey::From::kLinear;
    keys->front().width = result->width;
  }
  if (!keys.ok()) {
    return Status::Invalid(
        "--hist takes latency, size, gap, think, lifetime or a column of "
        "numbers, as length or offset, not " +
        Quoted(result->hist));
  }
  result->group.keys = *std::move(keys);
  result->group.values = {query::GroupValue::kCount};
  return {};
}

Status ReadPlot(const CommandLine& given, QueryOptions* result) {
  if (!given.Has("plot")) return {};
  if (given.Has("values")) {
    return Status::Invalid("--plot names the value: leave --values out");
  }
  auto values = query::ParseGroupValues(given.Text("plot"), "--plot");
  if (!values.ok()) return values.status();
  if (values->size() != 1) {
    return Status::Invalid("--plot takes one value, as count or bytes");
  }
  if (query::ColumnOf(values->front()).unit == query::Unit::kTime) {
    return Status::Invalid(
        "--plot: " + query::ColumnOf(values->front()).name +
        " is a moment, which has no height; count, bytes or p99 have one");
  }
  result->plot = query::ColumnOf(values->front()).name;
  result->group.values = *std::move(values);
  return {};
}

}  // namespace

bool IsDerivedHistogram(std::string_view hist) {
  return hist == "gap" || hist == "think" || hist == "lifetime";
}

void AddQueryOptions(CommandOptions* options) {
  options->insert(
      options->end(),
      {{"by", "KEYS",
        "a table instead: operations grouped by op, cname, path, dir(2), ext, "
        "time(1s) and others, with commas between"},
       {"values", "VALUES",
        "of tables: count, errors, bytes, latency (the default), read, "
        "written, time, mean, p50, p99, max, files and others"},
       {"sort", "COLUMN",
        "of tables: largest first, -COLUMN: smallest first; of operations: "
        "latency"},
       {"top", "N",
        "of tables: that many rows, then one line of all others; all: every "
        "row. Default: 20 on a terminal, else all"},
       {"limit", "N", "at most N lines, whatever else there is"},
       {"raw", "", "of tables: exact figures in place of 1.04 MB and 126 µs"},
       {"every", "TIME", "of tables: a row for each period and key"},
       {.name = "hist",
        .value = "VALUE",
        .help = "a histogram instead, of latency, size, length or offset, of "
                "gap (between operations), think (between those of a process) "
                "or lifetime (of files); by powers of two, or evenly with "
                "VALUE,linear=WIDTH, as latency,linear=10us",
        .excludes = "by values every plot sort"},
       {"plot", "VALUE",
        "a line over time instead, of count, bytes or another value; with "
        "--every, --by"},
       {"memory", "SIZE",
        "of tables: what groups may take; default 176M. Beyond it the smallest "
        "ones go into the line of others"},
       {"exact", "",
        "of tables: each group is counted whole, however many there are: what "
        "--memory has no room for goes to a temporary file ($TMPDIR). Rows "
        "that are shown stay in memory: --top has few of them"}});
}

Result<std::optional<QueryOptions>> ReadQueryOptions(const CommandLine& given) {
  QueryOptions result;
  if (Status s = given.Take("limit", 1, UINT64_MAX, &result.limit); !s.ok()) {
    return s;
  }
  const bool stats = given.Has("stats") && given.Has("sort");
  const bool groups = given.Has("by") || given.Has("values") ||
                      given.Has("every") || given.Has("plot") || stats;
  const bool table = groups || given.Has("hist");
  if (!table && !given.Has("sort")) {
    for (const char* const option : {"top", "memory", "exact", "raw"}) {
      if (given.Has(option)) {
        return Status::Invalid(
            "--" + std::string(option) +
            " is for tables: say what to group by with --by");
      }
    }
    return std::optional<QueryOptions>();
  }
  if (given.Has("exact") && !groups) {
    return Status::Invalid("--exact is for what --by groups");
  }
  for (const char* const other : {"header", "extract", "follow", "stats"}) {
    if (given.Has(other) && !(stats && std::string_view(other) == "stats")) {
      return Status::Invalid("--" + std::string(other) +
                             " and a table exclude each other");
    }
  }
  const std::string format =
      given.Has("format") ? given.Text("format") : "text";
  if (format != "text" && format != "csv" && format != "jsonl") {
    return Status::Invalid(
        "a table is written as --format text, csv or jsonl, "
        "not " +
        Quoted(format));
  }
  result.sort = given.Text("sort");
  if (!table) {
    if (result.sort != kListingSort) {
      return Status::Invalid(
          "--sort: operations themselves are sorted by latency only; with --by "
          "they are grouped, and sorted by any value");
    }
    result.longest = true;
    if (result.limit == 0) result.limit = kDefaultLongest;
  }
  result.raw = given.Has("raw");
  if (result.raw && (format != "text" || !table)) {
    return Status::Invalid(
        "--raw is for tables as text; operations, csv and jsonl have exact "
        "figures");
  }
  if (Status s = given.TakeRows("top", &result.top); !s.ok()) return s;
  if (given.Has("columns")) {
    result.columns = SplitAtCommas({given.Text("columns")});
  }
  if (Status s = ReadGroup(given, &result); !s.ok()) return s;
  if (stats && !given.Has("by")) {
    result.group.keys = *query::ParseGroupKeys("op", "--stats");
  }
  if (Status s = ReadHist(given, &result); !s.ok()) return s;
  if (Status s = ReadPlot(given, &result); !s.ok()) return s;
  return std::optional<QueryOptions>(std::move(result));
}

}  // namespace tracefs
