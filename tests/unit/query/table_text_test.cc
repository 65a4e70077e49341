// Tables as text: what a cell says, with names that are not tame.
#include "tracefs/query/table_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/query/table.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::query {
namespace {

class TextBuffer final : public OutputBuffer {
 public:
  std::string Text() {
    EXPECT_TRUE(Flush().ok());
    return text_;
  }

 private:
  Status Emit(std::string_view text) override {
    text_ += text;
    return {};
  }
  std::string text_;
};

std::string Written(const Table& table, std::string_view format,
                    CsvReader reader = CsvReader::kProgram) {
  TextBuffer out;
  WriteTable(table, format, {.csv_reader = reader}, &out);
  return out.Text();
}

std::string Cell(Unit unit, const Value& value, uint64_t begin_ns = 0) {
  return CellText({"c", unit}, value, begin_ns);
}

constexpr auto Negative = [](int64_t n) {
  return Value::Number(static_cast<uint64_t>(n));
};

TEST(TableTextTest, EachUnitHasItsText) {
  EXPECT_EQ(Cell(Unit::kNumber, {}), "-");
  EXPECT_EQ(Cell(Unit::kText, Value::Text("")), "\"\"");
  EXPECT_EQ(Cell(Unit::kNumber, Value::Number(UINT64_MAX)),
            "18446744073709551615");
  EXPECT_EQ(Cell(Unit::kBytes, Value::Number(1 << 20)), "1.04 MB");
  EXPECT_EQ(Cell(Unit::kSigned, Negative(-5)), "-5");
  EXPECT_EQ(Cell(Unit::kDuration, Value::Number(4'330'000)), "4.33 ms");
  EXPECT_EQ(Cell(Unit::kSignedDuration, Negative(-4'330'000)), "-4.33 ms");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(1, 8)), "12.5 %");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(1, 1)), "100.0 %");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(0, 7)), "0.0 %");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(4, 10'000)), "<0.1 %");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(1, 1'000)), "0.1 %");
  EXPECT_EQ(Cell(Unit::kShare, Value::Share(9'999, 10'000)), ">99.9 %");
  // Text in a column of numbers: the line `other`.
  EXPECT_EQ(Cell(Unit::kNumber, Value::Text("other")), "other");
}

