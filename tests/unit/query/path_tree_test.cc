#include "tracefs/query/path_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace tracefs::query {
namespace {

constexpr PathTree::Node kNone = PathTree::kNone;

uint64_t NumberOf(const PathTree& tree, std::string_view path) {
  const PathTree::Node node = tree.Find(path);
  return node == kNone ? 0 : tree.number(node);
}

TEST(PathTreeTest, WhatIsInADirectoryGoesWithIt) {
  PathTree tree;
  const auto file = tree.Make("/a/b/f");
  tree.SetNumber(file, 7);
  tree.Move("/a", "/x/y");
  EXPECT_EQ(tree.PathOf(file), "/x/y/b/f");
  EXPECT_EQ(NumberOf(tree, "/x/y/b/f"), 7u);
  EXPECT_EQ(tree.Find("/a"), kNone);
  tree.Drop(file);
  EXPECT_EQ(tree.Find("/x"), kNone) << "nothing is left for nobody";
}

TEST(PathTreeTest, ExchangedDirectoriesKeepWhatIsInThem) {
  PathTree tree;
  const auto one = tree.Make("/a/f");
  const auto two = tree.Make("/b/g");
  tree.SetNumber(one, 1);
  tree.SetNumber(two, 2);
  tree.Exchange("/a", "/b");
  EXPECT_EQ(tree.PathOf(one), "/b/f");
  EXPECT_EQ(tree.PathOf(two), "/a/g");
}

TEST(PathTreeTest, NoDirectoryEndsUpInItself) {
  PathTree tree;
  const auto file = tree.Make("/a/b/f");
  tree.SetNumber(file, 1);
  tree.Move("/a", "/a/b/c");
  tree.Exchange("/a", "/a/b");
  tree.Move("/nothing", "/c");
  tree.Move("/a", "/");
  EXPECT_EQ(tree.PathOf(file), "/a/b/f");
  EXPECT_EQ(tree.Make("/"), kNone);
}

TEST(PathTreeTest, WhoLosesHisNameKeepsHisNumber) {
  PathTree tree;
  const auto old = tree.Make("/f");
  tree.SetNumber(old, 1);
  const auto file = tree.Make("/g");
  tree.SetNumber(file, 2);
  tree.Move("/g", "/f");
  EXPECT_EQ(NumberOf(tree, "/f"), 2u);
  EXPECT_EQ(tree.number(old), 1u);
  tree.Drop(old);
  EXPECT_EQ(NumberOf(tree, "/f"), 2u);
}

TEST(PathTreeTest, Malicious_NamesBeyondTheLimitAreNotKept) {
  PathTree tree;
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "/d";
  uint64_t made = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto node = tree.Make("/" + std::to_string(i) + deep);
    if (node == kNone) continue;
    tree.SetNumber(node, 1);
    ++made;
  }
  EXPECT_EQ(made, PathTree::kMost / 1001);
}

// Beside a plain map of whole paths.
TEST(PathTreeTest, AnswersAsAMapOfPaths) {
  std::mt19937_64 random(1);
  const auto below = [&random](uint64_t n) { return random() % n; };
  const auto path = [&] {
    std::string text;
    for (uint64_t i = 0, depth = 1 + below(4); i < depth; ++i) {
      text += "/" + std::string(1, static_cast<char>('a' + below(3)));
    }
    return text;
  };
  PathTree tree;
  std::map<std::string, uint64_t> plain;
  const auto is_below = [](const std::string& a, const std::string& b) {
    return a == b || a.starts_with(b + "/");
  };
  const auto has = [&](const std::string& a) {
    for (const auto& [name, number] : plain) {
      if (is_below(name, a)) return true;
    }
    return false;
  };
  for (uint64_t step = 1; step <= 5000; ++step) {
    const std::string a = path();
    const std::string b = path();
    switch (below(4)) {
      case 0:
        tree.SetNumber(tree.Make(a), step);
        plain[a] = step;
        break;
      case 1:
        tree.Drop(tree.Find(a));
        plain.erase(a);
        break;
      default: {
        // Over nothing else: what is replaced is dropped before.
        if (!has(a) || has(b) || is_below(b, a)) break;
        tree.Move(a, b);
        std::map<std::string, uint64_t> moved;
        for (const auto& [name, number] : plain) {
          moved[is_below(name, a) ? b + name.substr(a.size()) : name] = number;
        }
        plain = moved;
      }
    }
    for (const auto& [name, number] : plain) {
      ASSERT_EQ(NumberOf(tree, name), number) << name << " at " << step;
      ASSERT_EQ(tree.PathOf(tree.Find(name)), name) << step;
    }
    // Moves make paths longer and longer.
    if (plain.size() > 100) {
      for (const auto& [name, number] : plain) tree.Drop(tree.Find(name));
      plain.clear();
    }
    if (!plain.contains(a)) {
      ASSERT_EQ(NumberOf(tree, a), 0u) << step;
    }
  }
}

}  // namespace
}  // namespace tracefs::query
