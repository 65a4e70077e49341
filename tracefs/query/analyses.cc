#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

constexpr AnalysisRow kAnalyses[] = {
    {"slowest", "the operations that took longest", &MakeSlowest},
};

}  // namespace

std::span<const AnalysisRow> Analyses() { return kAnalyses; }

const AnalysisRow* FindAnalysis(std::string_view name) {
  for (const AnalysisRow& row : kAnalyses) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

uint64_t BytesMoved(const Event& event) {
  const bool moves = event.op == Op::read_ || event.op == Op::write_ ||
                     event.op == Op::copy_file_range_;
  if (!moves || Failed(event) || !event.Has(Field::kResult)) return 0;
  const auto result = static_cast<int64_t>(event.Get(Field::kResult));
  return result > 0 ? static_cast<uint64_t>(result) : 0;
}

}  // namespace tracefs::query
