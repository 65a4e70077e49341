// How files are gone through: each read and write against the one before it
// through the same open file, and what each open file amounts to.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "tracefs/query/analyses.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostOpen = size_t{1} << 18;

// Of a transfer: against the end, and the step, of the one before.
enum AccessStep : uint8_t {
  kFirstAccess,
  kConsecutive,
  kForward,
  kBackward,
  kAccessSteps
};
constexpr std::string_view kStepNames[] = {"first", "consecutive", "forward",
                                           "backward"};
enum Pattern : uint8_t { kSingle, kSequential, kStrided, kRandom, kPatterns };
constexpr std::string_view kPatternNames[] = {"single", "sequential", "strided",
                                              "random"};

struct Sums {
  uint64_t ops = 0;
  uint64_t bytes = 0;
};

// One direction of one open file.
struct Way {
  uint64_t ops = 0;
  uint64_t bytes = 0;
  uint64_t consecutive = 0;
  uint64_t repeated_step = 0;  // the same distance as the one before
  uint64_t begin = 0;          // of the last transfer
  uint64_t end = 0;
  int64_t step = 0;
  bool has_step = false;
  uint64_t run_bytes = 0;  // consecutive up to now
  uint64_t longest_run = 0;

  AccessStep Take(uint64_t offset, uint64_t size) {
    AccessStep kind = kFirstAccess;
    if (ops != 0) {
      kind = offset == end ? kConsecutive : offset > end ? kForward : kBackward;
      const auto step_now = static_cast<int64_t>(offset - begin);
      if (has_step && step_now == step) ++repeated_step;
      step = step_now;
      has_step = true;
      if (kind == kConsecutive) ++consecutive;
    }
    run_bytes = kind == kConsecutive ? run_bytes + size : size;
    longest_run = std::max(longest_run, run_bytes);
    begin = offset;
    end = offset + size;
    ++ops;
    bytes += size;
    return kind;
  }

  // Nine in ten make it so.
  Pattern pattern() const {
    if (ops < 2) return kSingle;
    if (10 * consecutive >= 9 * (ops - 1)) return kSequential;
    if (ops > 2 && 10 * repeated_step >= 9 * (ops - 2)) return kStrided;
    return kRandom;
  }
};

class Access final : public Analysis {
 public:
  void Take(const format::Record& record, size_t trace) override {
    const Event& event = record.event;
    if (!HasRun(record) || Failed(event)) return;
    for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
      TakeTransfer(event, transfer, trace);
    }
    if (event.op != Op::release_) return;
    const auto at = open_.find(KeyOf(event, tally::End::kFile, trace));
    if (at == open_.end()) return;
    Close(at->second);
    open_.erase(at);
  }

  std::vector<Table> Finish() override {
    for (auto& [key, ways] : open_) Close(ways);
    Table steps;
    steps.columns = {{"direction"},
                     {"step"},
                     {"count", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true},
                     {"share", Unit::kShare},
                     {"bytes_share", Unit::kShare}};
    Table opens;
    opens.title = "open files";
    opens.columns = {{"direction"},
                     {"pattern"},
                     {"opens", Unit::kNumber, true},
                     {"count", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true},
                     {"run_p50", Unit::kBytes},
                     {"run_max", Unit::kBytes}};
    for (size_t w = 0; w < 2; ++w) {
      const Value name = Value::Text(w == 0 ? "read" : "write");
      Sums all;
      for (const Sums& sums : steps_[w]) {
        all.ops += sums.ops;
        all.bytes += sums.bytes;
      }
      for (size_t i = 0; i < kAccessSteps; ++i) {
        const Sums& sums = steps_[w][i];
        steps.rows.push_back(
            {name, Value::Text(kStepNames[i]), Value::Number(sums.ops),
             Value::Number(sums.bytes), Value::Share(sums.ops, all.ops),
             Value::Share(sums.bytes, all.bytes)});
      }
      for (size_t i = 0; i < kPatterns; ++i) {
        const Opens& sums = opens_[w][i];
        opens.rows.push_back(
            {name, Value::Text(kPatternNames[i]), Value::Number(sums.opens),
             Value::Number(sums.ops), Value::Number(sums.bytes),
             sums.opens == 0 ? Value()
                             : Value::Number(sums.runs.Quantile(
                                   0.5, {.max = sums.longest})),
             sums.opens == 0 ? Value() : Value::Number(sums.longest)});
      }
    }
    if (not_followed_ != 0) {
      opens.notes.push_back(std::to_string(not_followed_) +
                            " operations were through open files beyond the " +
                            std::to_string(kMostOpen) +
                            " that are followed at the same time");
    }
    return {steps, opens};
  }

 private:
  using Ways = std::array<Way, 2>;  // by tally::Way
  struct Opens {
    uint64_t opens = 0, ops = 0, bytes = 0, longest = 0;
    tally::SparseHistogram runs;
  };

  static uint64_t KeyOf(const Event& event, tally::End end, size_t trace) {
    return MixedHash(MixedHash(NumberOr0(event, tally::HandleField(end)) +
                               (uint64_t{trace} << 56)) ^
                     NumberOr0(event, tally::InodeField(end)));
  }

  void TakeTransfer(const Event& event, const tally::Transfer& transfer,
                    size_t trace) {
    const Field offset = tally::OffsetField(transfer.end);
    if (!event.Has(offset)) return;
    const uint64_t key = KeyOf(event, transfer.end, trace);
    if (open_.size() >= kMostOpen && !open_.contains(key)) {
      ++not_followed_;
      return;
    }
    const auto way = static_cast<size_t>(transfer.way);
    const AccessStep step =
        open_[key][way].Take(event.Get(offset), transfer.bytes);
    Sums& sums = steps_[way][step];
    ++sums.ops;
    sums.bytes += transfer.bytes;
  }

  void Close(const Ways& ways) {
    for (size_t w = 0; w < 2; ++w) {
      const Way& way = ways[w];
      if (way.ops == 0) continue;
      Opens& sums = opens_[w][way.pattern()];
      ++sums.opens;
      sums.ops += way.ops;
      sums.bytes += way.bytes;
      sums.longest = std::max(sums.longest, way.longest_run);
      sums.runs.Add(way.longest_run);
    }
  }

  std::unordered_map<uint64_t, Ways> open_;
  std::array<std::array<Sums, kAccessSteps>, 2> steps_{};
  std::array<std::array<Opens, kPatterns>, 2> opens_{};
  uint64_t not_followed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeAccess(const AnalysisOptions& /*options*/) {
  return std::make_unique<Access>();
}

}  // namespace tracefs::query
