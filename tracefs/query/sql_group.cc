#include "tracefs/query/sql_group.h"

#include <algorithm>

#include "tracefs/base/text.h"
#include "tracefs/export/columns.h"
#include "tracefs/query/sql_text.h"

namespace tracefs::query {
namespace {

using From = GroupKey::From;

// The column, or where `uses`, what it is of the file that a row of `file_uses`
// is about.
std::string ColumnExpression(std::string_view name, bool uses) {
  const std::string quoted = SqlName(name);
  if (!uses) return quoted;
  for (const std::string_view of : {"path", "inode", "fh", "offset"}) {
    if (name == of) return "use_" + std::string(of);
  }
  const Column* const column = FindColumn(name);
  const bool attribute = column != nullptr &&
                         column->source == ColumnSource::kField &&
                         Info(column->field).source == FieldSource::kAttributes;
  return attribute ? "CASE WHEN part = 1 THEN " + quoted + " END" : quoted;
}

// `uses`: keys about files are those of the file that a row of `file_uses` is
// about, and not of the first one of its operation.
Result<std::string> KeyExpression(const GroupKey& key, bool uses) {
  const std::string use = uses ? "use_" : "";
  // Of dir2, ext2, name2.
  const bool second =
      key.field != nullptr && key.field->field == Field::kNewPath;
  switch (key.from) {
    case From::kField:
      return ColumnExpression(key.name, uses);
    case From::kDir:
      if (second) break;
      if (key.depth == 0) return use + "path_dir";
      return "nullif(regexp_extract(" + use + "path_dir, '^.[^/]*(/[^/]*){0," +
             std::to_string(key.depth - 1) + "}', 0), '')";
    case From::kExt:
      return second ? "path2_ext" : use + "path_ext";
    case From::kName:
      return second ? "path2_name" : use + "path_name";
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
      const std::string name = ColumnExpression(column->name, uses);
      return "CASE WHEN " + name + " > 0 THEN CAST(power(2, floor(log2(" +
             name + "))) AS BIGINT) WHEN " + name + " = 0 THEN 0 END";
    }
    case From::kLinear: {
      const size_t open = key.name.find('(') + 1;
      const Column* const column = FindColumn(Trim(
          std::string_view(key.name).substr(open, key.name.find(',') - open)));
      if (column == nullptr) break;
      const std::string name = ColumnExpression(column->name, uses);
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

std::string Percentile(const char* share, const std::string& column) {
  return std::string("percentile_disc(") + share + ") WITHIN GROUP (ORDER BY " +
         column + ")";
}

// Where rows are not about files, a copy moves its bytes once.
std::string ValueExpression(GroupValue value, bool uses) {
  const std::string bytes =
      uses ? "use_bytes" : "CASE WHEN part = 1 THEN use_bytes END";
  using enum GroupValue;
  switch (value) {
    case kCount:
      return "count(CASE WHEN part = 1 THEN 1 END)";
    case kErrors:
      return "count(CASE WHEN part = 1 THEN errno END)";
    case kBytes:
      return "coalesce(sum(" + bytes + "), 0)";
    case kRead:
      return "coalesce(sum(use_read), 0)";
    case kWritten:
      return "coalesce(sum(use_written), 0)";
    case kTime:
      return "sum(use_latency)";
    case kMean:
      return "avg(use_latency)";
    case kMin:
      return "min(use_latency)";
    case kP50:
      return Percentile("0.5", "use_latency");
    case kP90:
      return Percentile("0.9", "use_latency");
    case kP99:
      return Percentile("0.99", "use_latency");
    case kP999:
      return Percentile("0.999", "use_latency");
    case kMax:
      return "max(use_latency)";
    case kSizeMean:
      return "avg(" + bytes + ")";
    case kSizeP50:
      return Percentile("0.5", bytes);
    case kSizeP99:
      return Percentile("0.99", bytes);
    case kSizeMax:
      return "max(" + bytes + ")";
    case kFirst:
      return "min(\"time\")";
    case kLast:
      return "max(\"time\")";
    // Numbers of inodes and of processes are a host's own.
    case kFiles:
      return "count(DISTINCT host || ' ' || CAST(use_inode AS VARCHAR))";
    case kProcesses:
      return "count(DISTINCT host || ' ' || CAST(cpid AS VARCHAR))";
    case kShare:
      return "sum(2 - part) * 1.0 / sum(sum(2 - part)) OVER ()";
    case kTimeShare:
      return "sum(use_latency) * 1.0 / nullif(sum(sum(use_latency)) OVER (), "
             "0)";
    case kBefore:  // refused
      break;
  }
  return "NULL";
}

}  // namespace

Result<std::string> SqlOfGroup(const GroupSpec& spec,
                               std::string_view condition) {
  std::vector<GroupKey> keys = spec.keys;
  if (spec.every_ns != 0) keys.insert(keys.begin(), PeriodKey(spec.every_ns));
  const bool uses = TellFilesApart(keys);
  std::string sql = "SELECT ";
  std::string numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto key = KeyExpression(keys[i], uses);
    if (!key.ok()) return key.status();
    const TableColumn column = {keys[i].name, keys[i].unit()};
    sql += *key + " AS " + SqlName(column.Key()) + ",\n       ";
    numbers += (i == 0 ? "" : ", ") + std::to_string(i + 1);
  }
  if (keys.empty()) sql += "'all' AS \"all\",\n       ";
  if (std::ranges::count(spec.values, GroupValue::kBefore) != 0) {
    return Status::Invalid(
        "values: the views have only operations that ran: \"before\" is not "
        "told by Parquet files, ask the traces");
  }
  for (size_t i = 0; i < spec.values.size(); ++i) {
    sql += (i == 0 ? "" : ",\n       ") +
           ValueExpression(spec.values[i], uses) + " AS " +
           SqlName(ColumnOf(spec.values[i]).Key());
  }
  // A copy that failed did nothing with its second file.
  sql += "\nFROM file_uses\nWHERE (part = 1 OR errno IS NULL)";
  if (!condition.empty()) sql += " AND (" + std::string(condition) + ")";
  if (!keys.empty()) sql += "\nGROUP BY " + numbers;
  return sql;
}

}  // namespace tracefs::query