TEST(TableTextTest, TimesAreSinceTheBegin) {
  constexpr uint64_t kBegin = 1'700'000'000'000'000'000;
  const auto since = [](int64_t ns) {
    return Cell(Unit::kTime, Value::Number(kBegin + static_cast<uint64_t>(ns)),
                kBegin);
  };
  EXPECT_EQ(since(0), "+0.000000");
  EXPECT_EQ(since(1'999), "+0.000001");
  EXPECT_EQ(since(999'999'999), "+0.999999");
  EXPECT_EQ(since(1'000'000'000), "+1.000000");
  EXPECT_EQ(since(61'000'042'000), "+61.000042");
  EXPECT_EQ(since(-1'500'000'000), "-1.500000");
}

Table TwoColumns(const std::vector<std::pair<std::string, uint64_t>>& rows) {
  Table table;
  table.columns = {{"count", Unit::kNumber, true}, {"path"}};
  for (const auto& [path, count] : rows) {
    table.rows.push_back({Value::Number(count), Value::Text(path)});
  }
  return table;
}

TEST(TableTextTest, NumbersEndAndTextsBeginBelowTheirHeads) {
  Table table = TwoColumns({{"/a", 7}, {"/\xc3\xa9 b", 1234567}});
  table.columns.push_back({"time", Unit::kDuration, true});
  for (Row& row : table.rows) row.push_back(Value::Number(1000));
  table.title = "files";
  table.summary = "There are two.";
  table.notes = {"one", "two"};
  EXPECT_EQ(Written(table, "text"),
            "files\n"
            "There are two.\n"
            "    count  path     time\n"
            "        7  /a    1.00 \u00b5s\n"
            "1,234,567  /\u00e9 b  1.00 \u00b5s\n"
            "one\n"
            "two\n");
  table.rows.clear();
  EXPECT_EQ(Written(table, "text"),
            "files\nThere are two.\ncount  path  time\n(none)\none\ntwo\n");
  table.other = Row{Value::Text("other(3)"), {}, Value::Number(5)};
  EXPECT_NE(Written(table, "text").find("other(3)  -     5 ns\n"),
            std::string::npos)
      << Written(table, "text");
  table.columns.clear();
  table.other.reset();
  EXPECT_EQ(Written(table, "text"), "files\nThere are two.\n");
}

// Else two files would seem to be one.
TEST(TableTextTest, BlanksAtTheEndsOfANameShow) {
  const std::string text = Written(
      TwoColumns({{"/a", 1}, {"/a ", 2}, {" /a", 3}, {"/a b", 4}}), "text");
  EXPECT_EQ(text,
            "count  path\n"
            "    1  /a\n"
            "    2  \"/a \"\n"
            "    3  \" /a\"\n"
            "    4  /a b\n");
  EXPECT_EQ(Cell(Unit::kText, Value::Text(" \"q\" ")), "\" \\\"q\\\" \"");
  EXPECT_EQ(Cell(Unit::kText, Value::Text(" ")), "\" \"");
  const std::string markdown = MarkdownOf(TwoColumns({{"/a ", 2}}));
  EXPECT_NE(markdown.find("| \"/a \" |"), std::string::npos) << markdown;
}

TEST(TableTextTest, MachinesReadNumbersAsTheyAre) {
  Table table;
  table.title = "t";
  table.columns = {{"path"},
                   {"latency", Unit::kDuration},
                   {"share", Unit::kShare},
                   {"moved", Unit::kSigned},
                   {"none", Unit::kNumber}};
  table.rows = {{Value::Text("a \"q\"\n"), Value::Number(4'330'001),
                 Value::Share(1, 3), Negative(-2), Value()},
                {Value::Text("\xff"), Value::Number(0), Value::Share(0, 3),
                 Negative(2), Value::Number(0)}};
  EXPECT_EQ(Written(table, "csv"),
            "path,latency_ns,share,moved,none\n"
            "\"a \"\"q\"\"\\n\",4330001,0.333333333,-2,\n"
            "\\xff,0,0,2,0\n");
  EXPECT_EQ(Written(table, "jsonl"),
            "{\"path\":\"a \\\"q\\\"\\n\",\"latency_ns\":4330001,"
            "\"share\":0.333333333,\"moved\":-2}\n"
            "{\"path_b64\":\"/w==\",\"latency_ns\":0,\"share\":0,\"moved\":2,"
            "\"none\":0}\n");
  table.notes = {"a note", "another"};
  table.rows.resize(1);
  const Table both[] = {table, table};
  const std::string one =
      "{\"title\":\"t\",\"rows\":[\n"
      "{\"path\":\"a \\\"q\\\"\\n\",\"latency_ns\":4330001,"
      "\"share\":0.333333333,\"moved\":-2}],"
      "\"notes\":[\"a note\",\"another\"]}";
  EXPECT_EQ(JsonOf(both), "{\"tables\":[\n" + one + ",\n" + one + "\n]}\n");
  EXPECT_EQ(JsonOf({}), "{\"tables\":[\n]}\n");
}

TEST(TableTextTest, MarkdownOfANameIsNoMarkup) {
  Table table = TwoColumns({{"/a|b*c_<x>", 7}});
  table.title = "a*b";
  table.summary = "s_";
  table.notes = {"n|"};
  EXPECT_EQ(Written(table, "md"),
            "### a\\*b\n\n"
            "s\\_\n\n"
            "| count | path |\n"
            "| ---: | --- |\n"
            "| 7 | /a\\|b\\*c\\_\\<x\\> |\n"
            "\nn\\|\n");
}

// --- What is cut -------------------------------------------------------------

// Sizes and durations of a trace may be lies: two of them are no small number.
TEST(TableTextTest, Malicious_OtherStopsAtTheTop) {
  Table table = TwoColumns({{"/a", UINT64_MAX}, {"/b", UINT64_MAX}, {"/c", 9}});
  ASSERT_TRUE(Arrange({.sort = "count", .top = 1}, &table).ok());
  ASSERT_TRUE(table.other);
  table = TwoColumns({{"/a", 5}, {"/b", 9}, {"/c", UINT64_MAX}});
  table.columns.insert(table.columns.begin(), {"name"});
  for (Row& row : table.rows) row.insert(row.begin(), Value::Text("x"));
  ASSERT_TRUE(Arrange({.sort = "-count", .top = 1}, &table).ok());
  ASSERT_TRUE(table.other);
  EXPECT_EQ((*table.other)[0].text, "other(2)");
  EXPECT_EQ((*table.other)[1].number, UINT64_MAX);
  // What may be below zero goes both ways.
  Table moves;
  moves.columns = {{"name"}, {"more", Unit::kSignedDuration, true}};
  for (const int64_t more : {1, -7, 5, -9}) {
    moves.rows.push_back({Value::Text("x"), Negative(more)});
  }
  ASSERT_TRUE(Arrange({.top = 1}, &moves).ok());
  EXPECT_EQ(static_cast<int64_t>((*moves.other)[1].number), -11);
}

}  // namespace
}  // namespace tracefs::query
