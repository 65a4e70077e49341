// Tables as text for people, CSV, JSON, JSON Lines and Markdown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/query/table.h"
#include "tracefs/text/csv_text.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::query {

// How figures stand in text: three digits and a unit, or as machines have them,
// under heads that name the unit ("p50_ns").
enum class Figures : uint8_t { kForPeople, kRaw };

struct TableStyle {
  Figures figures = Figures::kForPeople;  // of text
  bool utf8 = true;                       // of text: else µs are us
  size_t columns = 0;  // of a terminal that text goes to; 0: there is room
  CsvReader csv_reader = CsvReader::kSpreadsheet;  // of CSV
};

// Aligned columns; names escaped as in the listing of operations. Texts without
// room for them lose their middle.
void WriteText(const Table& table, const TableStyle& style, OutputBuffer* out);
// RFC 4180, a head with units, numbers as they are, texts escaped as
// tracefs-dump --format csv has them.
void WriteCsv(const Table& table, CsvReader reader, OutputBuffer* out);
// One object a row. Text that is no UTF-8 stands under KEY_b64.
void WriteJsonLines(const Table& table, OutputBuffer* out);

std::string MarkdownOf(const Table& table);
// The one of these that `format` names: csv, jsonl, md, else text.
void WriteTable(const Table& table, std::string_view format,
                const TableStyle& style, OutputBuffer* out);

// Several in one document: {"tables":[{"title":…,"rows":[…],"notes":[…]}]}.
std::string JsonOf(std::span<const Table> tables);

// One value as it stands in text for people: "4.33 ms", "12.5 %", "1,234".
std::string CellText(const TableColumn& column, const Value& value,
                     uint64_t begin_ns);

}  // namespace tracefs::query
