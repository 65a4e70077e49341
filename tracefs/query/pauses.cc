// How long it is quiet: from the begin of one operation to that of the next,
// and from the end of one of a process to the begin of its next.
#include <algorithm>
#include <unordered_map>

#include "tracefs/query/analyses.h"
#include "tracefs/query/pictures.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostPausing = size_t{1} << 18;

class Pauses final : public Analysis {
 public:
  explicit Pauses(uint64_t width_ns)
      : cuts_(width_ns), gaps_(width_ns), thinks_(width_ns) {}

  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    if (!HasRun(record) || record.time_resolution_ns == 0) return;
    const ProcessNumbers::Number process = processes_.Of(record).number;
    const uint64_t now = record.real_ns;
    if (any_) {
      if (now >= last_ns_) {
        gaps_.Add(now - last_ns_);
      } else {
        ++back_;
      }
    }
    any_ = true;
    last_ns_ = now;
    // Who had to be guessed did not do it himself.
    const bool known = process != ProcessNumbers::kUnknown &&
                       event.Has(Field::kLatency) &&
                       event.GetOr0(Field::kInferred) == 0;
    if (!known) return;
    const uint64_t end = tally::AddTo(now, event.Get(Field::kLatency));
    const auto at = ends_.find(process);
    if (at == ends_.end()) {
      if (ends_.size() < kMostPausing) {
        ends_.emplace(process, end);
      } else {
        ++not_followed_;
      }
      return;
    }
    if (now >= at->second) {
      thinks_.Add(now - at->second);
    } else {
      ++overlapping_;
    }
    at->second = std::max(at->second, end);
  }
  void TakeProcess(const ProcessRecord& record) override {
    processes_.Take(record);
  }

  std::vector<Table> Finish() override {
    Table gaps = HistogramTable(gaps_, Unit::kDuration, cuts_);
    const auto note = [](Table* table, uint64_t count, const char* what) {
      if (count == 0) return;
      table->notes.push_back(std::to_string(count) + " operations " + what);
    };
    note(&gaps, back_,
         "began before the one they came after: the clock went "
         "back");
    Table thinks = HistogramTable(thinks_, Unit::kDuration, cuts_);
    thinks.title = "between operations of a process";
    note(&thinks, overlapping_, "began while another one of their process ran");
    note(&thinks, not_followed_, "were of more processes");
    return {gaps, thinks};
  }

 private:
  const HistogramCuts cuts_;
  bool any_ = false;
  uint64_t last_ns_ = 0;
  HistogramRows gaps_;
  HistogramRows thinks_;
  ProcessNumbers processes_;
  std::unordered_map<ProcessNumbers::Number, uint64_t> ends_;
  uint64_t back_ = 0;
  uint64_t overlapping_ = 0;
  uint64_t not_followed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakePauses(const AnalysisOptions& options) {
  return std::make_unique<Pauses>(options.histogram_width);
}

}  // namespace tracefs::query
