// How files are gone through, told of their transfers and of the open files.
#include "tracefs/tally/access.h"

#include <array>

#include "tracefs/query/analyses.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

using Files = tally::OpenFiles<tally::AccessRun>;

struct Steps {
  uint64_t ops = 0;
  uint64_t bytes = 0;
};

class Access final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    open_.Take(
        record.event, OriginOf(record).mount,
        [this](const tally::Transfer& transfer, uint64_t /*offset*/,
               tally::AccessStep step) {
          Steps& sums = steps_[static_cast<size_t>(transfer.way)]
                              [static_cast<size_t>(step)];
          ++sums.ops;
          sums.bytes = tally::AddTo(sums.bytes, transfer.bytes);
        },
        [this](const Files::Ways& ways) { Close(ways); });
  }

  std::vector<Table> Finish() override {
    open_.Finish([this](const Files::Ways& ways) { Close(ways); });
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
      Steps all;
      for (const Steps& sums : steps_[w]) {
        all.ops += sums.ops;
        all.bytes = tally::AddTo(all.bytes, sums.bytes);
      }
      for (size_t i = 0; i < tally::kAccessSteps; ++i) {
        const Steps& sums = steps_[w][i];
        steps.rows.push_back({name, Value::Text(tally::kAccessStepNames[i]),
                              Value::Number(sums.ops),
                              Value::Number(sums.bytes),
                              Value::Share(sums.ops, all.ops),
                              Value::Share(sums.bytes, all.bytes)});
      }
      for (size_t i = 0; i < tally::kAccessPatterns; ++i) {
        const Opens& sums = opens_[w][i];
        opens.rows.push_back(
            {name, Value::Text(tally::kAccessPatternNames[i]),
             Value::Number(sums.opens), Value::Number(sums.ops),
             Value::Number(sums.bytes),
             sums.opens == 0 ? Value()
                             : Value::Number(sums.runs.Quantile(
                                   0.5, {.max = sums.longest})),
             sums.opens == 0 ? Value() : Value::Number(sums.longest)});
      }
    }
    if (open_.not_followed() != 0) {
      opens.notes.push_back(std::to_string(open_.not_followed()) +
                            " operations were through open files beyond the " +
                            std::to_string(Files::kMost) +
                            " that are followed at the same time");
    }
    return {steps, opens};
  }

 private:
  struct Opens {
    uint64_t opens = 0, ops = 0, bytes = 0, longest = 0;
    tally::SparseHistogram runs;
  };

  void Close(const Files::Ways& ways) {
    for (size_t w = 0; w < 2; ++w) {
      const tally::AccessRun& way = ways[w];
      if (way.count() == 0) continue;
      Opens& sums = opens_[w][static_cast<size_t>(way.pattern())];
      ++sums.opens;
      sums.ops += way.count();
      sums.bytes = tally::AddTo(sums.bytes, way.bytes());
      sums.longest = std::max(sums.longest, way.longest_run());
      sums.runs.Add(way.longest_run());
    }
  }

  Files open_;
  std::array<std::array<Steps, tally::kAccessSteps>, 2> steps_{};
  std::array<std::array<Opens, tally::kAccessPatterns>, 2> opens_{};
};

}  // namespace

std::unique_ptr<Analysis> MakeAccess(const AnalysisOptions& /*options*/) {
  return std::make_unique<Access>();
}

}  // namespace tracefs::query
