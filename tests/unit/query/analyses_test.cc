// Each analysis can be asked for, and is SQL or says why it is not.
#include "tracefs/query/analyses.h"

#include <gtest/gtest.h>

#include "tracefs/query/sql_ready.h"

namespace tracefs::query {
namespace {

TEST(AnalysesTest, EachIsSqlOrSaysWhyNot) {
  for (const AnalysisRow& row : Analyses()) {
    EXPECT_EQ(FindAnalysis(row.name), &row) << row.name;
    if (row.name == "group") continue;  // is made from its keys and values
    const SqlRow* const sql = FindSql(row.name);
    ASSERT_NE(sql, nullptr) << row.name << ": add it to sql_ready.cc";
    EXPECT_NE(sql->tables.empty(), sql->why_not.empty()) << row.name;
  }
}

TEST(AnalysesTest, EachAnswersNothingAboutNothing) {
  for (const AnalysisRow& row : Analyses()) {
    for (const Table& table : row.make({})->Finish()) {
      for (const Row& cells : table.rows) {
        EXPECT_EQ(cells.size(), table.columns.size()) << row.name;
      }
    }
  }
}

}  // namespace
}  // namespace tracefs::query
