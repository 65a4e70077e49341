// The tables and views of SQLite exports.
#pragma once

#include <string>
#include <vector>

#include "tracefs/export/columns.h"

namespace tracefs {

// A column of the table `ops`.
struct SqliteColumn {
  std::string name;
  std::string type;
  // nullptr: the number of a row of `processes` or of `paths`.
  const Column* column = nullptr;
};
std::vector<SqliteColumn> SqliteOperationColumns();

// The view that has every column by its name.
std::string SqliteOperationsView();

extern const char* const kSqliteTables;
extern const char* const kSqliteViews;
extern const char* const kSqliteIndices;

}  // namespace tracefs
