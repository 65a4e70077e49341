#include "tracefs/query/table.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"

namespace tracefs::query {
namespace {

int Compare(const Value& a, const Value& b, Unit unit) {
  if (a.present != b.present) return a.present ? 1 : -1;
  if (unit == Unit::kText) return a.text.compare(b.text);
  if (unit == Unit::kShare) {
    return a.share < b.share ? -1 : a.share > b.share ? 1 : 0;
  }
  return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
}

Status NoColumn(const Table& table, std::string_view name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const TableColumn& column : table.columns) {
    names.push_back(column.name);
    list += (list.empty() ? "" : " ") + column.name;
  }
  return Status::Invalid("there is no column \"" + Printable(name) + "\"" +
                         DidYouMean(name, names) + " (there are: " + list +
                         ")");
}

void Sort(size_t by, bool ascending, Table* table) {
  const Unit unit = table->columns[by].unit;
  // Texts are read from A to Z, numbers from the largest one.
  const int way = (unit == Unit::kText) != ascending ? 1 : -1;
  const auto before = [&](const Row& a, const Row& b) {
    if (const int c = Compare(a[by], b[by], unit); c != 0) return c * way < 0;
    for (size_t i = 0; i < table->columns.size(); ++i) {
      const int c = Compare(a[i], b[i], table->columns[i].unit);
      if (c != 0) return c < 0;
    }
    return false;
  };
  std::stable_sort(table->rows.begin(), table->rows.end(), before);
}

// Puts the rows behind the first `top` into one.
void Cut(size_t top, Table* table) {
  if (table->rows.size() <= top) return;
  const bool had_other = table->other.has_value();
  Row other = had_other ? *std::move(table->other) : Row(table->columns.size());
  for (size_t r = top; r < table->rows.size(); ++r) {
    const Row& row = table->rows[r];
    for (size_t i = 0; i < row.size(); ++i) {
      if (!table->columns[i].adds || !row[i].present) continue;
      other[i].present = true;
      other[i].number += row[i].number;
      other[i].share += row[i].share;
    }
  }
  const size_t cut = table->rows.size() - top;
  // Of what was there before, nobody knows how many it stands for.
  other[0] = Value::Text("other(" + std::to_string(cut) +
                         (had_other ? " and more)" : ")"));
  table->rows.resize(top);
  table->other = std::move(other);
}

void Choose(const std::vector<size_t>& chosen, Table* table) {
  const auto pick = [&chosen](auto& from) {
    std::remove_reference_t<decltype(from)> picked;
    for (const size_t i : chosen) picked.push_back(from[i]);
    from = std::move(picked);
  };
  pick(table->columns);
  for (Row& row : table->rows) pick(row);
  if (!table->other) return;
  const Value name = table->other->front();
  pick(*table->other);
  if (!table->columns.empty() && !table->other->front().present) {
    table->other->front() = name;
  }
}

}  // namespace

std::string TableColumn::Key() const {
  return unit == Unit::kDuration || unit == Unit::kTime ? name + "_ns" : name;
}

Value Value::Text(std::string_view text) {
  return {.present = true, .text = std::string(text)};
}

Value Value::Number(uint64_t number) {
  return {.present = true, .number = number, .text = {}};
}

Value Value::Share(uint64_t part, uint64_t whole) {
  if (whole == 0) return {};
  return {.present = true,
          .share = static_cast<double>(part) / static_cast<double>(whole),
          .text = {}};
}

std::optional<size_t> Table::Find(std::string_view column) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column || columns[i].Key() == column) return i;
  }
  return std::nullopt;
}

Status Arrange(const Arrangement& how, Table* table) {
  if (!how.sort.empty()) {
    const bool ascending = how.sort.starts_with('-');
    const std::string_view name =
        std::string_view(how.sort).substr(ascending ? 1 : 0);
    const auto by = table->Find(name);
    if (!by) return NoColumn(*table, name);
    Sort(*by, ascending, table);
  }
  if (how.top != 0) Cut(how.top, table);
  if (how.columns.empty()) return {};
  std::vector<size_t> chosen;
  for (const std::string& name : how.columns) {
    const auto found = table->Find(name);
    if (!found) return NoColumn(*table, name);
    chosen.push_back(*found);
  }
  Choose(chosen, table);
  return {};
}

}  // namespace tracefs::query
