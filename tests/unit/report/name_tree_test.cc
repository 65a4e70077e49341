#include "tracefs/report/name_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace tracefs::report {
namespace {

std::string PathOf(const NameTree& tree, NodeId node) {
  return node == 0 ? ""
                   : PathOf(tree, tree.at(node).parent) + "/" +
                         std::string(tree.NameOf(node));
}

tally::Sums Some(uint64_t number) {
  return {.count = 1,
          .errors = number % 7 == 0 ? 1u : 0u,
          .bytes = number % 100 + number % 30,
          .read = number % 100,
          .written = number % 30,
          .time_ns = number % 1000,
          .max_ns = number % 1000};
}

TEST(NameTreeTest, SumsOfNodesAreThoseOfAMap) {
  NameTree tree;
  std::map<std::string, tally::Sums> sums;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    NodeId node = 0;
    const uint64_t number = random();
    for (uint64_t depth = 0; depth < 1 + number % 4; ++depth) {
      node = tree.Child(node, "n" + std::to_string(number >> (8 * depth) & 7));
    }
    tree.Add(node, Some(number));
    sums[PathOf(tree, node)].Add(Some(number));
  }
  size_t with_any = 0;
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (tree.at(node).own.count == 0) continue;
    ++with_any;
    EXPECT_EQ(tree.at(node).own, sums[PathOf(tree, node)]);
  }
  EXPECT_EQ(with_any, sums.size());
  EXPECT_TRUE(tree.exact());
}

TEST(NameTreeTest, Folded_TotalsStayAndRowsLackNoMoreThanIsSaid) {
  NameTree tree({.nodes = 100, .name_bytes = 1 << 20, .series_points = 1000});
  std::map<std::string, tally::Sums> sums;
  tally::Sums total;
  std::mt19937_64 random(5);
  for (int i = 0; i < 30000; ++i) {
    const uint64_t number = random();
    // A few things are used often, the others once or twice.
    const uint64_t which = number % 2 == 0 ? number % 10 : number % 5000;
    const NodeId folder = tree.Child(0, "d" + std::to_string(which % 13));
    const NodeId node = tree.Child(folder, "f" + std::to_string(which));
    tree.Add(node, Some(number));
    sums[PathOf(tree, node)].Add(Some(number));
    total.Add(Some(number));
    if (tree.IsFull()) {
      const std::vector<std::string> before = [&] {
        std::vector<std::string> paths;
        for (NodeId n = 0; n < tree.size(); ++n) {
          paths.push_back(PathOf(tree, n));
        }
        return paths;
      }();
      const std::vector<NodeId> now = tree.Fold();
      ASSERT_EQ(now.size(), before.size());
      for (size_t n = 0; n < now.size(); ++n) {
        // It is where it was, or in something that it stood in.
        ASSERT_TRUE(before[n].starts_with(PathOf(tree, now[n])));
      }
    }
    ASSERT_LE(tree.size(), 103u);
  }
  EXPECT_FALSE(tree.exact());
  EXPECT_EQ(tree.Total(), total);
  EXPECT_EQ(tree.Sums()[0], total);
  for (NodeId node = 1; node < tree.size(); ++node) {
    EXPECT_LT(tree.at(node).parent, node);
    const tally::Sums& own = tree.at(node).own;
    const tally::Sums& all = sums[PathOf(tree, node)];
    EXPECT_LE(own.count, all.count);
    EXPECT_LE(all.count, own.count + tree.missed().count);
    EXPECT_LE(all.time_ns, own.time_ns + tree.missed().time_ns);
  }
}

TEST(NameTreeTest, Heaviest_HasEveryParentAndTheRoot) {
  NameTree tree;
  for (uint64_t i = 0; i < 500; ++i) {
    const NodeId folder = tree.Child(0, "d" + std::to_string(i % 20));
    tree.Add(tree.Child(folder, std::to_string(i)), Some(i * i));
  }
  for (const size_t most : {1u, 2u, 10u, 300u, 5000u}) {
    std::vector<bool> kept(tree.size());
    const std::vector<NodeId> nodes = tree.Heaviest(most);
    EXPECT_EQ(nodes.size(), std::min<size_t>(most, tree.size()));
    for (const NodeId node : nodes) {
      kept[node] = true;
      EXPECT_TRUE(kept[tree.at(node).parent]) << node;
    }
    EXPECT_TRUE(kept[0]);
  }
}

}  // namespace
}  // namespace tracefs::report
