#include <algorithm>
#include <string>

#include "tracefs/report/page.h"
#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

constexpr size_t kRows = 10;

// What Markdown, or the HTML within it, would obey.
std::string MarkdownText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#~!>$").find(c) != std::string_view::npos) {
        escaped += '\\';
      }
      escaped += c;
    }
  }
  return escaped;
}

std::string Heads(std::initializer_list<const char*> heads) {
  std::string first = "|";
  std::string second = "|";
  for (const char* head : heads) {
    first += " " + std::string(head) + " |";
    second += second.size() == 1 ? "---|" : "---:|";
  }
  return first + "\n" + second + "\n";
}

std::string Table(const Json& table, const char* what) {
  std::string text =
      Heads({what, "ops", "errors", "read", "written", "time", "longest"});
  const auto row = [&](const std::string& name, const Json& numbers,
                       size_t first) {
    const auto number = [&](size_t i) {
      return numbers[first + i].get<uint64_t>();
    };
    text += "| " + name + " | " + CountText(number(0)) + " | " +
            CountText(number(1)) + " | " + SizeText(number(2)) + " | " +
            SizeText(number(3)) + " | " + SpanText(number(4)) + " | " +
            SpanText(number(5)) + " |\n";
  };
  const Json& rows = table["rows"];
  Json other = table["other"];
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < kRows) {
      row(MarkdownText(rows[i][0].get<std::string>()), rows[i], 1);
      continue;
    }
    for (size_t n = 0; n < other.size(); ++n) {
      const auto here = rows[i][n + 1].get<uint64_t>();
      const auto sum = other[n].get<uint64_t>();
      other[n] = n == 5 ? std::max(sum, here) : tally::AddTo(sum, here);
    }
  }
  if (other[0] != 0) row("*others*", other, 0);
  return text + "\n";
}

std::string CountedRowsOf(const Json& table) {
  std::string text = "\n## " +
                     MarkdownText(table["trace"].get<std::string>() + ": " +
                                  table["title"].get<std::string>()) +
                     "\n\n|";
  std::string line = "|";
  const size_t keys = std::max<size_t>(1, table["by"].size());
  for (size_t i = 0; i < keys; ++i) {
    text += " " +
            (table["by"].empty()
                 ? "key"
                 : MarkdownText(table["by"][i].get<std::string>())) +
            " |";
    line += "---|";
  }
  for (const Json& value : table["values"]) {
    text += " " + std::string(ValueHead(value.get<std::string>())) + " |";
    line += "---:|";
  }
  text += "\n" + line + "\n";
  const auto row = [&](const Json& cells, size_t first, const char* name) {
    text += "|";
    for (size_t i = 0; i < keys; ++i) {
      text += " " +
              (i < first ? MarkdownText(cells[i].get<std::string>())
               : i == 0  ? std::string(name)
                         : "") +
              " |";
    }
    for (size_t i = first; i < cells.size(); ++i) {
      text += " " +
              ValueText(table["values"][i - first].get<std::string>(),
                        cells[i].get<uint64_t>()) +
              " |";
    }
    text += "\n";
  };
  const Json& rows = table["rows"];
  for (size_t i = 0; i < std::min(kRows, rows.size()); ++i) {
    row(rows[i], table["by"].size(), "all");
  }
  if (!table["other"].is_null()) row(table["other"], 0, "*other keys*");
  if (rows.size() > kRows) {
    text += "\n" +
            CountText(rows.size() - kRows, "more row is", "more rows are") +
            " left out.\n";
  }
  return text;
}

}  // namespace

std::string MakeMarkdown(const Json& document) {
  std::string text =
      "# " + MarkdownText(document["title"].get<std::string>()) + "\n\n";
  const Json& verdict = document["verdict"];
  text += MarkdownText(verdict["sentences"].get<std::string>()) + "\n\n";
  for (const Json& finding : verdict["findings"]) {
    text += "- " + SpanText(NumberAt(finding, "time_ns")) + ": " +
            CountText(NumberAt(finding, "count")) + " " +
            MarkdownText(finding["what"].get<std::string>()) + " (" +
            MarkdownText(finding["command"].get<std::string>()) + ")\n";
  }
  if (!verdict["findings"].empty()) text += '\n';
  for (const Json& sentence : document["summary"]) {
    text += sentence["level"] == "bad" ? "- **" : "- ";
    text += MarkdownText(sentence["text"].get<std::string>());
    text += sentence["level"] == "bad" ? "**\n" : "\n";
  }
  for (const Json& table : document["counted"]) text += CountedRowsOf(table);
  // Nothing but what was counted: no tables of operations.
  if (document["operations"].empty() && !document["counted"].empty()) {
    return text;
  }
  text += "\n## Operations\n\n" + Heads({"operation", "ops", "errors", "time",
                                         "p50", "p99", "longest"});
  for (const Json& op : document["operations"]) {
    text += "| " + MarkdownText(op["op"].get<std::string>()) + " | " +
            CountText(NumberAt(op, "count")) + " | " +
            CountText(NumberAt(op, "errors")) + " | " +
            SpanText(NumberAt(op, "time_ns")) + " | " +
            SpanText(NumberAt(op, "p50_ns")) + " | " +
            SpanText(NumberAt(op, "p99_ns")) + " | " +
            SpanText(NumberAt(op, "longest_ns")) + " |\n";
  }
  for (const auto& [title, name] :
       {std::pair{"Files", "files"}, std::pair{"Directories", "directories"},
        std::pair{"Commands", "commands"}, std::pair{"Users", "users"}}) {
    text += "\n## " + std::string(title) + "\n\n" +
            Table(document["tables"][name], name);
  }
  text += "## Errors\n\n" + Heads({"error", "operation", "command", "ops"});
  size_t shown = 0;
  for (const Json& row : document["errors"]["rows"]) {
    if (shown++ == kRows) break;
    text += "| " + row[0].get<std::string>() + " | " +
            MarkdownText(row[1].get<std::string>()) + " | " +
            MarkdownText(row[2].get<std::string>()) + " | " +
            CountText(row[3].get<uint64_t>()) + " |\n";
  }
  return text;
}

}  // namespace tracefs::report
