#include "tracefs/query/sql_ready.h"

#include <array>

namespace tracefs::query {
namespace {

constexpr std::array kSummary = {
    SqlTable{.select = R"(SELECT count(*) AS operations,
       count(CASE WHEN op NOT IN ('read', 'write', 'copy_file_range')
             THEN 1 END) AS on_metadata,
       count(errno) AS failed,
       count(CASE WHEN inferred THEN 1 END) AS of_inferred_callers,
       max("time" + coalesce(latency, 0)) - min("time") AS span_ns,
       sum(latency) AS time_in_operations_ns,
       coalesce(sum(bytes_read), 0) AS bytes_read,
       coalesce(sum(bytes_written), 0) AS bytes_written,
       count(DISTINCT CASE WHEN NOT coalesce(inferred, FALSE)
             THEN host || ' ' || CAST(cpid AS VARCHAR) END) AS processes,
       count(DISTINCT host || ' ' || CAST(inode AS VARCHAR)) AS files,
       count(DISTINCT host) AS hosts
FROM {runs})"}};

constexpr std::array kSlowest = {SqlTable{
    .select =
        R"(SELECT "time" AS time_ns, latency AS latency_ns, op, cname, cpid,
       coalesce(moved, 0) AS bytes, errno, path, host
FROM {runs}
WHERE latency IS NOT NULL)",
    .sort = "latency_ns"}};

// Against the transfer before it through the same open file.
constexpr std::array kAccess = {SqlTable{.select = R"(WITH moves AS (
  SELECT host, tracer, use_fh AS fh, use_inode AS inode, did AS op, "time",
         CAST(use_offset AS BIGINT) AS pos, coalesce(use_bytes, 0) AS bytes,
         sum(CASE WHEN op = 'release' THEN 1 ELSE 0 END) OVER (
           PARTITION BY host, tracer, use_fh, use_inode ORDER BY "time"
           ROWS UNBOUNDED PRECEDING) AS opened
  FROM {uses}
  WHERE did IN ('read', 'write', 'release') AND errno IS NULL),
steps AS (
  SELECT op AS direction, bytes,
         pos - lag(pos + bytes) OVER (
           PARTITION BY host, tracer, fh, inode, opened, op ORDER BY "time")
           AS gap
  FROM moves
  WHERE op <> 'release' AND pos IS NOT NULL)
SELECT direction,
       CASE WHEN gap IS NULL THEN 'first' WHEN gap = 0 THEN 'consecutive'
            WHEN gap > 0 THEN 'forward' ELSE 'backward' END AS step,
       count(*) AS "count", sum(bytes) AS bytes,
       count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY direction) AS share,
       sum(bytes) * 1.0
         / nullif(sum(sum(bytes)) OVER (PARTITION BY direction), 0)
         AS bytes_share
FROM steps
GROUP BY 1, 2)",
                                         .sort = "count"},
                                SqlTable{.title = "open files",
                                         .select = R"(WITH moves AS (
  SELECT host, tracer, use_fh AS fh, use_inode AS inode, did AS op, "time",
         CAST(use_offset AS BIGINT) AS pos, coalesce(use_bytes, 0) AS bytes,
         sum(CASE WHEN op = 'release' THEN 1 ELSE 0 END) OVER (
           PARTITION BY host, tracer, use_fh, use_inode ORDER BY "time"
           ROWS UNBOUNDED PRECEDING) AS opened
  FROM {uses}
  WHERE did IN ('read', 'write', 'release') AND errno IS NULL),
steps AS (
  SELECT host, tracer, fh, inode, opened, op, "time", bytes,
         pos - lag(pos + bytes) OVER w AS gap, pos - lag(pos) OVER w AS distance
  FROM moves
  WHERE op <> 'release' AND pos IS NOT NULL
  WINDOW w AS (
    PARTITION BY host, tracer, fh, inode, opened, op ORDER BY "time")),
