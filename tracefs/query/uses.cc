// Which files are read how often, and which were written but never read.
#include "tracefs/query/analyses.h"
#include "tracefs/query/life_analysis.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostUses = size_t{1} << 17;

class Uses final : public LifeAnalysis {
 private:
  std::vector<Table> Tables() override {
    Table files;
    files.columns = {{"path"},
                     {"use"},
                     {"reads", Unit::kNumber, true},
                     {"read", Unit::kBytes, true},
                     {"writes", Unit::kNumber, true},
                     {"written", Unit::kBytes, true},
                     {"readers"},
                     {"writers"}};
    files.rows = std::move(rows_);
    Table sums;
    sums.title = "files by use";
    sums.columns = {{"use"},
                    {"files", Unit::kNumber, true},
                    {"read", Unit::kBytes, true},
                    {"written", Unit::kBytes, true}};
    for (size_t i = 0; i < std::size(sums_); ++i) {
      sums.rows.push_back({Value::Text(kUses[i]), Value::Number(sums_[i].files),
                           Value::Number(sums_[i].read),
                           Value::Number(sums_[i].written)});
    }
    return {files, sums};
  }

  static constexpr std::string_view kUses[] = {"read only", "write only",
                                               "both"};
  struct Sums {
    uint64_t files = 0, read = 0, written = 0;
  };

  void Ended(const FileLife& life, const FileLife* /*by*/) override {
    if (life.reads + life.writes == 0) return;
    const size_t use = life.writes == 0 ? 0 : life.reads == 0 ? 1 : 2;
    Sums& sums = sums_[use];
    ++sums.files;
    sums.read = tally::AddTo(sums.read, life.read);
    sums.written = tally::AddTo(sums.written, life.written);
    if (rows_.size() == kMostUses) {
      ++rows_left_out_;
      return;
    }
    rows_.push_back({Value::Text(life.Called()), Value::Text(kUses[use]),
                     Value::Number(life.reads), Value::Number(life.read),
                     Value::Number(life.writes), Value::Number(life.written),
                     Value::Text(life.readers.Names()),
                     Value::Text(life.writers.Names())});
  }

  std::vector<Row> rows_;
  Sums sums_[std::size(kUses)];
};

}  // namespace

std::unique_ptr<Analysis> MakeUses(const AnalysisOptions& /*options*/) {
  return std::make_unique<Uses>();
}

}  // namespace tracefs::query
