// Grouping as an analysis, and the facts of a whole trace.
#include <algorithm>

#include "tracefs/query/analyses.h"
#include "tracefs/query/file_numbers.h"
#include "tracefs/query/grouping.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/text/duration.h"

namespace tracefs::query {
namespace {

class Group final : public Analysis {
 public:
  explicit Group(GroupSpec spec) : grouping_(std::move(spec)) {}
  void Take(const format::Record& record, size_t trace) override {
    if (traces_.size() <= trace) traces_.resize(trace + 1);
    if (record.trace != nullptr && traces_[trace] != record.trace) {
      traces_[trace] = record.trace;
      grouping_.SetTrace(trace,
                         record.trace->description.header.Get("host.name"));
    }
    grouping_.AddRecord(record, trace);
  }
  bool follows_files() const override {
    return grouping_.spec().follows_files();
  }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    grouping_.Pass(record);
  }
  void TakeProcess(const ProcessRecord& record) override {
    grouping_.TakeProcess(record);
  }
  std::vector<Table> Finish() override { return {grouping_.Finish()}; }

 private:
  Grouping grouping_;
  std::vector<const format::TraceContext*> traces_;
};

class Summary final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    if (!HasRun(record)) return;
    const ProcessNumbers::Found process = numbers_.Of(record);
    const tally::Sums sums = tally::SumsOf(event);
    all_.Add(sums);
    if (!tally::Transfers(event.op)) metadata_.Add(sums);
    if (const uint64_t file = file_numbers_.Of(record).file; file != 0) {
      files_.Add(file);
    }
    if (event.GetOr0(Field::kInferred) != 0) {
      ++inferred_;
    } else if (process.number != ProcessNumbers::kUnknown) {
      processes_.Add(MixedHash(process.number));
    }
    if (record.time_resolution_ns == 0) return;
    first_ns_ = std::min(first_ns_, record.real_ns);
    last_ns_ = std::max(last_ns_, tally::AddTo(record.real_ns, sums.time_ns));
    // Changes of the clock, as records come in order of the monotonic one.
    if (record.real_ns < previous_ns_) ++back_;
    previous_ns_ = record.real_ns;
  }

  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    (void)file_numbers_.Of(record);
  }
  void TakeProcess(const ProcessRecord& record) override {
    numbers_.Take(record);
  }

  std::vector<Table> Finish() override {
    Table table;
    table.columns = {{"what"},
                     {"count", Unit::kCount},
                     {"share", Unit::kShare},
                     {"time", Unit::kDuration},
                     {"time_share", Unit::kShare},
                     {"bytes", Unit::kBytes}};
    const auto line = [&table](std::string_view what, Row cells) {
      Row row = {Value::Text(what)};
      row.insert(row.end(), cells.begin(), cells.end());
      row.resize(table.columns.size());
      table.rows.push_back(std::move(row));
    };
    const auto part = [this](uint64_t count) -> Row {
      return {Value::Number(count), Value::Share(count, all_.count)};
    };
    const auto distinct = [&](const std::string& what, const DistinctCount& n) {
      line(n.exact() ? what : what + ", about", {Value::Number(n.Estimate())});
    };
    line("operations",
         {Value::Number(all_.count), {}, Value::Number(all_.time_ns)});
    line("on metadata", {Value::Number(metadata_.count),
                         Value::Share(metadata_.count, all_.count),
                         Value::Number(metadata_.time_ns),
                         Value::Share(metadata_.time_ns, all_.time_ns)});
    line("failed", part(all_.errors));
    if (inferred_ != 0) line("of inferred callers", part(inferred_));
    line("from the first to the last",
         {{},
          {},
          Value::Number(first_ns_ > last_ns_ ? 0 : last_ns_ - first_ns_)});
    line("read", {{}, {}, {}, {}, Value::Number(all_.read)});
    line("written", {{}, {}, {}, {}, Value::Number(all_.written)});
    distinct("processes", processes_);
    distinct("files and directories", files_);
    if (back_ != 0) line("times the clock went back", {Value::Number(back_)});
    return {table};
  }

 private:
  tally::Sums all_, metadata_;
  uint64_t inferred_ = 0;
  uint64_t first_ns_ = UINT64_MAX, last_ns_ = 0, previous_ns_ = 0, back_ = 0;
  DistinctCount files_;
  DistinctCount processes_;
  ProcessNumbers numbers_;
  FileNumbers file_numbers_;
};

}  // namespace

std::unique_ptr<Analysis> MakeGroup(const AnalysisOptions& options) {
  return std::make_unique<Group>(options.group);
}
std::unique_ptr<Analysis> MakeSummary(const AnalysisOptions& /*options*/) {
  return std::make_unique<Summary>();
}

}  // namespace tracefs::query
