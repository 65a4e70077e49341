// What groups operations as a SELECT over the view `runs` (sql_views.h).
//
// Tested by tests/tools/fleet_sql_test.py: DuckDB counts what Grouping counts.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/query/grouping.h"

namespace tracefs::query {

// Without ORDER BY. `condition`: of SqlCondition. kInvalid for a key that the
// columns of Parquet files do not have.
Result<std::string> SqlOfGroup(const GroupSpec& spec,
                               std::string_view condition);

}  // namespace tracefs::query