marked AS (
  SELECT *,
         CASE WHEN distance = lag(distance) OVER w THEN 1 ELSE 0 END AS again,
         sum(CASE WHEN gap = 0 THEN 0 ELSE 1 END) OVER (
           PARTITION BY host, tracer, fh, inode, opened, op ORDER BY "time"
           ROWS UNBOUNDED PRECEDING) AS run
  FROM steps
  WINDOW w AS (
    PARTITION BY host, tracer, fh, inode, opened, op ORDER BY "time")),
runs_of_bytes AS (
  SELECT host, tracer, fh, inode, opened, op, run, count(*) AS ops,
         sum(bytes) AS bytes, sum(CASE WHEN gap = 0 THEN 1 ELSE 0 END) AS next,
         sum(again) AS again
  FROM marked
  GROUP BY host, tracer, fh, inode, opened, op, run),
opens AS (
  SELECT op AS direction, sum(ops) AS ops, sum(bytes) AS bytes,
         sum(next) AS next, sum(again) AS again, max(bytes) AS longest
  FROM runs_of_bytes
  GROUP BY host, tracer, fh, inode, opened, op)
SELECT direction,
       CASE WHEN ops < 2 THEN 'single'
            WHEN 10 * next >= 9 * (ops - 1) THEN 'sequential'
            WHEN ops > 2 AND 10 * again >= 9 * (ops - 2) THEN 'strided'
            ELSE 'random' END AS pattern,
       count(*) AS opens, sum(ops) AS "count", sum(bytes) AS bytes,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY longest) AS run_p50,
       max(longest) AS run_max
FROM opens
GROUP BY 1, 2)",
                                         .sort = "count"}};

constexpr std::array kQueueing = {
    SqlTable{.select = R"(WITH changes AS (
  SELECT "time" AS moment, 1 AS more FROM {runs}
  WHERE latency IS NOT NULL AND "time" IS NOT NULL
  UNION ALL
  SELECT "time" + CAST(latency AS BIGINT), -1 FROM {runs}
  WHERE latency IS NOT NULL AND "time" IS NOT NULL),
moments AS (
  SELECT moment, sum(more) AS more FROM changes GROUP BY moment),
depths AS (
  SELECT sum(more) OVER (ORDER BY moment ROWS UNBOUNDED PRECEDING) AS depth,
         lead(moment) OVER (ORDER BY moment) - moment AS ns
  FROM moments)
SELECT depth, sum(ns) AS time_ns,
       sum(ns) * 1.0 / sum(sum(ns)) OVER () AS share
FROM depths
WHERE depth > 0 AND ns > 0
GROUP BY depth)",
             .sort = "-depth"},
    SqlTable{.title = "processes whose operations overlap",
             .select = R"(WITH ends AS (
  SELECT host, cname, coalesce(cpid, 0) AS cpid, "time",
         max("time" + CAST(latency AS BIGINT)) OVER (
           PARTITION BY host, coalesce(cpid, 0) ORDER BY "time"
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_end
  FROM {runs}
  WHERE latency IS NOT NULL AND "time" IS NOT NULL)
SELECT min(cname) AS cname, cpid, count(*) AS "count",
       count(CASE WHEN last_end > "time" THEN 1 END) AS overlapping, host
FROM ends
GROUP BY host, cpid
HAVING count(CASE WHEN last_end > "time" THEN 1 END) > 0)",
             .sort = "overlapping"}};

// A file from its creation, or its first use, to its end: told by its inode,
// whose number is free again when its last name is gone. A name that another
// file is moved to belongs to the one that was last seen under it. The path of
// a tmpfile is its directory: it has no name before a link, and without one
// ends with its last release.
constexpr std::string_view kLives =
    R"(WITH names AS (
  SELECT host, use_path AS path, "time",
         "time" + coalesce(CAST(latency AS BIGINT), 0) AS run_by,
         did AS op, use_inode AS inode, cname,
         CASE WHEN did IN ('unlink', 'rename') THEN NULL ELSE use_inode
         END AS holds
  FROM {uses}
  WHERE errno IS NULL AND use_path IS NOT NULL
    AND did IN ('create', 'mknod', 'symlink', 'open', 'read', 'write',
                'release', 'unlink', 'rename', 'link')
  UNION ALL
  SELECT host, path2, "time",
         "time" + coalesce(CAST(latency AS BIGINT), 0), 'arrival', inode,
         cname, inode
  FROM {runs}
  WHERE errno IS NULL AND path2 <> path AND op IN ('rename', 'link')
    AND (op = 'link' OR coalesce(flags, 0) & 2 = 0)),  -- RENAME_EXCHANGE
