#include "tracefs/tools/report/sql.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/printable.h"
#include "tracefs/export/columns.h"
#include "tracefs/query/sql_filter.h"
#include "tracefs/query/sql_group.h"
#include "tracefs/query/sql_ready.h"
#include "tracefs/query/sql_text.h"
#include "tracefs/query/sql_views.h"
#include "tracefs/tools/report/question.h"
#include "tracefs/tools/report/rows.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

void Replace(std::string_view what, std::string_view with, std::string* text) {
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos;
       at += with.size()) {
    text->replace(at, what.size(), with);
  }
}

// In one go: what comes from outside is not looked at again.
std::string Filled(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::string>> words) {
  std::string out;
  while (!text.empty()) {
    size_t taken = 1;
    std::string_view put = text.substr(0, 1);
    for (const auto& [word, value] : words) {
      if (!text.starts_with(word)) continue;
      taken = word.size();
      put = value;
    }
    out += put;
    text.remove_prefix(taken);
  }
  return out;
}

bool IsDay(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (digit != (kForm[i] == '0') || (!digit && text[i] != '-')) return false;
  }
  return true;
}

class SqlPrinter {
 public:
  explicit SqlPrinter(const ReportOptions& options) : options_(options) {}

  Result<std::string> Make() {
    const Result<std::string> text = QueryText(options_);
    if (!text.ok()) return text.status();
    auto parts = ParseQuestion(*text, options_.query.empty()
                                          ? std::string_view("question")
                                          : options_.query);
    if (!parts.ok()) return parts.status();
    if (!options_.input.traces.empty()) {
      sql_ += query::SqlOperations(options_.input.traces[0]);
      sql_ += query::kSqlRuns;
      sql_ += query::kSqlFileUses;
    }
    for (QuestionPart& part : *parts) {
      if (Status s = Add(&part); !s.ok()) return s;
    }
    return std::move(sql_);
  }
  // Parts that the SQL lacks; after Make().
  const std::vector<Status>& left_out() const { return left_out_; }

 private:
  Status Add(QuestionPart* part) {
    if (!options_.sort.empty()) part->sort = options_.sort;
    if (options_.top) part->top = *options_.top;
    auto condition = Condition(*part);
    if (!condition.ok()) return condition.status();
    if (options_.row->compares || part->analysis->name != "group") {
      return AddReady(*part, *condition);
    }
    const auto group = *part->Group();  // it was looked at
    auto select = query::SqlOfGroup(group, *condition);
    if (!select.ok()) return Untold(*part, select.status());
    std::string sort;
    for (const query::GroupValue value : group.values) {
      const query::TableColumn column = query::ColumnOf(value);
      if (Matches(part->sort, column.name)) sort = column.Key();
    }
    for (const query::GroupKey& key : group.keys) {
      if (Matches(part->sort, key.name)) {
        sort = query::TableColumn{key.name, key.unit()}.Key();
      }
    }
    if (sort.empty() && !part->sort.empty()) {
      return Status::Invalid("--sort: there is no column " +
                             Printable(part->sort));
    }
    Print(part->title, *select, Sign(part->sort) + sort,
          part->top.value_or(kDefaultTop));
    return {};
  }

  // A word after the question, as a text of SQL.
  std::string Word(size_t i) const {
    return i < options_.words.size()
               ? query::SqlText(EscapedText(options_.words[i]))
               : "NULL";
  }

  static std::string_view WithoutSign(std::string_view sort) {
    return sort.substr(sort.starts_with('-') ? 1 : 0);
  }
  static std::string Sign(std::string_view sort) {
    return sort.starts_with('-') ? "-" : "";
  }
  static bool Matches(std::string_view sort, std::string_view column) {
    return WithoutSign(sort) == column;
  }

  // Of the part and of --filter.
  Result<std::string> Condition(const QuestionPart& part) const {
    std::string all;
    for (const auto& [filter, origin] :
         {std::pair{std::string_view(options_.input.filter),
                    std::string("--filter")},
          std::pair{std::string_view(part.filter),
                    "filter of [" + part.title + "]"}}) {
      if (filter.empty()) continue;
      auto made = query::SqlCondition(filter, origin);
      if (!made.ok()) return made.status();
      if (made->empty()) continue;
      all = all.empty() ? *made : "(" + all + ") AND (" + *made + ")";
    }
    return all;
  }

