// The SQL of questions that are more than groups of operations, over the view
// `runs` (sql_views.h).
//
// Tested by tests/tools/fleet_sql_test.py against the analyses of these names.
#pragma once

#include <span>
#include <string_view>

namespace tracefs::query {

struct SqlTable {
  std::string_view title = {};  // "": that of the question
  // Without ORDER BY, with {runs} for the view, narrowed, pieces by their
  // words, and {path}, {a}, {b} for the words behind a question.
  std::string_view select;
  // As the analysis has it; "-C": smallest first; "": as they are.
  std::string_view sort = {};
};

// What several of them begin with.
struct SqlPiece {
  std::string_view word;
  std::string_view text;
};
std::span<const SqlPiece> SqlPieces();

struct SqlRow {
  std::string_view analysis;
  std::span<const SqlTable> tables;
  std::string_view why_not = {};  // where there are none: what it takes
  // The other parts of a question answer without it.
  bool may_lack = false;
};

// nullptr if it is no analysis.
const SqlRow* FindSql(std::string_view analysis);

}  // namespace tracefs::query
