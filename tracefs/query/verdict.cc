// The headline as a table: its sentences before it, what could be saved in it.
#include <utility>

#include "tracefs/headline/headline.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

class Verdict final : public Analysis {
 public:
  explicit Verdict(HeadlineFacts asked) : asked_(std::move(asked)) {}

  void Take(const format::Record& record, size_t /*trace*/) override {
    headline_.Add(record);
  }
  void TakeProcessOf(const format::TraceContext& trace,
                     const ProcessRecord& record) override {
    headline_.AddProcess(record, MountPointOf(trace));
  }
  void TakeTraces(
      std::span<const format::TraceContext* const> traces) override {
    text_ = headline_.Finish(traces, asked_);
  }

  std::vector<Table> Finish() override {
    Table table;
    table.summary = std::move(text_.sentences);
    if (text_.findings.empty()) return {table};
    table.columns = {
        {"time", Unit::kDuration}, {"count", Unit::kCount}, {"what"}, {"more"}};
    for (const Saving& finding : text_.findings) {
      table.rows.push_back(
          {Value::Number(finding.time_ns), Value::Number(finding.count),
           Value::Text(finding.what), Value::Text(finding.command)});
    }
    table.notes.push_back(
        "`time` is the most that can be saved; operations may be in several "
        "rows");
    return {table};
  }

 private:
  const HeadlineFacts asked_;
  Headline headline_;
  HeadlineText text_;
};

}  // namespace

std::unique_ptr<Analysis> MakeVerdict(const AnalysisOptions& options) {
  return std::make_unique<Verdict>(options.asked);
}

}  // namespace tracefs::query
