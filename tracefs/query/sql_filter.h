// A filter as a condition of SQL over the view `runs` (sql_views.h).
//
// Tested by tests/tools/fleet_sql_test.py: DuckDB keeps what the filter keeps.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs::query {

// "" for the filter that keeps everything. kInvalid as the filter's own errors,
// and, with the word, for what the columns of Parquet files cannot answer.
Result<std::string> SqlCondition(std::string_view filter,
                                 std::string_view origin);

}  // namespace tracefs::query
