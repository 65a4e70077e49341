#include "tracefs/query/table_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"
#include "tracefs/text/units.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

std::string Percent(double share) {
  // What is there is not told as nothing, nor what is not all as all.
  if (share > 0 && share < 0.001) return "<0.1 %";
  if (share > 0.999 && share < 1) return ">99.9 %";
  std::array<char, 64> text;
  const int size =
      std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return {text.data(), static_cast<size_t>(size)};
}

std::string Nine(double number) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), "%.9g", number);
  return {text.data(), static_cast<size_t>(size)};
}

// "+6.031136": microseconds since the begin of the trace.
std::string TimeSince(uint64_t ns, uint64_t begin_ns) {
  const bool before = ns < begin_ns;
  const uint64_t distance = before ? begin_ns - ns : ns - begin_ns;
  std::string micros = std::to_string(distance % kSecond / 1000);
  micros.insert(0, 6 - micros.size(), '0');
  return (before ? "-" : "+") + std::to_string(distance / kSecond) + "." +
         micros;
}

std::string WholeNumber(Unit unit, uint64_t number) {
  return unit == Unit::kSigned || unit == Unit::kSignedDuration
             ? std::to_string(static_cast<int64_t>(number))
             : std::to_string(number);
}

// As machines read it; "" where it is absent.
std::string Exact(const TableColumn& column, const Value& value) {
  if (!value.present) return {};
  switch (column.unit) {
    case Unit::kText:
      return value.text;
    case Unit::kShare:
      return Nine(value.share);
    default:
      return WholeNumber(column.unit, value.number);
  }
}

// Narrows columns of texts, the widest first, until all of them fit; numbers
// stay whole, and so do texts of a few letters.
void MakeRoom(const Table& table, size_t columns, std::vector<size_t>* widths) {
  constexpr size_t kLeast = 12;
  size_t all = widths->empty() ? 0 : 2 * (widths->size() - 1);
  for (const size_t width : *widths) all += width;
  for (; all > columns; --all) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < widths->size(); ++i) {
      size_t& width = (*widths)[i];
      if (table.columns[i].unit == Unit::kText && width > kLeast &&
          (widest == nullptr || width > *widest)) {
        widest = &width;
      }
    }
    if (widest == nullptr) return;
    --*widest;
  }
}

void AppendObject(const Table& table, const Row& row, std::string* out) {
  JsonWriter json(out);
  for (size_t i = 0; i < row.size(); ++i) {
    const TableColumn& column = table.columns[i];
    if (!row[i].present) continue;
    // The line `other` says so in place of a number, too.
    const bool text = column.unit == Unit::kText || !row[i].text.empty();
    if (text) {
      json.PutExact(column.Key(), row[i].text);
    } else {
      json.PutJson(column.Key(), Exact(column, row[i]));
    }
  }
  json.End();
}

std::string MarkdownText(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>|#!&~$").find(c) !=
        std::string_view::npos) {
      safe += '\\';
    }
    safe += c;
  }
  return safe;
}

// A name whose ends could not be seen between columns is quoted.
std::string NameCell(std::string_view text) {
  const bool blank_ends = text.starts_with(' ') || text.ends_with(' ');
  return blank_ends ? TerminalWord(text) : TerminalText(text);
}

}  // namespace

std::string CellText(const TableColumn& column, const Value& value,
                     uint64_t begin_ns) {
  if (!value.present) return "-";
  if (!value.text.empty()) return NameCell(value.text);
  switch (column.unit) {
    case Unit::kText:
      return "\"\"";
    case Unit::kDuration:
      return DurationText(value.number);
    case Unit::kSignedDuration:
      return SignedDurationText(static_cast<int64_t>(value.number));
    case Unit::kTime:
      return TimeSince(value.number, begin_ns);
    case Unit::kShare:
      return Percent(value.share);
    case Unit::kBytes:
      return SizeText(value.number);
    case Unit::kCount:
      return CountText(value.number);
    case Unit::kNumber:
      // What cannot be added up may be an id.
      if (column.adds) return CountText(value.number);
      [[fallthrough]];
    default:
      return WholeNumber(column.unit, value.number);
  }
}

