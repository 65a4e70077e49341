#include "tracefs/export/sqlite_schema.h"

#include <algorithm>
#include <array>

namespace tracefs {
namespace {

// What is in `processes`.
bool OfProcess(const Column& column) {
  constexpr std::array kNames = {"host", "cpid",  "ppid",
                                 "csid", "cpgid", "cname"};
  return std::ranges::find(kNames, column.name) != kNames.end();
}

bool IsPath(const Column& column) {
  return column.source == ColumnSource::kPath ||
         column.source == ColumnSource::kPath2;
}

std::string SqliteTypeOf(ColumnType type) {
  switch (type) {
    case ColumnType::kFlag:
      return "INTEGER NOT NULL";
    case ColumnType::kWord:
    case ColumnType::kText:
      return "TEXT";
    case ColumnType::kBytes:
      return "BLOB";
    default:
      return "INTEGER";
  }
}

}  // namespace

std::vector<SqliteColumn> SqliteOperationColumns() {
  std::vector<SqliteColumn> columns;
  for (const Column& column : AllColumns()) {
    const std::string name(column.name);
    if (IsPath(column)) {
      columns.push_back({name, "INTEGER REFERENCES paths", nullptr});
    } else if (name == "cpid") {
      columns.push_back({"process", "INTEGER REFERENCES processes", nullptr});
    } else if (!OfProcess(column)) {
      columns.push_back({name, SqliteTypeOf(column.type), &column});
    }
  }
  return columns;
}

std::string SqliteOperationsView() {
  std::string view = "CREATE VIEW operations AS SELECT ";
  bool first = true;
  for (const Column& column : AllColumns()) {
    const std::string name(column.name);
    if (!first) view += ", ";
    first = false;
    if (column.source == ColumnSource::kPath) {
      view += "p.path AS path, p.raw AS path_raw";
    } else if (column.source == ColumnSource::kPath2) {
      view += "p2.path AS path2, p2.raw AS path2_raw";
    } else {
      view += (OfProcess(column) ? "c." : "o.") + name + " AS " + name;
    }
  }
  return view +
         " FROM ops o LEFT JOIN paths p ON o.path = p.id"
         " LEFT JOIN paths p2 ON o.path2 = p2.id"
         " LEFT JOIN processes c ON o.process = c.id";
}

const char* const kSqliteTables = R"sql(
CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL, raw BLOB)
  STRICT;
CREATE TABLE processes (id INTEGER PRIMARY KEY, host TEXT, cpid INTEGER,
  cppid INTEGER, csid INTEGER, cpgid INTEGER, cname TEXT) STRICT;
CREATE TABLE alarms (time INTEGER, tracer INTEGER, title TEXT, count INTEGER,
  text TEXT) STRICT;
CREATE TABLE counted (time_from INTEGER, time_to INTEGER, tracer INTEGER,
  aggregate INTEGER, total INTEGER NOT NULL, key TEXT, other INTEGER NOT NULL,
  count INTEGER, errors INTEGER, bytes INTEGER, latency INTEGER,
  latency_max INTEGER) STRICT;
CREATE TABLE process_events (time INTEGER, tracer INTEGER, kind TEXT,
  cpid INTEGER, ctid INTEGER, cppid INTEGER, child INTEGER, exit_code INTEGER,
  signal TEXT, cname TEXT, program TEXT, exe TEXT, cwd TEXT, json TEXT) STRICT;
CREATE TABLE losses (trace TEXT, reason TEXT, count INTEGER) STRICT;
CREATE TABLE meta (trace TEXT, key TEXT, value TEXT) STRICT;
)sql";

// Operations that were about to run are in none of them: they are told again.
// `runs` has what each of the others read and wrote; `file_uses` the same by
// file, where a copy counts with its source, and what it wrote is of its
// destination (tally/transfer.h). A process has a row for each name that it
// had.
const char* const kSqliteViews = R"sql(
CREATE VIEW runs AS
  SELECT *, CASE WHEN op IN ('read', 'copy_file_range') AND result > 0
      THEN result ELSE 0 END AS bytes_read,
    CASE WHEN op IN ('write', 'copy_file_range') AND result > 0
      THEN result ELSE 0 END AS bytes_written
  FROM ops WHERE NOT before;
CREATE VIEW file_uses AS
  SELECT path AS file, op, process, latency, 1 AS operations, bytes_read,
    CASE WHEN op = 'copy_file_range' THEN 0 ELSE bytes_written END
      AS bytes_written
  FROM runs
  UNION ALL
  SELECT path2, op, process, NULL, 0, 0, bytes_written
  FROM runs WHERE op = 'copy_file_range' AND errno IS NULL;
CREATE VIEW operation_counts AS
  SELECT op, count(*) AS count, sum(errno IS NOT NULL) AS errors,
    sum(latency) AS latency, max(latency) AS latency_max,
    sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written,
    sum(max(bytes_read, bytes_written)) AS bytes
  FROM runs GROUP BY op ORDER BY count DESC;
CREATE VIEW file_bytes AS
  SELECT p.path AS path, sum(u.bytes_read) AS bytes_read,
    sum(u.bytes_written) AS bytes_written,
    sum(u.operations) AS count, sum(u.latency) AS latency
  FROM file_uses u JOIN paths p ON u.file = p.id
  GROUP BY p.path ORDER BY bytes_read + bytes_written DESC;
CREATE VIEW process_bytes AS
  SELECT c.host AS host, c.cpid AS cpid, c.cname AS cname,
    sum(o.bytes_read) AS bytes_read, sum(o.bytes_written) AS bytes_written,
    count(*) AS count, sum(o.latency) AS latency
  FROM runs o LEFT JOIN processes c ON o.process = c.id
  GROUP BY c.host, c.cpid, c.cname ORDER BY bytes_read + bytes_written DESC;
CREATE VIEW errors AS
  SELECT o.op AS op, o.errno AS errno, p.path AS path, count(*) AS count
  FROM ops o LEFT JOIN paths p ON o.path = p.id
  WHERE o.errno IS NOT NULL AND NOT o.before
  GROUP BY o.op, o.errno, p.path ORDER BY count DESC;
CREATE VIEW slowest AS
  SELECT * FROM operations WHERE NOT before ORDER BY latency DESC;
CREATE VIEW double_writes AS
  SELECT p.path AS path, count(DISTINCT coalesce(c.host, '') || ' ' ||
      coalesce(c.cpid, c.cname)) AS writers,
    sum(u.bytes_written) AS bytes_written
  FROM file_uses u JOIN paths p ON u.file = p.id
    LEFT JOIN processes c ON u.process = c.id
  WHERE u.bytes_written > 0
  GROUP BY p.path HAVING writers > 1 ORDER BY writers DESC;
)sql";

const char* const kSqliteIndices = R"sql(
CREATE INDEX ops_time ON ops (time);
CREATE INDEX ops_op ON ops (op);
CREATE INDEX ops_path ON ops (path);
CREATE INDEX ops_process ON ops (process);
CREATE INDEX paths_path ON paths (path);
)sql";

}  // namespace tracefs
