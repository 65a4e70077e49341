// The views that SQL of ours asks: `operations` is the Parquet layout as it is,
// `runs` what has run, with what several questions need worked out.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/query/sql_text.h"

namespace tracefs::query {

// The one statement that is DuckDB's own.
inline std::string SqlOperations(std::string_view folder) {
  std::string glob(folder);
  while (glob.size() > 1 && glob.ends_with('/')) glob.pop_back();
  return "CREATE OR REPLACE VIEW operations AS\nSELECT * FROM read_parquet(" +
         SqlText(glob + "/host=*/date=*/*.parquet") +
         ",\n                           hive_partitioning = true, "
         "union_by_name = true);\n";
}

inline constexpr std::string_view kSqlRuns =
    R"sql(CREATE OR REPLACE VIEW runs AS
SELECT *,
       nullif(regexp_extract(path_name, '^.+[.]([^.]*)$', 1), '') AS path_ext,
       nullif(regexp_extract(path2_name, '^.+[.]([^.]*)$', 1), '') AS path2_ext
FROM (SELECT *,
             -- what a read, a write or a copy moved
             CASE WHEN op IN ('read', 'write', 'copy_file_range')
                   AND errno IS NULL AND result >= 0
                  THEN result END AS moved,
             CASE WHEN path LIKE '/%' AND path NOT LIKE '/%/%' THEN '/'
                  ELSE nullif(regexp_extract(path, '^(.*)/[^/]*$', 1), '')
             END AS path_dir,
             nullif(regexp_extract(path, '[^/]*$', 0), '') AS path_name,
             nullif(regexp_extract(coalesce(path2, new_name), '[^/]*$', 0), '')
               AS path2_name
      FROM operations
      -- not what was recorded before an operation ran (STR_PRE_OP)
      WHERE NOT coalesce(before, FALSE)) AS o;
)sql";

}  // namespace tracefs::query