void WriteText(const Table& table, const TableStyle& style, OutputBuffer* out) {
  const bool raw = style.figures == Figures::kRaw;
  const auto head = [&](size_t i) {
    return raw ? table.columns[i].Key() : table.columns[i].name;
  };
  const auto cell_of = [&](const Row& row, size_t i) {
    const bool exact = raw && row[i].present && row[i].text.empty() &&
                       table.columns[i].unit != Unit::kText;
    if (exact) return Exact(table.columns[i], row[i]);
    std::string cell = CellText(table.columns[i], row[i], table.begin_ns);
    return table.columns[i].unit == Unit::kText
               ? cell
               : UnitForTerminal(std::move(cell), style.utf8);
  };
  // Cells are made twice, so that a long table takes no memory.
  std::vector<size_t> widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(WidthOf(head(i)));
  }
  table.ForEachRow([&](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], WidthOf(cell_of(row, i)));
    }
  });
  if (style.columns != 0) MakeRoom(table, style.columns, &widths);
  if (!table.title.empty()) out->Append(table.title + "\n");
  if (!table.summary.empty()) out->Append(table.summary + "\n");
  if (table.columns.empty()) return;  // the sentence is all there is
  std::string line;
  const auto add = [&](size_t i, std::string_view cell) {
    if (i != 0) line += "  ";
    line += table.columns[i].unit == Unit::kText
                ? PadEnd(CutMiddle(cell, widths[i]), widths[i])
                : PadFront(cell, widths[i]);
  };
  const auto end = [&] {
    line.erase(line.find_last_not_of(' ') + 1);
    line += '\n';
    out->Append(line);
    line.clear();
  };
  for (size_t i = 0; i < table.columns.size(); ++i) add(i, head(i));
  end();
  table.ForEachRow([&](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) add(i, cell_of(row, i));
    end();
  });
  // A heading alone looks as if something was missing.
  if (table.size() == 0 && !table.other) out->Append("(none)\n");
  for (const std::string& note : table.notes) out->Append(note + "\n");
}

void WriteCsv(const Table& table, CsvReader reader, OutputBuffer* out) {
  std::string line;
  for (const TableColumn& column : table.columns) {
    line += (&column == &table.columns[0] ? "" : ",") + column.Key();
  }
  out->Append(line + '\n');
  table.ForEachRow([&](const Row& row) {
    line.clear();
    for (size_t i = 0; i < row.size(); ++i) {
      if (i != 0) line += ',';
      line += row[i].text.empty() ? Exact(table.columns[i], row[i])
                                  : CsvText(row[i].text, reader);
    }
    line += '\n';
    out->Append(line);
  });
}

void WriteJsonLines(const Table& table, OutputBuffer* out) {
  std::string line;
  table.ForEachRow([&](const Row& row) {
    line.clear();
    AppendObject(table, row, &line);
    line += '\n';
    out->Append(line);
  });
}

std::string JsonOf(std::span<const Table> tables) {
  std::string text = "{\"tables\":[";
  for (const Table& table : tables) {
    text += &table == tables.data() ? "\n{\"title\":" : ",\n{\"title\":";
    AppendJsonString(table.title, &text);
    if (!table.summary.empty()) {
      text += ",\"summary\":";
      AppendJsonString(table.summary, &text);
    }
    text += ",\"rows\":[";
    bool first = true;
    table.ForEachRow([&](const Row& row) {
      text += std::exchange(first, false) ? "\n" : ",\n";
      AppendObject(table, row, &text);
    });
    text += "],\"notes\":[";
    for (size_t i = 0; i < table.notes.size(); ++i) {
      if (i != 0) text += ',';
      AppendJsonString(table.notes[i], &text);
    }
    text += "]}";
  }
  return text + "\n]}\n";
}

std::string MarkdownOf(const Table& table) {
  std::string text =
      table.title.empty() ? "" : "### " + MarkdownText(table.title) + "\n\n";
  if (!table.summary.empty()) text += MarkdownText(table.summary) + "\n\n";
  std::string rule = "|";
  text += "|";
  for (const TableColumn& column : table.columns) {
    text += " " + MarkdownText(column.name) + " |";
    rule += column.unit == Unit::kText ? " --- |" : " ---: |";
  }
  text += "\n" + rule + "\n";
  table.ForEachRow([&](const Row& row) {
    text += "|";
    for (size_t i = 0; i < row.size(); ++i) {
      text += " " +
              MarkdownText(CellText(table.columns[i], row[i], table.begin_ns)) +
              " |";
    }
    text += "\n";
  });
  for (const std::string& note : table.notes) {
    text += "\n" + MarkdownText(note) + "\n";
  }
  return text;
}

void WriteTable(const Table& table, std::string_view format,
                const TableStyle& style, OutputBuffer* out) {
  if (format == "csv") return WriteCsv(table, style.csv_reader, out);
  if (format == "jsonl") return WriteJsonLines(table, out);
  if (format == "md") return out->Append(MarkdownOf(table));
  WriteText(table, style, out);
}

}  // namespace tracefs::query