  Status AddReady(const QuestionPart& part, const std::string& condition) {
    const std::string_view name =
        options_.row->compares ? std::string_view("diff") : part.analysis->name;
    const query::SqlRow* const row = query::FindSql(name);
    if (row != nullptr && row->may_lack) {
      left_out_.push_back(
          Untold(part, Status::Invalid(std::string(row->why_not))));
      return {};
    }
    if (row == nullptr || row->tables.empty()) {
      return Untold(
          part, Status::Invalid(row == nullptr ? std::string("it has no SQL")
                                               : std::string(row->why_not)));
    }
    if (options_.row->compares) {
      for (const std::string& day : options_.words) {
        if (IsDay(day)) continue;
        return Status::Invalid("with --sql, A and B are days, as 2026-01-02");
      }
    }
    const auto of = [&condition](const std::string& view) {
      return condition.empty() ? view
                               : "(SELECT * FROM " + view + " WHERE " +
                                     condition + ") AS " + view;
    };
    for (const query::SqlTable& table : row->tables) {
      std::string select(table.select);
      for (const query::SqlPiece& piece : query::SqlPieces()) {
        Replace(piece.word, piece.text, &select);
      }
      select = Filled(select, {{"{runs}", of("runs")},
                               {"{uses}", of("file_uses")},
                               {"{path}", Word(0)},
                               {"{a}", Word(0)},
                               {"{b}", Word(1)}});
      const bool main = table.title.empty();
      std::string sort(table.sort);
      if (main && !part.sort.empty()) {
        // One is known to be a column.
        std::string_view known = WithoutSign(table.sort);
        if (known.ends_with("_ns")) known.remove_suffix(3);
        if (WithoutSign(part.sort) != known) {
          return Untold(part,
                        Status::Invalid("sort by " + Printable(part.sort) +
                                        ": its tables have an order of "
                                        "their own"));
        }
        sort = Sign(part.sort) + std::string(WithoutSign(table.sort));
      }
      Print(main ? part.title : table.title, select, sort,
            main ? part.top.value_or(kDefaultTop) : 0);
    }
    return {};
  }

  static Status Untold(const QuestionPart& part, const Status& why) {
    return Status::Invalid("[" + Printable(part.title) +
                           "] cannot be asked in SQL: " + why.message());
  }

  void Print(std::string_view title, const std::string& select,
             const std::string& sort, size_t top) {
    if (!sql_.empty()) sql_ += '\n';
    (sql_ += "-- ") += Printable(title);
    sql_ += '\n';
    // The layout has no start times of processes, nor lives of files.
    if (select.find("cpid") != std::string::npos) {
      sql_ += "-- Processes that had the same pid are one here.\n";
    }
    if (select.find("inode AS VARCHAR") != std::string::npos) {
      sql_ += "-- Files that had the same inode number are one here.\n";
    }
    sql_ += select;
    if (!sort.empty()) {
      const bool up = sort[0] == '-';
      sql_ += "\nORDER BY " + query::SqlName(sort.substr(up ? 1 : 0)) +
              (up ? "" : " DESC");
    }
    if (top != 0) sql_ += "\nLIMIT " + std::to_string(top);
    sql_ += ";\n";
  }

  const ReportOptions& options_;
  std::string sql_;
  std::vector<Status> left_out_;
};

}  // namespace

int PrintSql(const ReportOptions& options, OutputBuffer& out,
             OutputBuffer& err) {
  SqlPrinter printer(options);
  const Result<std::string> sql = printer.Make();
  if (!sql.ok()) {
    err.Append("tracefs-report: " + sql.status().message() + "\n");
    return ExitStatus(sql.status());
  }
  for (const Status& part : printer.left_out()) {
    err.Append("tracefs-report: " + part.message() + "\n");
  }
  out.Append(*sql);
  return 0;
}

}  // namespace tracefs
