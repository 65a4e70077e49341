// Tables as text for people, CSV, JSON, JSON Lines and Markdown.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tracefs/query/table.h"

namespace tracefs::query {

// Aligned columns; names escaped as in the listing of operations.
std::string TextOf(const Table& table);
// RFC 4180, a head with units, numbers as they are, texts escaped as
// tracefs-dump --format csv has them; `safe`: none looks like a formula.
std::string CsvOf(const Table& table, bool safe);
// One object a row. Text that is no UTF-8 stands under KEY_b64.
std::string JsonLinesOf(const Table& table);
std::string MarkdownOf(const Table& table);

// Several in one document: {"tables":[{"title":…,"rows":[…],"notes":[…]}]}.
std::string JsonOf(std::span<const Table> tables);

// One value as it stands in text: "4.33ms", "12.5 %".
std::string CellText(const TableColumn& column, const Value& value,
                     uint64_t begin_ns);

}  // namespace tracefs::query
