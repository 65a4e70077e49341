#include "tracefs/tools/report/diff_page.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/query/table_text.h"
#include "tracefs/report/comparison.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/report/page_row.h"
#include "tracefs/tools/report/run_diff.h"

namespace tracefs {
namespace {

// Rows of a table, but of --by or --top.
constexpr size_t kRows = 300;

struct ComparedRun {
  const char* name;
  const char* by;
};
constexpr ComparedRun kCompared[] = {
    {"operation", "op"}, {"command", "cname"}, {"path", "path"}};

const char* UnitName(query::Unit unit) {
  switch (unit) {
    case query::Unit::kNumber:
    case query::Unit::kCount:
      return "number";
    case query::Unit::kSigned:
      return "signed";
    case query::Unit::kBytes:
      return "bytes";
    case query::Unit::kDuration:
      return "duration";
    case query::Unit::kSignedDuration:
      return "signed-duration";
    case query::Unit::kShare:
      return "share";
    default:
      return "text";
  }
}

report::Json ValueAsJson(const query::TableColumn& column,
                         const query::Value& value) {
  if (!value.present) return nullptr;
  if (!value.text.empty() || column.unit == query::Unit::kText) {
    return report::TextOf(value.text);
  }
  switch (column.unit) {
    case query::Unit::kSigned:
    case query::Unit::kSignedDuration:
      return static_cast<int64_t>(value.number);
    case query::Unit::kShare:
      return value.share;
    default:
      return value.number;
  }
}

report::ComparedTable Converted(const query::Table& table, std::string name) {
  report::ComparedTable result;
  result.name = std::move(name);
  result.summary = table.summary;
  result.notes = table.notes;
  result.rows = report::Json::array();
  for (const query::TableColumn& column : table.columns) {
    result.columns.push_back(
        {{"name", column.name}, {"unit", UnitName(column.unit)}});
  }
  const auto json = [&table](const query::Row& row) {
    report::Json cells = report::Json::array();
    for (size_t i = 0; i < row.size(); ++i) {
      cells.push_back(ValueAsJson(table.columns[i], row[i]));
    }
    return cells;
  };
  for (const query::Row& row : table.rows) {
    result.rows.push_back(json(row));
    std::vector<std::string> texts;
    for (size_t i = 0; i < row.size(); ++i) {
      texts.push_back(
          query::CellText(table.columns[i], row[i], table.begin_ns));
    }
    result.texts.push_back(std::move(texts));
  }
  if (table.other) result.other = json(*table.other);
  return result;
}

Status CheckSides(const ReportOptions& options) {
  for (const std::string& side : options.words) {
    if (TracesOf(side).size() > 1) {
      return Status::Invalid(
          "--format html: diff draws one trace a side; of several, the other "
          "formats have the means");
    }
    if (side == "-") {
      return Status::Invalid(
          "--format html: diff reads its traces several times, which standard "
          "input (-) cannot be: name a file");
    }
  }
  return {};
}

}  // namespace

int RunDiffPage(const ReportOptions& options, OutputBuffer& out,
                OutputBuffer& err) {
  if (Status s = CheckSides(options); !s.ok()) return Complain(s, err);
  int status = 0;
  std::array<report::Json, 2> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    ReportOptions one = options;
    one.input.traces = {options.words[i]};
    int of_side = 0;
    sides[i] = ReadDocument(one, err, &of_side);
    if (of_side > 1) return of_side;
    status = std::max(status, of_side);
  }
  std::vector<ComparedRun> wanted(std::begin(kCompared), std::end(kCompared));
  if (!options.by.empty()) wanted = {{"key", options.by.c_str()}};
  std::vector<report::ComparedTable> tables;
  StringOutput once;  // problems of traces are told already
  for (const ComparedRun& compared : wanted) {
    const Result<query::Table> table =
        DiffTable(options, compared.by, kRows, once, &status);
    if (!table.ok()) return Complain(table.status(), err);
    tables.push_back(Converted(*table, compared.name));
  }
  out.Append(report::MakeComparisonPage(sides, tables));
  return status;
}

}  // namespace tracefs
