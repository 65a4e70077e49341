// An assembly driver: the worked example of docs/extending.md, and the paper's
// own (section 2.1): how many files each user makes and removes, `churn`.
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/assembly/churn.h"
#include "tracefs/base/append_le.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/constants.h"

namespace tracefs {
namespace {

bool IsChurn(Op op) { return op == Op::create_ || op == Op::unlink_; }

class ChurnCounter final : public EventCounter {
 public:
  std::string Keys() const override { return "op uid"; }

  std::unique_ptr<Shard> MakeShard() const override {
    return std::make_unique<ThreadShard>();
  }

  void Count(Event& event, Shard& shard) const override {
    auto& own = static_cast<ThreadShard&>(shard);
    ++own.calls;
    if (!IsChurn(event.op) || event.Get(Field::kErrno) != 0) return;
    Counts& counts = own.counts;
    Key key = {event.op, event.Get(Field::kUid)};
    // Any user may make others with as many ids as there are.
    if (counts.size() >= kMostKeys && !counts.contains(key)) key = kOthers;
    ++counts[key];
  }

  bool KnowsNames(const Event&, const Shard&) const override { return true; }

  void Take(Shard& shard) override {
    auto& own = static_cast<ThreadShard&>(shard);
    taken_.swap(own.counts);
    calls_ += std::exchange(own.calls, 0);
  }

  void AddUp() override {
    const std::lock_guard lock(mu_);
    for (const auto& [key, count] : taken_) {
      const bool full = total_.size() >= kMostKeys && !total_.contains(key);
      total_[full ? kOthers : key] += count;
    }
    taken_.clear();
  }

  bool Due(uint64_t) const override { return false; }

  void Report(uint64_t, bool end, const WriteRecord& write) override {
    if (end) ForEachTotal(write);
  }

  void Save(std::string* out) const override {
    const std::lock_guard lock(mu_);
    AppendLe(calls_, out);
    AppendLe(began_ns_, out);
    for (const auto& [key, count] : total_) {
      AppendLe(static_cast<uint32_t>(Index(key.first)), out);
      AppendLe(key.second, out);
      AppendLe(count, out);
    }
  }

  std::optional<uint64_t> Load(std::string_view saved, Told told) override {
    ByteCursor bytes(AsBytes(saved));
    const auto calls = bytes.TakeLe<uint64_t>();
    const auto began_ns = bytes.TakeLe<uint64_t>();
    if (!calls || !began_ns) return std::nullopt;
    Counts counts;
    uint64_t sum = 0;
    while (bytes.left() != 0) {
      const auto op = bytes.TakeLe<uint32_t>();
      const auto user = bytes.TakeLe<uint64_t>();
      const auto count = bytes.TakeLe<uint64_t>();
      if (!op || !user || !count || *op >= kOpCount) return std::nullopt;
      counts[{static_cast<Op>(*op), *user}] = *count;
      sum += *count;
    }
    const std::lock_guard lock(mu_);
    calls_ = *calls;
    began_ns_ = *began_ns;
    if (told.end) return sum;
    total_ = std::move(counts);
    return 0;
  }

  uint64_t counted() const override { return calls_; }

  void ForEachTotal(const WriteRecord& use) const override {
    const std::lock_guard lock(mu_);
    const uint64_t now = MonotonicNs();
    for (const auto& [key, count] : total_) {
      format::AggregateRecord record;
      record.total = true;
      record.from_ns = began_ns_;
      record.to_ns = now;
      record.count = count;
      record.other = key == kOthers;
      if (!record.other) {
        record.key = {{.arg_id = static_cast<uint16_t>(format::ArgId::kKeyOp),
                       .number = Index(key.first),
                       .text = {}},
                      {.arg_id = Info(Field::kUid).arg_id,
                       .number = key.second,
                       .text = {}}};
      }
      use(record);
    }
  }

 private:
  using Key = std::pair<Op, uint64_t>;  // and the user
  using Counts = std::map<Key, uint64_t>;
  struct ThreadShard final : Shard {
    Counts counts;
    uint64_t calls = 0;
  };

  static constexpr size_t kMostKeys = 10'000;
  static constexpr Key kOthers = {Op::create_, ~uint64_t{0}};

  uint64_t began_ns_ = MonotonicNs();
  uint64_t calls_ = 0;
  Counts taken_;
  mutable std::mutex mu_;  // guards total_
  Counts total_;
};

class Churn final : public AssemblyDriver {
 public:
  AssemblyNeeds Needs(Op op) const override {
    return {.after = IsChurn(op), .counts = IsChurn(op)};
  }
  bool Assemble(Event&, BlockBuilder&) const override { return true; }
  std::shared_ptr<EventCounter> counter() const override { return counter_; }

 private:
  const std::shared_ptr<ChurnCounter> counter_ =
      std::make_shared<ChurnCounter>();
};

}  // namespace

Result<std::unique_ptr<AssemblyDriver>> MakeChurn(const ConfigEntry&,
                                                  std::string_view) {
  return std::unique_ptr<AssemblyDriver>(std::make_unique<Churn>());
}

}  // namespace tracefs
