// Parts of the document, a function for each panel or two.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/report/collector.h"
#include "tracefs/report/document.h"

namespace tracefs::report {

// When things happened is told from here on, ns since the epoch.
inline uint64_t OriginOf(const Collector& collector) {
  return collector.grid().empty() ? 0 : collector.grid().first_ns();
}
// From the origin; negative where bins begin before the first operation.
inline int64_t Since(uint64_t origin_ns, uint64_t ns) {
  return static_cast<int64_t>(ns - origin_ns);
}

// Rows of the page's tables, and bytes that their names, and a table's series,
// may take.
inline constexpr size_t kMostTableRows = 1000;
inline constexpr size_t kTableNameBytes = 160'000;

// Bytes that a text will have in the page.
size_t EmbeddedBytes(std::string_view text);

// Flat: coarse bin, count, errors, bytes, time_ns; and so on. Null: there is
// none, or more than what is left of `points_left`, which it takes from.
Json SeriesAsJson(Series& series, const Bins& coarse, size_t* points_left);

// "count", "errors", "read", "written", "time_ns", "longest_ns".
Json SumsAsJson(const tally::Sums& sums);
// The same numbers, in this order.
void AppendSums(const tally::Sums& sums, Json* row);

// document_head.cc: what the traces are of.
Json SubjectAsJson(const Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   const Json& processes);
// What the page is called, if nobody says otherwise; "" if nothing is known.
std::string TitleOf(const Json& subject);
// document_time.cc
Json TimeAsJson(const Collector& collector);
Json OperationsAsJson(Collector& collector);
Json TimelineAsJson(Collector& collector,
                    const std::vector<const format::TraceReader*>& traces);
Json LatencyAsJson(Collector& collector);
// document_tables.cc: what is left out is added to `notes`. `file_rows`: the
// files of the rows of that table.
Json TablesAsJson(Collector& collector, std::vector<NodeId>* file_rows,
                  Json* notes);
Json ErrorsAsJson(Collector& collector);
// document_access.cc
Json AccessAsJson(Collector& collector);
// As many of these as fit into so many bytes.
Json SlowestAsJson(const Collector& collector,
                   const std::vector<SlowOperation>& slow, size_t most_bytes,
                   Json* notes);
// document_counted.cc
Json CountedAsJson(Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   Json* notes);
Json CountedLayersAsJson(Collector& collector,
                         const std::vector<const format::TraceReader*>& traces);
// document_trees.cc
Json TreeAsJson(Collector& collector, const std::vector<NodeId>& file_rows,
                Json* notes);
// `places`: of each process, the node of the document that it is part of.
Json ProcessesAsJson(Collector& collector, std::vector<size_t>* places,
                     Json* notes);
Json FlameAsJson(Collector& collector, Json* notes);
Json UsesAsJson(Collector& collector, const std::vector<NodeId>& file_rows,
                const std::vector<size_t>& process_places);
// document_traces.cc
Json TracesAsJson(const std::vector<const format::TraceReader*>& traces);
Json LossesAsJson(const Collector& collector,
                  const std::vector<const format::TraceReader*>& traces);
// The headline: {sentences, findings}.
Json VerdictAsJson(const Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   const HeadlineFacts& asked);
// summary.cc: sentences, those that matter most first.
Json SummaryAsJson(const Json& document);

}  // namespace tracefs::report
