#include "tracefs/tools/report/run_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "tracefs/base/text_cursor.h"
#include "tracefs/command/command_line.h"
#include "tracefs/command/progress.h"
#include "tracefs/query/difference.h"
#include "tracefs/query/group_traces.h"
#include "tracefs/query/table_text.h"
#include "tracefs/tools/report/diff_page.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/report/question.h"
#include "tracefs/tools/report/rows.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

// Of the traces of one side.
struct Side {
  std::vector<query::Table> runs;
};

// One key: its values in each trace of both sides, where it has them.
struct Compared {
  using Run = std::vector<std::optional<uint64_t>>;
  query::Row key;
  std::array<std::vector<Run>, 2> values;
  std::array<bool, 2> there{};
};

// 0 of none.
double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double SquareError(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  const auto n = static_cast<double>(values.size());
  return sum / (n - 1) / n;
}

// Two-sided 95 % of Student's t.
double StudentT(double freedom) {
  constexpr double kTable[] = {12.71, 4.303, 3.182, 2.776, 2.571,
                               2.447, 2.365, 2.306, 2.262, 2.228};
  const auto n = static_cast<size_t>(std::max(freedom, 1.0));
  if (n <= std::size(kTable)) return kTable[n - 1];
  return n <= 30 ? 2.228 : 2.042;
}

// Welch's test: whether the means differ beyond what runs differ anyway.
bool Differs(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) return false;
  const double ea = SquareError(a);
  const double eb = SquareError(b);
  const double distance = std::abs(Mean(a) - Mean(b));
  if (ea + eb <= 0) return distance > 0;
  const double freedom = (ea + eb) * (ea + eb) /
                         (ea * ea / static_cast<double>(a.size() - 1) +
                          eb * eb / static_cast<double>(b.size() - 1));
  return distance > StudentT(freedom) * std::sqrt(ea + eb);
}

class Differ {
 public:
  Differ(const ReportOptions& options, OutputBuffer& err)
      : options_(options), err_(err) {}

  // Arranged as the options say; `top`: of how many rows, where they do not.
  Result<query::Table> Table(const std::string& by, std::optional<size_t> top) {
    auto parts = ParseQuestion(options_.row->query, "diff");
    if (!parts.ok()) return parts.status();
    part_ = std::move(parts->front());
    if (!by.empty()) {
      part_.by = by;
      if (const auto group = part_.Group(); !group.ok()) {
        return group.status().Prefixed("--by");
      }
    }
    for (size_t side = 0; side < 2; ++side) {
      const std::vector<std::string> traces = TracesOf(options_.words[side]);
      if (traces.empty()) {
        return Status::Invalid(
            std::string("diff: ") + (side == 0 ? "A" : "B") +
            " names no trace: " + Quoted(options_.words[side]));
      }
      for (const std::string& trace : traces) {
        if (Status s = Read(trace, side); !s.ok()) return s;
      }
    }
    query::Table table = Compare();
    const query::Arrangement how = {
        .sort = options_.sort.empty() ? part_.sort : options_.sort,
        .top = options_.top.value_or(top.value_or(*part_.top)),
        .columns = options_.columns};
    if (Status s = query::Arrange(how, &table); !s.ok()) return s;
    return table;
  }
  int status() const { return status_; }

 private:
  Status Read(const std::string& trace, size_t side) {
    reader::InputOptions input = options_.input;
    input.traces = {trace};
    Progress progress(input.traces);
    auto opened = reader::TraceInput::Open(
        input,
        {.progress = [&progress](uint64_t bytes) { progress.Tell(bytes); }});
    if (!opened.ok()) return opened.status();
    query::Grouping grouping(*part_.Group());
    const Status read = query::GroupTraces(opened->get(), &grouping);
    if (!read.ok()) return read;
    err_.Append((*opened)->Problems(kReportSays));
    status_ = std::max(status_, (*opened)->ExitCode());
    if (status_ > 1) return Status::Invalid("a trace could not be read");
    sides_[side].runs.push_back(grouping.Finish());
    return {};
  }

  // Of one value in the runs of a side that tell it.
  static std::vector<double> Runs(const Compared& compared, size_t side,
                                  size_t value) {
    std::vector<double> values;
    for (const Compared::Run& run : compared.values[side]) {
      if (run[value]) values.push_back(static_cast<double>(*run[value]));
    }
    return values;
  }

