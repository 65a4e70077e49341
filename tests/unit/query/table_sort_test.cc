#include "tracefs/query/table_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tracefs/query/table.h"

namespace tracefs::query {
namespace {

// Says the same in the slow and obvious way.
bool Before(const Table& table, size_t by, bool ascending, const Row& a,
            const Row& b) {
  const auto compare = [&](size_t i) {
    const Unit unit = table.columns[i].unit;
    if (a[i].present != b[i].present) return a[i].present ? 1 : -1;
    if (unit == Unit::kText) return a[i].text.compare(b[i].text);
    if (unit == Unit::kShare) {
      return a[i].share < b[i].share ? -1 : a[i].share > b[i].share ? 1 : 0;
    }
    if (unit == Unit::kSigned || unit == Unit::kSignedDuration) {
      const auto x = static_cast<int64_t>(a[i].number);
      const auto y = static_cast<int64_t>(b[i].number);
      return x < y ? -1 : x > y ? 1 : 0;
    }
    return a[i].number < b[i].number ? -1 : a[i].number > b[i].number ? 1 : 0;
  };
  const bool text = table.columns[by].unit == Unit::kText;
  if (const int c = compare(by); c != 0) {
    return (text != ascending) == (c < 0);
  }
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (const int c = compare(i); c != 0) return c < 0;
  }
  return false;
}

bool Same(const Row& a, const Row& b) {
  return std::ranges::equal(a, b, [](const Value& x, const Value& y) {
    return x.present == y.present && x.number == y.number &&
           x.share == y.share && x.text == y.text;
  });
}

// Few different values, so that there are ties in each column.
Table MadeUp(size_t rows, uint64_t seed) {
  Table table;
  table.columns = {{"path"},
                   {"count", Unit::kNumber, true},
                   {"share", Unit::kShare, true},
                   {"result", Unit::kSigned},
                   {"more", Unit::kSignedDuration},
                   {"change", Unit::kShare},
                   {"name"}};
  std::mt19937_64 random(seed);
  const auto text = [&]() -> Value {
    if (random() % 9 == 0) return {};
    std::string made = random() % 5 == 0 ? "/" : "/long/common/begin/";
    for (uint64_t n = random() % 12; n != 0; --n) {
      made += "\xff\0ab"[random() % 4];
    }
    return Value::Text(made);
  };
  const auto change = [&] {
    Value value = Value::Share(random() % 5, 2);
    value.share -= 1;
    return value;
  };
  for (size_t i = 0; i < rows; ++i) {
    const Value count =
        random() % 9 == 0 ? Value() : Value::Number(random() % 5);
    table.rows.push_back({text(), count,
                          Value::Share(random() % 3, 1 + random() % 3),
                          Value::Number(random() % 5 - 2),
                          Value::Number(random() % 5 - 2), change(), text()});
  }
  return table;
}

class Copies final : public RowSource {
 public:
  explicit Copies(std::vector<Row> rows) : rows_(std::move(rows)) {}
  size_t size() const override { return rows_.size(); }
  void Make(size_t i, Row* row) const override { *row = rows_[i]; }

 private:
  const std::vector<Row> rows_;
};

TEST(TableSortTest, AnyColumnBothWaysAndAnyPartOfItAsTheSlowWay) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Table table = MadeUp(seed * 7 % 200, seed);
    for (size_t by = 0; by < table.columns.size(); ++by) {
      for (const bool ascending : {false, true}) {
        std::vector<Row> expected = table.rows;
        std::ranges::sort(expected, [&](const Row& a, const Row& b) {
          return Before(table, by, ascending, a, b);
        });
        for (const size_t most :
             {size_t{0}, size_t{1}, table.size() / 3, table.size()}) {
          std::vector<uint32_t> order = SortedRows(table, by, ascending, most);
          ASSERT_EQ(order.size(), table.size());
          for (size_t i = 0; i < std::min(most, order.size()); ++i) {
            ASSERT_TRUE(Same(table.rows[order[i]], expected[i]))
                << "seed " << seed << " by " << by << " row " << i;
          }
          std::ranges::sort(order);
          EXPECT_EQ(std::ranges::unique(order).begin(), order.end());
        }
      }
    }
  }
}

TEST(TableSortTest, RowsOfASourceAreArrangedLikeRowsOfATable) {
  const Arrangement hows[] = {
      {.sort = "count"},
      {.sort = "-path"},
      {.sort = "share", .top = 10},
      {.sort = "name", .top = 20, .limit = 7},
      {.sort = "count", .limit = 30},
      {.top = 5},
      {.limit = 5},
      {.sort = "count", .columns = {"name", "count"}},
      {.sort = "count", .top = 3, .columns = {"share", "path"}},
      {.columns = {"count"}},
      {.sort = "count", .top = 1000, .limit = 1000}};
  for (const Arrangement& how : hows) {
    Table plain = MadeUp(100, 3);
    Table lazy = plain;
    lazy.source = std::make_shared<Copies>(std::move(lazy.rows));
    lazy.rows.clear();
    ASSERT_TRUE(Arrange(how, &plain).ok());
    ASSERT_TRUE(Arrange(how, &lazy).ok());
    std::vector<Row> expected, rows;
    plain.ForEachRow([&](const Row& row) { expected.push_back(row); });
    lazy.ForEachRow([&](const Row& row) { rows.push_back(row); });
    ASSERT_EQ(rows.size(), expected.size()) << how.sort;
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(Same(rows[i], expected[i])) << how.sort << " row " << i;
    }
  }
}

TEST(TableSortTest, WhatIsCutIsOtherSoThatTotalsAddUp) {
  Table table = MadeUp(100, 5);
  uint64_t total = 0;
  for (const Row& row : table.rows) total += row[1].number;
  ASSERT_TRUE(Arrange({.sort = "count", .top = 12}, &table).ok());
  ASSERT_EQ(table.rows.size(), 12u);
  ASSERT_TRUE(table.other);
  EXPECT_EQ((*table.other)[0].text, "other(88)");
  uint64_t sum = 0;
  table.ForEachRow([&](const Row& row) { sum += row[1].number; });
  EXPECT_EQ(sum, total);
}

// A sum of one row would say less of it, and take up as much room.
TEST(TableSortTest, ARowThatWouldBeOtherAloneIsShown) {
  Table table = MadeUp(13, 5);
  ASSERT_TRUE(Arrange({.sort = "count", .top = 12}, &table).ok());
  EXPECT_EQ(table.rows.size(), 13u);
  EXPECT_FALSE(table.other);
}

TEST(TableSortTest, ARowThatComesToWhatWasOtherBeforeIsNotShown) {
  Table table = MadeUp(13, 5);
  table.other = Row(table.columns.size());
  ASSERT_TRUE(Arrange({.sort = "count", .top = 12}, &table).ok());
  EXPECT_EQ(table.rows.size(), 12u);
  ASSERT_TRUE(table.other);
  EXPECT_EQ((*table.other)[0].text, "other(1 and more)");
}

TEST(TableSortTest, AColumnThatIsNotThereIsToldWithTheNearestOne) {
  Table table = MadeUp(3, 1);
  const Status status = Arrange({.sort = "cuont"}, &table);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("count"), std::string::npos);
}

}  // namespace
}  // namespace tracefs::query
