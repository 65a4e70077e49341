// Tables as text for people, CSV, JSON, JSON Lines and Markdown.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tracefs/query/table.h"
#include "tracefs/text/csv_text.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::query {

// Aligned columns; names escaped as in the listing of operations.
void WriteText(const Table& table, OutputBuffer* out);
// RFC 4180, a head with units, numbers as they are, texts escaped as
// tracefs-dump --format csv has them.
void WriteCsv(const Table& table, CsvReader reader, OutputBuffer* out);
// One object a row. Text that is no UTF-8 stands under KEY_b64.
void WriteJsonLines(const Table& table, OutputBuffer* out);

std::string MarkdownOf(const Table& table);
// The one of these that `format` names: csv, jsonl, md, else text.
void WriteTable(const Table& table, std::string_view format, CsvReader reader,
                OutputBuffer* out);

// Several in one document: {"tables":[{"title":…,"rows":[…],"notes":[…]}]}.
std::string JsonOf(std::span<const Table> tables);

// One value as it stands in text: "4.33ms", "12.5 %".
std::string CellText(const TableColumn& column, const Value& value,
                     uint64_t begin_ns);

}  // namespace tracefs::query
