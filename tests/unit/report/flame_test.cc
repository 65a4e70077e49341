#include "tracefs/report/flame.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tracefs::report {
namespace {

std::map<std::string, tally::Sums> RowsOf(const NameTree& tree) {
  std::vector<std::string> paths(tree.size());
  std::map<std::string, tally::Sums> rows;
  for (NodeId node = 1; node < tree.size(); ++node) {
    paths[node] =
        paths[tree.at(node).parent] + '|' + std::string(tree.NameOf(node));
    if (tree.at(node).own.count != 0) rows[paths[node]] = tree.at(node).own;
  }
  return rows;
}

class FlameTest : public testing::Test {
 protected:
  // One more of it, in the flame and among what is expected.
  void Add(const std::string& command, const std::vector<std::string>& path,
           Op op, uint64_t number) {
    const tally::Sums what = {.count = 1, .time_ns = number};
    NodeId file = 0;
    std::string expected = '|' + command + "|/";
    for (const std::string& part : path) {
      file = files_->Child(file, part);
      expected += '|' + part + (&part == &path.back() ? "" : "/");
    }
    flame_.Add(*commands_, commands_->Child(0, command), *files_, file, op,
               what, 0, 0);
    expected_[expected + '|' + std::string(OpName(op))].Add(what);
  }

  std::unique_ptr<NameTree> commands_ = std::make_unique<NameTree>();
  std::unique_ptr<NameTree> files_ = std::make_unique<NameTree>();
  Flame flame_;
  std::map<std::string, tally::Sums> expected_;
};

TEST_F(FlameTest, AFewOperationsAreSummedUp) {
  Add("cc", {"src", "a.c"}, Op::read_, 5);
  Add("cc", {"src", "a.c"}, Op::read_, 7);
  Add("cc", {}, Op::getattr_, 1);
  Add("ld", {"src", "a.c"}, Op::open_, 2);
  EXPECT_EQ(RowsOf(flame_.Tree()), expected_);
  // Asked for again, it is the same.
  EXPECT_EQ(RowsOf(flame_.Tree()), expected_);
}

TEST_F(FlameTest, ManyOperationsAreSummedUpWhileTheTreesGrow) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t number = random();
    Add("c" + std::to_string(number % 3),
        {"d" + std::to_string(number % 31), "f" + std::to_string(number % 97)},
        number % 2 == 0 ? Op::read_ : Op::write_, number % 1000);
  }
  EXPECT_EQ(RowsOf(flame_.Tree()), expected_);
}

TEST_F(FlameTest, NodesThatChangeTheirNumbersAreNotMistaken) {
  for (int round = 0; round < 20; ++round) {
    // The same numbers stand for other names in each round.
    files_ = std::make_unique<NameTree>();
    commands_ = std::make_unique<NameTree>();
    flame_.Renumber();
    for (int i = 0; i < 3000; ++i) {
      Add("c" + std::to_string((i + round) % 3),
          {"r" + std::to_string(round % 4), std::to_string(i % 50)}, Op::read_,
          1);
    }
  }
  EXPECT_EQ(RowsOf(flame_.Tree()), expected_);
}

TEST_F(FlameTest, NamesMayBeLongAndHaveAnyBytes) {
  const std::string name(40'000, 'x');
  for (int i = 0; i < 100; ++i) {
    Add("c/d", {"a/b", name + std::to_string(i % 5), std::string("\0|", 1)},
        Op::read_, 1);
  }
  EXPECT_EQ(RowsOf(flame_.Tree()), expected_);
}

TEST_F(FlameTest, WhatIsNotAskedForEndsWithIt) {
  for (int i = 0; i < 50'000; ++i) {
    Add("c", {std::to_string(i % 5000)}, Op::read_, 1);
  }
}

}  // namespace
}  // namespace tracefs::report
