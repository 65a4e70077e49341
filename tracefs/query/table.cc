#include "tracefs/query/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/query/table_sort.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

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

// Rows of another source, in an order, with some of the columns; no order and
// no columns: as they are.
class ArrangedRows final : public RowSource {
 public:
  ArrangedRows(std::shared_ptr<const RowSource> from,
               std::vector<uint32_t> order, std::vector<size_t> columns)
      : from_(std::move(from)),
        order_(std::move(order)),
        columns_(std::move(columns)) {}
  size_t size() const override { return from_->size(); }
  void Make(size_t i, Row* row) const override {
    if (i + kFar < order_.size()) {
      from_->Fetch(order_[i + kFar], /*soon=*/false);
      from_->Fetch(order_[i + kNear], /*soon=*/true);
    }
    const size_t at = order_.empty() ? i : order_[i];
    if (columns_.empty()) return from_->Make(at, row);
    from_->Make(at, &made_);
    row->resize(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      (*row)[c] = made_[columns_[c]];
    }
  }

 private:
  // In an order, rows are far from each other and from the processor.
  static constexpr size_t kFar = 16;
  static constexpr size_t kNear = 8;

  const std::shared_ptr<const RowSource> from_;
  const std::vector<uint32_t> order_;
  const std::vector<size_t> columns_;
  mutable Row made_;
};

// Leaves these rows, of `rows` or of the source, in `rows`.
void MakeRows(const std::vector<uint32_t>& order, Table* table) {
  std::vector<Row> rows(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (table->source != nullptr) {
      table->source->Make(order[i], &rows[i]);
    } else {
      rows[i] = std::move(table->rows[order[i]]);
    }
  }
  table->rows = std::move(rows);
  table->source = nullptr;
}

// What the rows behind the first `top` add up to, with what was `other` before.
Row SumOf(const std::vector<uint32_t>& order, size_t top, const Table& table) {
  Row sum = table.other ? *table.other : Row(table.columns.size());
  Row made;
  // Of two parts together these cannot be told by what they are of each.
  for (size_t i = 1; i < sum.size(); ++i) {
    if (!table.columns[i].adds) sum[i] = {};
  }
  for (size_t r = top; r < order.size(); ++r) {
    if (table.source != nullptr) table.source->Make(order[r], &made);
    const Row& row = table.source != nullptr ? made : table.rows[order[r]];
    for (size_t i = 0; i < row.size(); ++i) {
      if (!table.columns[i].adds || !row[i].present) continue;
      sum[i].present = true;
      const Unit unit = table.columns[i].unit;
      const bool may_be_below_zero =
          unit == Unit::kSigned || unit == Unit::kSignedDuration;
      sum[i].number = may_be_below_zero
                          ? sum[i].number + row[i].number
                          : tally::AddTo(sum[i].number, row[i].number);
      sum[i].share += row[i].share;
    }
  }
  // It is unknown how many the earlier ones represent.
  sum[0] = Value::Text("other(" + std::to_string(order.size() - top) +
                       (table.other ? " and more)" : ")"));
  return sum;
}

void Choose(const std::vector<size_t>& chosen, Table* table) {
  const auto pick = [&chosen](auto& from) {
    std::remove_reference_t<decltype(from)> picked;
    for (const size_t i : chosen) picked.push_back(from[i]);
    from = std::move(picked);
  };
  pick(table->columns);
  if (table->source != nullptr) {
    table->source = std::make_shared<ArrangedRows>(
        std::move(table->source), std::vector<uint32_t>(), chosen);
  }
  for (Row& row : table->rows) pick(row);
  if (!table->other) return;
  const Value name = table->other->front();
  pick(*table->other);
  if (!table->columns.empty() && !table->other->front().present) {
    table->other->front() = name;
  }
}

// Sorts, and puts into one what there is no room for.
Status ArrangeRows(const Arrangement& how, Table* table) {
  std::vector<uint32_t> order;
  const size_t had = table->size();
  // One row alone takes up no more than the sum that would stand for it.
  const bool all = how.top == 0 || (had == how.top + 1 && !table->other);
  const size_t top = all ? had : how.top;
  const size_t most = std::min({had, top, how.limit == 0 ? had : how.limit});
  if (!how.sort.empty()) {
    const bool ascending = how.sort.starts_with('-');
    const std::string_view name =
        std::string_view(how.sort).substr(ascending ? 1 : 0);
    const auto by = table->Find(name);
    if (!by) return NoColumn(*table, name);
    order = SortedRows(*table, *by, ascending, most);
  } else {
    order.resize(had);
    std::iota(order.begin(), order.end(), 0);
  }
  const bool limited = how.limit != 0 && how.limit < std::min(had, top);
  if (most == had && table->source != nullptr) {
    table->source = std::make_shared<ArrangedRows>(
        std::move(table->source), std::move(order), std::vector<size_t>());
    return {};
  }
  if (limited) {
    table->other.reset();
  } else if (most < had) {
    table->other = SumOf(order, most, *table);
  }
  order.resize(most);
  MakeRows(order, table);
  return {};
}

}  // namespace

std::string TableColumn::Key() const {
  const bool ns = unit == Unit::kDuration || unit == Unit::kSignedDuration ||
                  unit == Unit::kTime;
  return ns ? name + "_ns" : name;
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

void Table::ForEachRow(const std::function<void(const Row&)>& use) const {
  for (const Row& row : rows) use(row);
  Row made;
  for (size_t i = 0; source != nullptr && i < source->size(); ++i) {
    source->Make(i, &made);
    use(made);
  }
  if (other) use(*other);
}

Status Arrange(const Arrangement& how, Table* table) {
  if (!how.sort.empty() || how.top != 0 || how.limit != 0) {
    if (Status s = ArrangeRows(how, table); !s.ok()) return s;
  }
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