  static query::Value MeanOf(const Compared& compared, size_t side,
                             size_t value) {
    if (!compared.there[side]) return {};
    const std::vector<double> values = Runs(compared, side, value);
    if (values.empty()) return {};
    return query::Value::Number(
        static_cast<uint64_t>(std::llround(Mean(values))));
  }

  // Each with its size, so that none runs into the next.
  static std::string NameOf(const query::Row& key) {
    std::string name;
    for (const query::Value& part : key) {
      const std::string text =
          part.present ? "=" + part.text + std::to_string(part.number) : "";
      name += std::to_string(text.size()) + ":" + text;
    }
    return name;
  }

  std::map<std::string, Compared> Collect(size_t keys, size_t values) const {
    std::map<std::string, Compared> all;
    // Of a run that does not have the key a sum is 0; what a run does not tell
    // of a key that it has is not known.
    Compared::Run nothing(values);
    for (size_t i = 0; i < values; ++i) {
      if (sides_[0].runs.front().columns[keys + i].adds) nothing[i] = 0;
    }
    for (size_t side = 0; side < 2; ++side) {
      for (size_t run = 0; run < sides_[side].runs.size(); ++run) {
        for (const query::Row& row : sides_[side].runs[run].rows) {
          const query::Row key(row.begin(),
                               row.begin() + static_cast<ptrdiff_t>(keys));
          Compared& compared = all[NameOf(key)];
          if (compared.key.empty()) {
            compared.key = key;
            for (size_t s = 0; s < 2; ++s) {
              compared.values[s].assign(sides_[s].runs.size(), nothing);
            }
          }
          compared.there[side] = true;
          for (size_t i = 0; i < values; ++i) {
            const query::Value& value = row[keys + i];
            compared.values[side][run][i] =
                value.present ? std::optional(value.number) : std::nullopt;
          }
        }
      }
    }
    return all;
  }

  // Where a value stands among those of each run.
  static size_t PlaceOf(std::string_view value, const query::Table& run,
                        size_t keys) {
    const auto begin = run.columns.begin() + static_cast<ptrdiff_t>(keys);
    return static_cast<size_t>(std::ranges::find(begin, run.columns.end(),
                                                 value,
                                                 &query::TableColumn::name) -
                               begin);
  }

  query::Difference DifferenceOf(const Compared& compared, size_t place,
                                 size_t count, size_t time) const {
    const query::Table& first = sides_[0].runs.front();
    std::string name;
    for (size_t i = 0; i < compared.key.size(); ++i) {
      name +=
          (i == 0 ? "" : " ") +
          query::CellText(first.columns[i], compared.key[i], first.begin_ns);
    }
    return {.name = std::move(name),
            .place = place,
            .time_a_ns = Mean(Runs(compared, 0, time)),
            .time_b_ns = Mean(Runs(compared, 1, time)),
            .count_a = Mean(Runs(compared, 0, count)),
            .count_b = Mean(Runs(compared, 1, count)),
            .in_a = compared.there[0],
            .in_b = compared.there[1],
            .time_known = !Runs(compared, 0, time).empty() &&
                          !Runs(compared, 1, time).empty()};
  }

  std::vector<query::TableColumn> Columns(size_t keys, size_t values) const {
    const query::Table& first = sides_[0].runs.front();
    std::vector<query::TableColumn> columns(
        first.columns.begin(),
        first.columns.begin() + static_cast<ptrdiff_t>(keys));
    columns.push_back({"verdict"});
    columns.push_back({"time_diff", query::Unit::kSignedDuration, true});
    columns.push_back({"count_diff", query::Unit::kSigned, true});
    for (size_t i = 0; i < values; ++i) {
      const query::TableColumn& column = first.columns[keys + i];
      columns.push_back({column.name + "_a", column.unit, column.adds});
      columns.push_back({column.name + "_b", column.unit, column.adds});
    }
    columns.push_back({"time_change", query::Unit::kShare});
    if (several()) columns.push_back({"certain"});
    return columns;
  }

