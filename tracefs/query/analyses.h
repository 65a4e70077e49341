// The table of analyses: what `analysis = NAME` in a query means.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tracefs/query/analysis.h"

namespace tracefs::query {

struct AnalysisOptions {
  size_t top = 20;        // as many as are wanted of what is kept by rank
  std::string path = {};  // of `who`
};

struct AnalysisRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Analysis> (*make)(const AnalysisOptions& options);
};

std::span<const AnalysisRow> Analyses();
// nullptr if there is none of that name.
const AnalysisRow* FindAnalysis(std::string_view name);

std::unique_ptr<Analysis> MakeSlowest(const AnalysisOptions& options);

}  // namespace tracefs::query
