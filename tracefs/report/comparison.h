// The page of two runs side by side: one HTML file as that of one (page.h).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tracefs/report/document.h"

namespace tracefs::report {

// What they differ by, group by group.
struct ComparedTable {
  std::string name;     // of what is compared: "operation"
  std::string summary;  // a sentence
  std::vector<std::string> notes;
  Json columns;  // [{name, unit}]
  Json rows;     // values; null: there is none
  Json other;    // a row of all others, or null
  // The same as people read it.
  std::vector<std::vector<std::string>> texts;
};

// `sides`: documents of A and B. The data of the page is "tracefs-comparison/1"
// (docs/report.md).
Json MakeComparison(const std::array<Json, 2>& sides,
                    const std::vector<ComparedTable>& tables);
std::string MakeComparisonPage(const std::array<Json, 2>& sides,
                               const std::vector<ComparedTable>& tables);

}  // namespace tracefs::report
