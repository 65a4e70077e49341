// Which files are read how often, and which were written but never read.
#include "tracefs/query/analyses.h"
#include "tracefs/query/file_lives.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostUses = size_t{1} << 17;

class Uses final : public Analysis {
 public:
  Uses()
      : lives_([this](const FileLife& life, const FileLife*) { Ended(life); }) {
  }
  void Take(const format::Record& record, size_t /*trace*/) override {
    lives_.Take(record);
  }
  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    lives_.Take(record, /*counts=*/false);
  }
  void TakeProcess(const ProcessRecord& record) override {
    lives_.TakeProcess(record);
  }

  std::vector<Table> Finish() override {
    lives_.Finish();
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
    if (left_out_ != 0) {
      files.notes.push_back(std::to_string(left_out_) +
                            " more files had no room");
    }
    if (std::string note = lives_.Note(); !note.empty()) {
      files.notes.push_back(std::move(note));
    }
    return {files, sums};
  }

 private:
  static constexpr std::string_view kUses[] = {"read only", "write only",
                                               "both"};
  struct Sums {
    uint64_t files = 0, read = 0, written = 0;
  };

  void Ended(const FileLife& life) {
    if (life.reads + life.writes == 0) return;
    const size_t use = life.writes == 0 ? 0 : life.reads == 0 ? 1 : 2;
    Sums& sums = sums_[use];
    ++sums.files;
    sums.read = tally::AddTo(sums.read, life.read);
    sums.written = tally::AddTo(sums.written, life.written);
    if (rows_.size() == kMostUses) {
      ++left_out_;
      return;
    }
    rows_.push_back({Value::Text(life.Called()), Value::Text(kUses[use]),
                     Value::Number(life.reads), Value::Number(life.read),
                     Value::Number(life.writes), Value::Number(life.written),
                     Value::Text(life.readers.Names()),
                     Value::Text(life.writers.Names())});
  }

  FileLives lives_;
  std::vector<Row> rows_;
  Sums sums_[std::size(kUses)];
  uint64_t left_out_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeUses(const AnalysisOptions& /*options*/) {
  return std::make_unique<Uses>();
}

}  // namespace tracefs::query
