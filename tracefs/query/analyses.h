// The table of analyses: what `analysis = NAME` in a query means.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tracefs/headline/headline.h"
#include "tracefs/query/analysis.h"
#include "tracefs/query/grouping.h"

namespace tracefs::query {

struct AnalysisOptions {
  size_t top = 20;           // as many as are wanted of what is kept by rank
  std::string path = {};     // of `who` and `disk`, as it was given
  HeadlineFacts asked = {};  // what leaves operations out, and the like
  GroupSpec group = {};      // of `group`
  // Of `pauses` and `lifetimes`: a row of their histograms, in ns; 0: powers of
  // two.
  uint64_t histogram_width = 0;
};

struct AnalysisRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Analysis> (*make)(const AnalysisOptions& options);
  // Its rows say that something was never done: what the traces cannot tell is
  // to be said beside them.
  bool says_never = false;
};

std::span<const AnalysisRow> Analyses();
// nullptr if there is none of that name.
const AnalysisRow* FindAnalysis(std::string_view name);

std::unique_ptr<Analysis> MakeAccess(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeBlocks(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeChurn(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeCriticalPath(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeDisk(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeDoubleWrites(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeExtents(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeGroup(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeLifetimes(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeQueueing(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakePauses(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakePermissions(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeRaces(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeRates(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeSharing(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeSummary(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeTree(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeUses(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeVerdict(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeWho(const AnalysisOptions& options);
std::unique_ptr<Analysis> MakeSlowest(const AnalysisOptions& options);

}  // namespace tracefs::query