held AS (
  SELECT *, lag(holds) OVER (PARTITION BY host, path ORDER BY "time") AS held
  FROM names),
uses AS (
  SELECT host, use_inode AS inode, "time",
         "time" + coalesce(CAST(latency AS BIGINT), 0) AS run_by,
         cname, coalesce(cpid, 0) AS cpid, fh, use_bytes AS moved,
         CASE WHEN op = 'rename' THEN path2
              WHEN op = 'link' THEN coalesce(use_path, path2)
              ELSE use_path END AS path,
         CASE WHEN op = 'unlink' THEN 'removed' ELSE did END AS op
  FROM {uses}
  WHERE errno IS NULL AND use_inode IS NOT NULL
    AND (did IN ('create', 'mknod', 'tmpfile', 'symlink', 'open', 'read',
                 'write', 'release', 'rename', 'link')
         OR (op = 'unlink' AND coalesce(nlink, 1) <= 1))
  UNION ALL
  SELECT host, held, "time", run_by, cname, 0, NULL, NULL, path, 'replaced'
  FROM held
  WHERE op = 'arrival' AND held IS NOT NULL AND held <> inode),
numbered AS (
  SELECT *,
         coalesce(sum(CASE WHEN op IN ('removed', 'replaced') THEN 1 ELSE 0
                      END) OVER (
           PARTITION BY host, inode ORDER BY "time"
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) +
         sum(CASE WHEN op = 'tmpfile' THEN 1 ELSE 0 END) OVER (
           PARTITION BY host, inode ORDER BY "time"
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) -
         -- the kernel tells of a close after it
         CASE WHEN op = 'release' AND "time" < max(
                CASE WHEN op IN ('removed', 'replaced') THEN run_by END) OVER (
                  PARTITION BY host, inode ORDER BY "time"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
              THEN 1 ELSE 0 END AS life
  FROM uses),
steps AS (
  SELECT *,
         row_number() OVER (
           PARTITION BY host, inode, life ORDER BY "time") AS step,
         row_number() OVER (
           PARTITION BY host, inode, life ORDER BY "time" DESC) AS back
  FROM numbered),
lives AS (
  SELECT host, inode, life,
         max(CASE WHEN step = 1 AND op IN ('create', 'mknod', 'tmpfile',
                                           'symlink') THEN 1 ELSE 0 END)
           AS created,
         max(CASE WHEN step = 1 THEN cname END) AS maker,
         coalesce(max(CASE WHEN step = 1 AND op <> 'tmpfile' THEN path END),
                  max(CASE WHEN op = 'link' THEN path END)) AS born_path,
         max(CASE WHEN op = 'tmpfile' THEN path END) AS born_in,
         max(CASE WHEN back = 1 AND op <> 'tmpfile' THEN path END) AS path,
         min("time") AS born,
         CASE WHEN max(CASE WHEN op = 'tmpfile' THEN 1
                            WHEN op = 'link' THEN 2 ELSE 0 END) = 1
                AND max(CASE WHEN back = 1 AND op = 'release' THEN 1 END) = 1
              THEN 'removed'
              ELSE max(CASE WHEN op IN ('removed', 'replaced') THEN op END)
         END AS ended,
         coalesce(max(CASE WHEN op IN ('removed', 'replaced') THEN "time" END),
                  max("time")) AS end_time,
         count(CASE WHEN op = 'read' THEN 1 END) AS reads,
         coalesce(sum(CASE WHEN op = 'read' THEN moved END), 0) AS bytes_read,
         coalesce(sum(CASE WHEN op = 'write' THEN moved END), 0)
           AS bytes_written,
         count(DISTINCT CASE WHEN op = 'read' THEN cpid END) AS readers,
         count(DISTINCT CASE WHEN op = 'write' THEN cpid END) AS writers,
         sum(CASE WHEN op IN ('open', 'tmpfile')
                    OR (op = 'create' AND fh IS NOT NULL) THEN 1
                  WHEN op = 'release' THEN -1 ELSE 0 END) AS handles
  FROM steps
  GROUP BY host, inode, life)
)";

constexpr std::array kLifetimes = {SqlTable{
    .select =
        R"({lives}SELECT coalesce(maker, '?') AS cname, count(*) AS created,
       count(CASE WHEN ended = 'removed' THEN 1 END) AS removed,
       count(CASE WHEN ended = 'replaced' THEN 1 END) AS replaced,
       count(CASE WHEN ended IS NOT NULL AND handles > 0 THEN 1 END)
         AS removed_open,
       sum(bytes_written) AS written,
       coalesce(sum(CASE WHEN ended IS NOT NULL THEN bytes_written END), 0)
         AS thrown_away,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY
         CASE WHEN ended IS NOT NULL THEN end_time - born END) AS p50_ns,
       percentile_disc(0.9) WITHIN GROUP (ORDER BY
         CASE WHEN ended IS NOT NULL THEN end_time - born END) AS p90_ns,
       max(CASE WHEN ended IS NOT NULL THEN end_time - born END) AS max_ns
FROM lives
WHERE created = 1
GROUP BY 1)",
    .sort = "created"}};