  query::Row RowOf(const Compared& compared, const query::Difference& d,
                   size_t time) const {
    query::Row row = compared.key;
    row.push_back(query::Value::Text(!d.in_a           ? "new"
                                     : !d.in_b         ? "gone"
                                     : !d.time_known   ? "unknown"
                                     : d.time_ns() > 0 ? "slower"
                                     : d.time_ns() < 0 ? "faster"
                                                       : "same"));
    const auto more = [](double number) {
      return query::Value::Number(static_cast<uint64_t>(std::llround(number)));
    };
    row.push_back(d.time_known ? more(d.time_ns()) : query::Value());
    row.push_back(more(d.count()));
    for (size_t i = 0; i < compared.values[0].front().size(); ++i) {
      for (size_t side = 0; side < 2; ++side) {
        row.push_back(MeanOf(compared, side, i));
      }
    }
    query::Value change;
    if (d.in_a && d.in_b && d.time_known && d.time_a_ns > 0) {
      change.present = true;
      change.share = d.time_b_ns / d.time_a_ns - 1;
    }
    row.push_back(change);
    if (several()) {
      const bool certain =
          Differs(Runs(compared, 0, time), Runs(compared, 1, time));
      row.push_back(query::Value::Text(certain ? "yes" : "no"));
    }
    return row;
  }

  query::Table Compare() const {
    const size_t keys = part_.Group()->keys.size();
    const size_t values = part_.Group()->values.size();
    const query::Table& first = sides_[0].runs.front();
    const size_t time = PlaceOf("time", first, keys);
    const size_t count = PlaceOf("count", first, keys);
    const std::map<std::string, Compared> all = Collect(keys, values);
    std::vector<const Compared*> groups;
    std::vector<query::Difference> ranked;
    for (const auto& [key, compared] : all) {
      ranked.push_back(DifferenceOf(compared, groups.size(), count, time));
      groups.push_back(&compared);
    }
    query::RankDifferences(&ranked);
    query::Table table;
    table.summary = query::DifferenceSentence(ranked);
    table.columns = Columns(keys, values);
    for (const query::Difference& d : ranked) {
      table.rows.push_back(RowOf(*groups[d.place], d, time));
    }
    AddNotes(&table);
    return table;
  }

  void AddNotes(query::Table* table) const {
    for (const Side& side : sides_) {
      for (const query::Table& run : side.runs) {
        for (const std::string& note : run.notes) Note(note, table);
        if (run.other) {
          Note("groups that memory had no room for are not compared", table);
        }
      }
    }
    table->notes.push_back(
        several() ? "certain: beyond what the runs of one side differ, at 95 % "
                    "(Welch's test)"
                  : "one trace a side says nothing about chance: name several, "
                    "with commas between");
  }

  static void Note(const std::string& note, query::Table* table) {
    if (std::ranges::find(table->notes, note) == table->notes.end()) {
      table->notes.push_back(note);
    }
  }

  bool several() const {
    return sides_[0].runs.size() > 1 && sides_[1].runs.size() > 1;
  }

  const ReportOptions& options_;
  OutputBuffer& err_;
  QuestionPart part_;
  std::array<Side, 2> sides_;
  int status_ = 0;
};

}  // namespace

std::vector<std::string> TracesOf(const std::string& side) {
  std::error_code ignored;
  if (std::filesystem::exists(side, ignored)) return {side};
  return SplitAtCommas({side});
}

Result<query::Table> DiffTable(const ReportOptions& options,
                               const std::string& by, std::optional<size_t> top,
                               OutputBuffer& err, int* status) {
  Differ differ(options, err);
  Result<query::Table> table = differ.Table(by, top);
  *status = std::max(*status, differ.status());
  return table;
}

int RunDiff(const ReportOptions& options, OutputBuffer& out,
            OutputBuffer& err) {
  if (options.print) {
    out.Append(options.row->query);
    return 0;
  }
  if (options.format == "html") return RunDiffPage(options, out, err);
  int status = 0;
  const Result<query::Table> table =
      DiffTable(options, options.by, std::nullopt, err, &status);
  if (!table.ok()) return Complain(table.status(), err);
  if (options.format == "json") {
    out.Append(query::JsonOf(std::span(&*table, 1)));
  } else {
    query::WriteTable(*table, options.format, options.table_style, &out);
  }
  return status;
}

}  // namespace tracefs
