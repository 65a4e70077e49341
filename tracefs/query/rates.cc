// How much there is at a time: operations and bytes in periods of several
// lengths, from the quietest to the busiest.
#include <algorithm>
#include <array>

#include "tracefs/query/analyses.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr std::array kPeriods = {kSecond / 10, kSecond, 10 * kSecond,
                                 60 * kSecond};

// Operations by periods of one length that begin with the first operation.
class Rate {
 public:
  explicit Rate(uint64_t period_ns) : period_ns_(period_ns) {}

  void Take(uint64_t since_begin_ns, uint64_t bytes) {
    const uint64_t number = since_begin_ns / period_ns_;
    // What comes late, as the clock went back, counts where we are.
    if (number > number_) {
      End();
      // Nothing happened in those between.
      if (number - number_ > 1) counts_.Add(0, number - number_ - 1);
      number_ = number;
      count_ = 0;
      bytes_ = 0;
    }
    ++count_;
    bytes_ = tally::AddTo(bytes_, bytes);
  }

  Row Finish(uint64_t begin_ns, uint64_t all) {
    End();
    const auto count = [this](double share) {
      return Value::Number(counts_.Quantile(share, {.max = most_}));
    };
    return {Value::Number(period_ns_),
            Value::Number(number_ + 1),
            Value::Number(all / (number_ + 1)),
            count(0.5),
            count(0.9),
            count(0.99),
            Value::Number(most_),
            Value::Number(begin_ns + most_at_ * period_ns_),
            Value::Number(most_bytes_),
            Value::Number(begin_ns + most_bytes_at_ * period_ns_)};
  }

 private:
  void End() {
    counts_.Add(count_);
    if (count_ > most_) {
      most_ = count_;
      most_at_ = number_;
    }
    if (bytes_ > most_bytes_) {
      most_bytes_ = bytes_;
      most_bytes_at_ = number_;
    }
  }

  const uint64_t period_ns_;
  uint64_t number_ = 0;  // of the period that goes on
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t most_ = 0, most_at_ = 0;
  uint64_t most_bytes_ = 0, most_bytes_at_ = 0;
  tally::SparseHistogram counts_;
};

class Rates final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    if (!HasRun(record)) return;
    if (record.time_resolution_ns == 0) {
      ++untimed_;
      return;
    }
    if (all_ == 0) begin_ns_ = record.real_ns;
    ++all_;
    const uint64_t since =
        record.real_ns > begin_ns_ ? record.real_ns - begin_ns_ : 0;
    const uint64_t bytes = tally::BytesOf(record.event).moved();
    for (Rate& rate : rates_) rate.Take(since, bytes);
  }

  std::vector<Table> Finish() override {
    Table table;
    table.columns = {{"period", Unit::kDuration},  {"periods", Unit::kCount},
                     {"count_mean", Unit::kCount}, {"count_p50", Unit::kCount},
                     {"count_p90", Unit::kCount},  {"count_p99", Unit::kCount},
                     {"count_max", Unit::kCount},  {"busiest", Unit::kTime},
                     {"bytes_max", Unit::kBytes},  {"most_bytes", Unit::kTime}};
    if (all_ != 0) {
      for (Rate& rate : rates_) {
        table.rows.push_back(rate.Finish(begin_ns_, all_));
      }
    }
    if (untimed_ != 0) {
      table.notes.push_back(std::to_string(untimed_) +
                            " operations have no time");
    }
    return {table};
  }

 private:
  std::array<Rate, kPeriods.size()> rates_ = {
      Rate(kPeriods[0]), Rate(kPeriods[1]), Rate(kPeriods[2]),
      Rate(kPeriods[3])};
  uint64_t begin_ns_ = 0;
  uint64_t all_ = 0;
  uint64_t untimed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeRates(const AnalysisOptions& /*options*/) {
  return std::make_unique<Rates>();
}

}  // namespace tracefs::query