constexpr std::array kChurn = {
    SqlTable{.select = R"({lives}SELECT CASE WHEN born_path IS NULL THEN born_in
            WHEN born_path NOT LIKE '/%/%' THEN '/'
            ELSE regexp_extract(born_path, '^(.*)/[^/]*$', 1) END AS dir,
       maker AS cname, count(*) AS created,
       count(ended) AS gone,
       count(CASE WHEN ended IS NOT NULL AND bytes_written = 0 THEN 1 END)
         AS "empty",
       count(CASE WHEN ended IS NOT NULL AND reads = 0 THEN 1 END) AS unread,
       sum(bytes_written) AS written,
       coalesce(sum(CASE WHEN ended IS NOT NULL THEN bytes_written END), 0)
         AS thrown_away
FROM lives
WHERE created = 1
GROUP BY 1, 2)",
             .sort = "gone"}};

constexpr std::string_view kOrders =
    R"(, pairs AS (
  SELECT host, inode, life, op, cpid, lag(op) OVER w AS before_op,
         lag(cpid) OVER w AS before_cpid
  FROM steps
  WHERE op IN ('read', 'write')
  WINDOW w AS (PARTITION BY host, inode, life ORDER BY "time")),
orders AS (
  SELECT host, inode, life,
         CASE WHEN op = 'read' THEN CASE WHEN before_op = 'read' THEN 'rar'
                                         ELSE 'raw' END
              WHEN before_op = 'read' THEN 'war' ELSE 'waw' END AS kind,
         CASE WHEN cpid = before_cpid THEN 1 ELSE 0 END AS same
  FROM pairs
  WHERE before_op IS NOT NULL)
)";

constexpr std::array kSharing = {
    SqlTable{
        .select =
            R"({lives}{orders}SELECT min(l.path) AS path, min(l.readers) AS readers,
       min(l.writers) AS writers,
       count(CASE WHEN o.kind = 'rar' THEN 1 END) AS rar,
       count(CASE WHEN o.kind = 'raw' THEN 1 END) AS raw,
       count(CASE WHEN o.kind = 'war' THEN 1 END) AS war,
       count(CASE WHEN o.kind = 'waw' THEN 1 END) AS waw,
       min(l.bytes_read) AS "read", min(l.bytes_written) AS written, l.host
FROM lives AS l
JOIN orders AS o
  ON l.host = o.host AND l.inode = o.inode AND l.life = o.life
WHERE o.same = 0
GROUP BY l.host, l.inode, l.life)",
        .sort = "raw"},
    SqlTable{
        .title = "what follows what in a file",
        .select =
            R"({lives}{orders}SELECT kind AS "order", sum(same) AS same_process,
       sum(1 - same) AS other_process
FROM orders
GROUP BY kind)",
        .sort = "-order"}};

