#include "tracefs/export/strace_held.h"

#include <gtest/gtest.h>

#include <string>

namespace tracefs {
namespace {

class HeldLinesTest : public ::testing::Test {
 protected:
  std::string Written() {
    held_.Finish();
    EXPECT_TRUE(out_.Flush().ok());
    return out_.text();
  }

  StringOutput out_;
  HeldLines held_{out_};
};

TEST_F(HeldLinesTest, AStatIsToldUnlessTheSameThreadGoesOnBelowIt) {
  held_.HoldStat("stat /a\n", 1, "/a");
  held_.ThreadAsks(1, false, "/ab", "");
  held_.HoldStat("walk /a\n", 1, "/a");
  held_.ThreadAsks(2, false, "/a/b", "");  // another thread says nothing
  held_.ThreadAsks(1, false, "/a/b", "");
  held_.HoldStat("walk /\n", 1, "/");
  held_.ThreadAsks(1, false, "/x", "");
  held_.HoldStat("walk /c\n", 1, "/c");
  held_.ThreadAsks(1, true, "/c", "");
  held_.HoldStat("stat /c\n", 1, "/c");
  held_.ThreadAsks(1, false, "/c", "");
  held_.HoldStat("walk /to\n", 1, "/to");
  held_.ThreadAsks(1, false, "/from/x", "/to/x");
  held_.HoldStat("stat /last\n", 1, "/last");
  EXPECT_EQ(Written(), "stat /a\nstat /c\nstat /last\n");
  EXPECT_EQ(held_.left_out(), 4u);
}

TEST_F(HeldLinesTest, ACloseIsToldIfItsProcessGoesOnAfterIt) {
  held_.HoldClose("close 1\n", 7);
  held_.HoldClose("close 2\n", 7);
  held_.HoldClose("run 8\n", 8);
  held_.ProcessCalls(7);
  held_.HoldClose("end 7\n", 7);
  held_.ProcessChanges(7);
  held_.ProcessCalls(7);  // another one of that number
  held_.ProcessChanges(8);
  held_.ProcessCalls(8);
  held_.HoldClose("last of 9\n", 9);
  EXPECT_EQ(Written(), "close 1\nclose 2\n");
  EXPECT_EQ(held_.left_out(), 3u);
}

TEST_F(HeldLinesTest, LinesKeepTheirOrderInTime) {
  held_.Add("1\n");
  held_.HoldStat("2\n", 1, "/a");
  held_.Add("3\n");
  held_.HoldClose("4\n", 9);
  held_.Add("5\n");
  held_.ProcessCalls(9);
  held_.ThreadAsks(1, false, "/b", "");
  held_.Add("6\n");
  EXPECT_EQ(Written(), "1\n2\n3\n4\n5\n6\n");
}

TEST_F(HeldLinesTest, MemoryIsBoundedWhateverNeverEnds) {
  const std::string line(1000, 'x');
  for (uint64_t i = 0; i < 100'000; ++i) {
    held_.HoldStat(line, i, "/a");
    held_.HoldClose(line, i % 3);
  }
  held_.ThreadAsks(0, false, "/b", "");  // its line was written long ago
  held_.ProcessCalls(0);
  EXPECT_EQ(Written().size() + held_.left_out() * line.size(),
            200'000u * line.size());
  EXPECT_LE(held_.left_out(), 100'000u);
}

}  // namespace
}  // namespace tracefs
