// The operations that took longest: a heap of as many as are wanted.
#include <algorithm>

#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/table_text.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

class Slowest final : public Analysis {
 public:
  explicit Slowest(size_t most) : most_(std::max<size_t>(most, 1)) {}

  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    if (!HasRun(record) || !event.Has(Field::kLatency)) return;
    ++count_;
    const uint64_t latency = event.Get(Field::kLatency);
    total_ns_ = tally::AddTo(total_ns_, latency);
    // Of equals the first ones stay.
    if (kept_.size() == most_) {
      if (latency <= kept_.front().latency_ns) return;
      std::ranges::pop_heap(kept_, &Longer);
      kept_.pop_back();
    }
    PathBuffer buffer;
    kept_.push_back({.latency_ns = latency,
                     .number = count_,
                     .time_ns = record.real_ns,
                     .timed = record.time_resolution_ns != 0,
                     .op = event.op,
                     .pid = event.GetOr0(Field::kPid),
                     .error = event.GetOr0(Field::kErrno),
                     .bytes = tally::BytesOf(event).moved(),
                     .comm = std::string(record.Text(Field::kComm)),
                     .path = std::string(format::PathOf(record, buffer))});
    std::ranges::push_heap(kept_, &Longer);
  }

  std::vector<Table> Finish() override {
    std::ranges::sort(kept_, &Longer);
    Table table;
    table.columns = {{"time", Unit::kTime},
                     {"latency", Unit::kDuration, true},
                     {"op"},
                     {"cname"},
                     {"cpid", Unit::kNumber},
                     {"bytes", Unit::kBytes, true},
                     {"errno"},
                     {"path"}};
    uint64_t shown_ns = 0;
    for (const Kept& op : kept_) {
      shown_ns = tally::AddTo(shown_ns, op.latency_ns);
      table.rows.push_back(
          {op.timed ? Value::Number(op.time_ns) : Value(),
           Value::Number(op.latency_ns), Value::Text(OpName(op.op)),
           op.comm.empty() ? Value() : Value::Text(op.comm),
           op.pid == 0 ? Value() : Value::Number(op.pid),
           Value::Number(op.bytes),
           op.error == 0 ? Value() : Value::Text(ErrnoName(op.error)),
           op.path.empty() ? Value() : Value::Text(op.path)});
    }
    table.notes.push_back(
        CellText({"", Unit::kDuration}, Value::Number(shown_ns), 0) + " of " +
        CellText({"", Unit::kDuration}, Value::Number(total_ns_), 0) +
        " in these " + std::to_string(kept_.size()) + " of " +
        std::to_string(count_) + " operations");
    return {table};
  }

 private:
  struct Kept {
    uint64_t latency_ns = 0;
    uint64_t number = 0;
    uint64_t time_ns = 0;
    bool timed = false;
    Op op{};
    uint64_t pid = 0;
    uint64_t error = 0;
    uint64_t bytes = 0;
    std::string comm;
    std::string path;
  };
  static bool Longer(const Kept& a, const Kept& b) {
    return a.latency_ns != b.latency_ns ? a.latency_ns > b.latency_ns
                                        : a.number < b.number;
  }

  const size_t most_;
  uint64_t count_ = 0;
  uint64_t total_ns_ = 0;
  std::vector<Kept> kept_;
};

}  // namespace

std::unique_ptr<Analysis> MakeSlowest(const AnalysisOptions& options) {
  return std::make_unique<Slowest>(options.top);
}

}  // namespace tracefs::query