constexpr std::array kDoubleWrites = {SqlTable{
    .select =
        R"({lives}SELECT 'rewritten' AS class, path, sum(writers - 1) AS times,
       sum(bytes_written) AS written
FROM lives
WHERE writers > 1
GROUP BY host, path
UNION ALL
SELECT 'recreated', born_path, count(*) - 1, sum(bytes_written)
FROM lives
WHERE created = 1 AND bytes_written > 0 AND born_path IS NOT NULL
GROUP BY host, born_path
HAVING count(*) > 1
UNION ALL
SELECT 'replaced', a.path, count(*), sum(a.bytes_written)
FROM lives AS a
WHERE a.ended = 'replaced' AND a.bytes_written > 0
  AND EXISTS (SELECT 1 FROM steps AS s
              JOIN lives AS b
                ON s.host = b.host AND s.inode = b.inode AND s.life = b.life
              WHERE s.op = 'rename' AND s.host = a.host AND s.path = a.path
                AND s."time" = a.end_time AND b.bytes_written > 0)
GROUP BY a.host, a.path)",
    .sort = "written"}};

// By its path, and by every inode that ever had it, from its creation until its
// last name is gone, so that renames are followed both ways; those of
// directories above are not.
constexpr std::string_view kUsed = R"(WITH numbered AS (
  SELECT *,
         coalesce(sum(CASE WHEN op IN ('unlink', 'rmdir') AND errno IS NULL
                            AND coalesce(nlink, 1) <= 1
                           THEN 1 ELSE 0 END) OVER (
           PARTITION BY host, use_inode ORDER BY "time"
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) +
         coalesce(sum(CASE WHEN op IN ('create', 'mknod', 'tmpfile', 'symlink',
                                       'mkdir') AND errno IS NULL
                           THEN 1 ELSE 0 END) OVER (
           PARTITION BY host, use_inode ORDER BY "time"
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), 0) AS life,
         -- the second path of a copy is no other name of its first file
         CASE WHEN op <> 'copy_file_range' THEN path2 END AS other_path,
         -- that of a tmpfile is its directory
         CASE WHEN op <> 'tmpfile' THEN use_path END AS own_path
  FROM {uses}),
named AS (
  SELECT DISTINCT host, use_inode AS inode, life
  FROM numbered
  WHERE (own_path = {path} OR other_path = {path}) AND errno IS NULL
    AND use_inode IS NOT NULL),
used AS (
  SELECT n.*
  FROM numbered AS n
  LEFT JOIN named AS k
    ON n.host = k.host AND n.use_inode = k.inode AND n.life = k.life
  WHERE n.own_path = {path} OR n.other_path = {path} OR k.inode IS NOT NULL)
)";
constexpr std::array kWho = {
    SqlTable{
        .select =
            R"({used}SELECT min(r.cname) AS cname, r.cpid, r.cuid, count(*) AS "count",
       count(r.errno) AS errors,
       coalesce(sum(use_read), 0) AS "read",
       coalesce(sum(use_written), 0) AS written,
       min(r."time") AS first_ns, max(r."time") AS last_ns, r.host
FROM used AS r
GROUP BY r.host, r.cpid, r.cuid)",
        .sort = "count"},
    SqlTable{
        .title = "changes",
        .select =
            R"({used}SELECT r."time" AS time_ns, r.op, r.cname, r.cpid, r.errno, r.path, r.path2,
       r.host
FROM used AS r
WHERE r.op IN ('create', 'mknod', 'tmpfile', 'symlink', 'mkdir', 'link',
               'rename', 'unlink', 'rmdir', 'setattr', 'setxattr',
               'removexattr', 'fallocate')
   OR (r.op = 'open' AND r.flags & 512 <> 0))",  // O_TRUNC
        .sort = "-time_ns"}};

