// The views that SQL of ours asks: `operations` is the Parquet layout as it is,
// `runs` what has run, with what several questions need worked out, `file_uses`
// the same by file.
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
             CASE WHEN op IN ('read', 'copy_file_range')
                   AND errno IS NULL AND result >= 0
                  THEN result END AS bytes_read,
             CASE WHEN op IN ('write', 'copy_file_range')
                   AND errno IS NULL AND result >= 0
                  THEN result END AS bytes_written,
             -- each byte once; what a copy reads it writes
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

// The same with a second row for the second file of a copy, which has what was
// written to it and nothing else: sums of these rows are those of operations.
inline constexpr std::string_view kSqlFileUses =
    R"sql(CREATE OR REPLACE VIEW file_uses AS
SELECT r.*, p.part,
       CASE WHEN op <> 'copy_file_range' THEN op
            WHEN part = 1 THEN 'read' ELSE 'write' END AS did,
       CASE WHEN part = 1 THEN path ELSE path2 END AS use_path,
       CASE WHEN part = 1 THEN path_dir
            WHEN path2 LIKE '/%' AND path2 NOT LIKE '/%/%' THEN '/'
            ELSE nullif(regexp_extract(path2, '^(.*)/[^/]*$', 1), '')
       END AS use_path_dir,
       CASE WHEN part = 1 THEN path_name ELSE path2_name END AS use_path_name,
       CASE WHEN part = 1 THEN path_ext ELSE path2_ext END AS use_path_ext,
       CASE WHEN part = 1 THEN inode ELSE inode_out END AS use_inode,
       CASE WHEN part = 1 THEN fh ELSE fh_out END AS use_fh,
       CASE WHEN part = 1 THEN "offset" ELSE offset_out END AS use_offset,
       CASE WHEN part = 1 THEN latency END AS use_latency,
       CASE WHEN part = 1 THEN bytes_read END AS use_read,
       CASE WHEN part = 2 OR op = 'write' THEN bytes_written END AS use_written,
       moved AS use_bytes
FROM runs AS r
CROSS JOIN (SELECT 1 AS part UNION ALL SELECT 2 AS part) AS p
WHERE part = 1 OR op = 'copy_file_range';
)sql";

}  // namespace tracefs::query
