#include "tracefs/query/analyses.h"

#include <fcntl.h>

namespace tracefs::query {
namespace {

constexpr AnalysisRow kAnalyses[] = {
    {"group", "operations grouped by keys: by, values, every", &MakeGroup},
    {"summary", "facts of the whole", &MakeSummary},
    {"verdict", "the whole in a sentence or two, and what could be saved",
     &MakeVerdict},
    {"slowest", "the operations that took longest", &MakeSlowest},
    {"tree", "processes below their parents", &MakeTree},
    {"access", "sequential, strided or random", &MakeAccess},
    {"blocks", "re-reads, overwrites, lives of blocks, working set",
     &MakeBlocks},
    {"extents", "where on the device files lie, how far accesses are apart",
     &MakeExtents},
    {"disk", "how much of fsyncs and reads was the device's", &MakeDisk},
    {"lifetimes", "how long files live", &MakeLifetimes},
    {"sharing", "files that several processes use", &MakeSharing},
    {"double-writes", "rewritten, recreated, replaced by rename",
     &MakeDoubleWrites},
    {"races", "reads that race with a writer", &MakeRaces},
    {"churn", "files made and removed again", &MakeChurn, /*says_never=*/true},
    {"queueing", "operations under way at the same time", &MakeQueueing},
    {"critical-path", "processes that the whole waited for", &MakeCriticalPath},
    {"uses", "files that are read, written, or both", &MakeUses,
     /*says_never=*/true},
    {"rates", "operations and bytes in periods of several lengths", &MakeRates},
    {"pauses", "how long it is quiet between operations", &MakePauses},
    {"permissions", "changes of mode and owner", &MakePermissions},
    {"who", "who did what to one file", &MakeWho},
};

}  // namespace

std::span<const AnalysisRow> Analyses() { return kAnalyses; }

const AnalysisRow* FindAnalysis(std::string_view name) {
  for (const AnalysisRow& row : kAnalyses) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool TruncatesByOpening(const Event& event) {
  return OpensFile(event.op) && (event.GetOr0(Field::kFlags) & O_TRUNC) != 0;
}

}  // namespace tracefs::query
