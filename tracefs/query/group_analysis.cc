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
    if (NumberOr0(event, Field::kInferred) != 0) {
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
    table.columns = {{"what"}, {"value"}};
    const auto line = [&table](std::string_view what, std::string value) {
      table.rows.push_back({Value::Text(what), Value::Text(value)});
    };
    const auto of = [](uint64_t part, uint64_t whole) {
      // The largest numbers have no room for three more digits.
      const uint64_t mille = whole == 0                 ? 0
                             : part > UINT64_MAX / 1000 ? part / (whole / 1000)
                                                        : part * 1000 / whole;
      return std::to_string(part) + " (" + std::to_string(mille / 10) + "." +
             std::to_string(mille % 10) + " %)";
    };
    const auto about = [](const DistinctCount& n) {
      return (n.exact() ? "" : "about ") + std::to_string(n.Estimate());
    };
    line("operations", std::to_string(all_.count));
    line("  on metadata", of(metadata_.count, all_.count));
    line("  that failed", of(all_.errors, all_.count));
    if (inferred_ != 0)
      line("  of inferred callers", of(inferred_, all_.count));
    line("span", first_ns_ > last_ns_
                     ? "0 ns"
                     : ExactDurationText(last_ns_ - first_ns_));
    line("time in operations", ExactDurationText(all_.time_ns));
    line("  on metadata", of(metadata_.time_ns, all_.time_ns));
    line("bytes read", std::to_string(all_.read));
    line("bytes written", std::to_string(all_.written));
    line("processes", about(processes_));
    line("files and directories", about(files_));
    if (back_ != 0) line("times the clock went back", std::to_string(back_));
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