// Two days of the layout.
constexpr std::array kDiff = {SqlTable{.select = R"(WITH sides AS (
  SELECT op, CASE WHEN CAST(date AS VARCHAR) = {a} THEN 'a' ELSE 'b' END
           AS side,
         count(*) AS n, count(errno) AS errors,
         coalesce(sum(moved), 0) AS bytes, sum(latency) AS ns,
         avg(latency) AS mean,
         percentile_disc(0.99) WITHIN GROUP (ORDER BY latency) AS p99
  FROM {runs}
  WHERE CAST(date AS VARCHAR) IN ({a}, {b})
  GROUP BY 1, 2),
a AS (SELECT * FROM sides WHERE side = 'a'),
b AS (SELECT * FROM sides WHERE side = 'b')
SELECT coalesce(a.op, b.op) AS op,
       CASE WHEN a.op IS NULL THEN 'new' WHEN b.op IS NULL THEN 'gone'
            WHEN b.ns > a.ns THEN 'slower' WHEN b.ns < a.ns THEN 'faster'
            ELSE 'same' END AS verdict,
       coalesce(b.ns, 0) - coalesce(a.ns, 0) AS time_diff_ns,
       coalesce(b.n, 0) - coalesce(a.n, 0) AS count_diff,
       a.n AS count_a, b.n AS count_b, a.errors AS errors_a,
       b.errors AS errors_b, a.bytes AS bytes_a, b.bytes AS bytes_b,
       a.ns AS time_a_ns, b.ns AS time_b_ns, a.mean AS mean_a_ns,
       b.mean AS mean_b_ns, a.p99 AS p99_a_ns, b.p99 AS p99_b_ns,
       b.ns * 1.0 / nullif(a.ns, 0) - 1 AS time_change
FROM a FULL OUTER JOIN b ON a.op = b.op
ORDER BY abs(coalesce(b.ns, 0) - coalesce(a.ns, 0)) DESC,
         abs(coalesce(b.n, 0) - coalesce(a.n, 0)) DESC, 1)"}};

constexpr SqlPiece kPieces[] = {
    {"{lives}", kLives}, {"{orders}", kOrders}, {"{used}", kUsed}};

constexpr std::string_view kNoProcesses =
    "the layout has operations, not the records of processes";
constexpr std::string_view kOneByOne =
    "it follows files one operation after the other";
constexpr SqlRow kRows[] = {
    {.analysis = "summary", .tables = kSummary},
    {.analysis = "verdict",
     .tables = {},
     .why_not = kNoProcesses,
     .may_lack = true},
    {.analysis = "slowest", .tables = kSlowest},
    {.analysis = "access", .tables = kAccess},
    {.analysis = "queueing", .tables = kQueueing},
    {.analysis = "lifetimes", .tables = kLifetimes},
    {.analysis = "churn", .tables = kChurn},
    {.analysis = "sharing", .tables = kSharing},
    {.analysis = "double-writes", .tables = kDoubleWrites},
    {.analysis = "who", .tables = kWho},
    {.analysis = "diff", .tables = kDiff},
    {.analysis = "tree", .tables = {}, .why_not = kNoProcesses},
    {.analysis = "critical-path", .tables = {}, .why_not = kNoProcesses},
    {.analysis = "races", .tables = {}, .why_not = kNoProcesses},
    {.analysis = "uses", .tables = {}, .why_not = kOneByOne},
    {.analysis = "rates", .tables = {}, .why_not = kOneByOne},
    {.analysis = "permissions", .tables = {}, .why_not = kOneByOne},
    {.analysis = "pauses",
     .tables = {},
     .why_not = "it follows processes one operation after the other"},
    {.analysis = "blocks",
     .tables = {},
     .why_not = "it samples blocks of 4096 bytes one by one"},
    {.analysis = "extents", .tables = {}, .why_not = kOneByOne},
    {.analysis = "disk",
     .tables = {},
     .why_not = "requests of the block layer are not in the layout"},
};

}  // namespace

std::span<const SqlPiece> SqlPieces() { return kPieces; }

const SqlRow* FindSql(std::string_view analysis) {
  for (const SqlRow& row : kRows) {
    if (row.analysis == analysis) return &row;
  }
  return nullptr;
}

}  // namespace tracefs::query
