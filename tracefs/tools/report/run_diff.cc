#include "tracefs/tools/report/run_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tracefs/command/command_line.h"
#include "tracefs/command/progress.h"
#include "tracefs/query/group_traces.h"
#include "tracefs/query/table_text.h"
#include "tracefs/tools/report/question.h"
#include "tracefs/tools/report/rows.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

constexpr char kCommand[] = "tracefs-report: ";

// Of the traces of one side.
struct Side {
  std::vector<query::Table> runs;
};

// One key: its values in each trace of both sides; those it is not in are 0.
struct Compared {
  query::Row key;
  std::array<std::vector<std::vector<uint64_t>>, 2> values;  // side, run, value
  std::array<bool, 2> there{};
};

double Mean(const std::vector<double>& values) {
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
  Differ(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err)
      : options_(options), out_(out), err_(err) {}

  int Run() {
    if (options_.print) {
      out_.Append(options_.row->query);
      return 0;
    }
    auto parts = ParseQuestion(options_.row->query, "diff");
    if (!parts.ok()) return Complain(parts.status());
    part_ = std::move(parts->front());
    if (!options_.by.empty()) {
      part_.by = options_.by;
      if (const auto group = part_.Group(); !group.ok()) {
        return Complain(group.status().Prefixed("--by"));
      }
    }
    for (size_t side = 0; side < 2; ++side) {
      for (const std::string& trace : SplitAtCommas({options_.words[side]})) {
        if (Status s = Read(trace, side); !s.ok()) return Complain(s);
      }
    }
    query::Table table = Compare();
    const query::Arrangement how = {
        .sort = options_.sort.empty() ? part_.sort : options_.sort,
        .top = options_.top.value_or(*part_.top),
        .columns = options_.columns};
    if (Status s = query::Arrange(how, &table); !s.ok()) return Complain(s);
    if (options_.format == "json") {
      out_.Append(query::JsonOf(std::span(&table, 1)));
    } else {
      query::WriteTable(table, options_.format, options_.safe, &out_);
    }
    return status_;
  }

 private:
  int Complain(const Status& status) {
    err_.Append(kCommand + status.message() + "\n");
    return ExitStatus(status);
  }

  Status Read(const std::string& trace, size_t side) {
    query::InputOptions input = options_.input;
    input.traces = {trace};
    Progress progress(input.traces);
    auto opened = query::TraceInput::Open(
        input,
        {.progress = [&progress](uint64_t bytes) { progress.Tell(bytes); }});
    if (!opened.ok()) return opened.status();
    query::Grouping grouping(*part_.Group());
    const Status read = query::GroupTraces(opened->get(), &grouping);
    if (!read.ok()) return read;
    err_.Append((*opened)->Problems(kCommand));
    status_ = std::max(status_, (*opened)->ExitCode());
    if (status_ > 1) return Status::Invalid("a trace could not be read");
    sides_[side].runs.push_back(grouping.Finish());
    return {};
  }

  // Of one value in all runs of a side.
  static std::vector<double> Runs(const Compared& compared, size_t side,
                                  size_t value) {
    std::vector<double> values;
    for (const std::vector<uint64_t>& run : compared.values[side]) {
      values.push_back(static_cast<double>(run[value]));
    }
    return values;
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
    for (size_t side = 0; side < 2; ++side) {
      for (size_t run = 0; run < sides_[side].runs.size(); ++run) {
        for (const query::Row& row : sides_[side].runs[run].rows) {
          const query::Row key(row.begin(),
                               row.begin() + static_cast<ptrdiff_t>(keys));
          Compared& compared = all[NameOf(key)];
          if (compared.key.empty()) {
            compared.key = key;
            for (size_t s = 0; s < 2; ++s) {
              compared.values[s].assign(sides_[s].runs.size(),
                                        std::vector<uint64_t>(values));
            }
          }
          compared.there[side] = true;
          for (size_t i = 0; i < values; ++i) {
            compared.values[side][run][i] = row[keys + i].number;
          }
        }
      }
    }
    return all;
  }

  query::Table Compare() const {
    const query::Table& first = sides_[0].runs.front();
    const size_t keys = part_.Group()->keys.size();
    const size_t values = part_.Group()->values.size();
    const auto behind_keys =
        first.columns.begin() + static_cast<ptrdiff_t>(keys);
    const auto time = static_cast<size_t>(
        std::ranges::find(behind_keys, first.columns.end(), "time",
                          &query::TableColumn::name) -
        behind_keys);
    const bool several = sides_[0].runs.size() > 1 && sides_[1].runs.size() > 1;
    query::Table table;
    table.columns.assign(first.columns.begin(), behind_keys);
    table.columns.push_back({"verdict"});
    for (size_t i = 0; i < values; ++i) {
      const query::TableColumn& column = first.columns[keys + i];
      table.columns.push_back({column.name + "_a", column.unit, column.adds});
      table.columns.push_back({column.name + "_b", column.unit, column.adds});
    }
    table.columns.push_back({"time_change", query::Unit::kShare});
    if (several) table.columns.push_back({"certain"});
    for (const auto& [name, compared] : Collect(keys, values)) {
      query::Row row = compared.key;
      const double a = Mean(Runs(compared, 0, time));
      const double b = Mean(Runs(compared, 1, time));
      const bool certain =
          several && Differs(Runs(compared, 0, time), Runs(compared, 1, time));
      row.push_back(query::Value::Text(!compared.there[0]   ? "new"
                                       : !compared.there[1] ? "gone"
                                       : b > a              ? "slower"
                                       : b < a              ? "faster"
                                                            : "same"));
      for (size_t i = 0; i < values; ++i) {
        for (size_t side = 0; side < 2; ++side) {
          row.push_back(compared.there[side]
                            ? query::Value::Number(static_cast<uint64_t>(
                                  std::llround(Mean(Runs(compared, side, i)))))
                            : query::Value());
        }
      }
      query::Value change;
      if (compared.there[0] && compared.there[1] && a > 0) {
        change.present = true;
        change.share = b / a - 1;
      }
      row.push_back(change);
      if (several) row.push_back(query::Value::Text(certain ? "yes" : "no"));
      table.rows.push_back(std::move(row));
    }
    for (const Side& side : sides_) {
      for (const query::Table& run : side.runs) {
        for (const std::string& note : run.notes) {
          if (std::ranges::find(table.notes, note) == table.notes.end()) {
            table.notes.push_back(note);
          }
        }
      }
    }
    table.notes.push_back(
        several ? "certain: beyond what the runs of one side differ, at 95 % "
                  "(Welch's test)"
                : "one trace a side says nothing about chance: name several, "
                  "with commas between");
    return table;
  }

  const ReportOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  QuestionPart part_;
  std::array<Side, 2> sides_;
  int status_ = 0;
};

}  // namespace

int RunDiff(const ReportOptions& options, OutputBuffer& out,
            OutputBuffer& err) {
  return Differ(options, out, err).Run();
}

}  // namespace tracefs
