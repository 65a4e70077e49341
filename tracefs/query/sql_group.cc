#include "tracefs/query/sql_group.h"

#include "tracefs/base/text.h"
#include "tracefs/export/columns.h"
#include "tracefs/query/sql_text.h"

namespace tracefs::query {
namespace {

using From = GroupKey::From;

Result<std::string> KeyExpression(const GroupKey& key) {
  // Of dir2, ext2, name2.
  const bool second =
      key.field != nullptr && key.field->field == Field::kNewPath;
  switch (key.from) {
    case From::kField:
      return SqlName(key.name);
    case From::kDir:
      if (second) break;
      if (key.depth == 0) return std::string("path_dir");
      return "nullif(regexp_extract(path_dir, '^.[^/]*(/[^/]*){0," +
             std::to_string(key.depth - 1) + "}', 0), '')";
    case From::kExt:
      return std::string(second ? "path2_ext" : "path_ext");
    case From::kName:
      return std::string(second ? "path2_name" : "path_name");
    case From::kHost:
      return std::string("host");
    case From::kTime: {
      const std::string period = std::to_string(key.period_ns);
      return "\"time\" - \"time\" % " + period;
    }
    case From::kLog2: {
      const size_t open = key.name.find('(');
      const Column* const column =
          FindColumn(key.name.substr(open + 1, key.name.size() - open - 2));
      if (column == nullptr) break;
      const std::string name = SqlName(column->name);
      return "CASE WHEN " + name + " > 0 THEN CAST(power(2, floor(log2(" +
             name + "))) AS BIGINT) WHEN " + name + " = 0 THEN 0 END";
    }
    case From::kLinear: {
      const size_t open = key.name.find('(') + 1;
      const Column* const column = FindColumn(Trim(
          std::string_view(key.name).substr(open, key.name.find(',') - open)));
      if (column == nullptr) break;
      const std::string name = SqlName(column->name);
      return name + " - " + name + " % " + std::to_string(key.width);
    }
    case From::kProcess:
      return std::string(
          "coalesce(cname, '?') || ' ' || CAST(cpid AS VARCHAR)");
    case From::kAlign:
    case From::kContainer:
    case From::kFlagNames:
    case From::kTree:
      break;
  }
  return Status::Invalid("by: \"" + key.name +
                         "\" is in no column of Parquet files: ask the traces");
}

std::string Percentile(const char* share, const char* column) {
  return std::string("percentile_disc(") + share + ") WITHIN GROUP (ORDER BY " +
         column + ")";
}

std::string ValueExpression(GroupValue value) {
  using enum GroupValue;
  switch (value) {
    case kCount:
      return "count(*)";
    case kErrors:
      return "count(errno)";
    case kBytes:
      return "coalesce(sum(moved), 0)";
    case kRead:
      return "coalesce(sum(CASE WHEN op = 'read' THEN moved END), 0)";
    case kWritten:
      return "coalesce(sum(CASE WHEN op <> 'read' THEN moved END), 0)";
    case kTime:
      return "sum(latency)";
    case kMean:
      return "avg(latency)";
    case kMin:
      return "min(latency)";
    case kP50:
      return Percentile("0.5", "latency");
    case kP90:
      return Percentile("0.9", "latency");
    case kP99:
      return Percentile("0.99", "latency");
    case kP999:
      return Percentile("0.999", "latency");
    case kMax:
      return "max(latency)";
    case kSizeMean:
      return "avg(moved)";
    case kSizeP50:
      return Percentile("0.5", "moved");
    case kSizeP99:
      return Percentile("0.99", "moved");
    case kSizeMax:
      return "max(moved)";
    case kFirst:
      return "min(\"time\")";
    case kLast:
      return "max(\"time\")";
    // Numbers of inodes and of processes are a host's own.
    case kFiles:
      return "count(DISTINCT host || ' ' || CAST(inode AS VARCHAR))";
    case kProcesses:
      return "count(DISTINCT host || ' ' || CAST(cpid AS VARCHAR))";
    case kShare:
      return "count(*) * 1.0 / sum(count(*)) OVER ()";
    case kTimeShare:
      return "sum(latency) * 1.0 / nullif(sum(sum(latency)) OVER (), 0)";
  }
  return "NULL";
}

}  // namespace

Result<std::string> SqlOfGroup(const GroupSpec& spec,
                               std::string_view condition) {
  std::vector<GroupKey> keys = spec.keys;
  if (spec.every_ns != 0) keys.insert(keys.begin(), PeriodKey(spec.every_ns));
  std::string sql = "SELECT ";
  std::string numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto key = KeyExpression(keys[i]);
    if (!key.ok()) return key.status();
    const TableColumn column = {keys[i].name, keys[i].unit()};
    sql += *key + " AS " + SqlName(column.Key()) + ",\n       ";
    numbers += (i == 0 ? "" : ", ") + std::to_string(i + 1);
  }
  if (keys.empty()) sql += "'all' AS \"all\",\n       ";
  for (size_t i = 0; i < spec.values.size(); ++i) {
    sql += (i == 0 ? "" : ",\n       ") + ValueExpression(spec.values[i]) +
           " AS " + SqlName(ColumnOf(spec.values[i]).Key());
  }
  sql += "\nFROM runs";
  if (!condition.empty()) sql += "\nWHERE " + std::string(condition);
  if (!keys.empty()) sql += "\nGROUP BY " + numbers;
  return sql;
}

}  // namespace tracefs::query
