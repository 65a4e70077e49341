// The model of a tree against a plain map, and what it costs.
#include "tracefs/replay/tree_model.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

namespace tracefs::replay {
namespace {

TEST(TreeModelTest, KnowsNamesAndInodesAsAMapDoes) {
  TreeModel model;
  std::map<std::pair<NodeId, std::string>, NodeId> names;
  std::map<uint64_t, NodeId> inodes;
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const NodeId parent = kRootNode;
    const std::string name = "n" + std::to_string(random() % 300);
    const auto at = names.find({parent, name});
    const LinkId link = model.Find(parent, name);
    ASSERT_EQ(link != kNoLink, at != names.end()) << i << " " << name;
    if (at == names.end()) {
      const uint64_t inode = random() % 1000 + 1;
      NodeId id;
      if (const auto known = inodes.find(inode); known != inodes.end()) {
        ASSERT_EQ(model.ByInode(inode), known->second);
        id = known->second;
      } else {
        ASSERT_EQ(model.ByInode(inode), kNoNode);
        id = model.Add(inode);
        inodes[inode] = id;
      }
      model.AddLink(parent, name, id);
      names[{parent, name}] = id;
      continue;
    }
    const NodeId id = at->second;
    ASSERT_EQ(model.link(link).node, id);
    const uint64_t inode = model.node(id).inode;
    model.RemoveLink(link);
    names.erase(at);
    const bool last = model.node(id).first_link == kNoLink;
    model.DropIfGone(id);
    if (last) inodes.erase(inode);
    ASSERT_EQ(model.ByInode(inode) == kNoNode, last);
  }
  size_t links = 0;
  model.ForEachLink([&](const Link&) { ++links; });
  EXPECT_EQ(links, names.size());
}

TEST(TreeModelTest, KnowsWhatItDroppedUntilTheNumberIsGivenAgain) {
  TreeModel model;
  EXPECT_FALSE(model.IsDropped(7));
  const NodeId file = model.Add(7);
  model.AddLink(kRootNode, "a", file);
  model.DropIfGone(file);
  EXPECT_FALSE(model.IsDropped(7)) << "it has a name";
  model.RemoveLink(model.Find(kRootNode, "a"));
  model.DropIfGone(file);
  EXPECT_TRUE(model.IsDropped(7));
  EXPECT_FALSE(model.IsDropped(0));
  EXPECT_FALSE(model.IsDropped(8));
  model.Add(7);
  EXPECT_FALSE(model.IsDropped(7));
}

TEST(TreeModelTest, TakesLessThan200BytesAnInode) {
  TreeModel model;
  constexpr size_t kMany = 300000;
  for (size_t i = 0; i < kMany; ++i) {
    model.AddLink(kRootNode, "name." + std::to_string(i), model.Add(i + 2));
  }
  EXPECT_LT(model.bytes() / kMany, 200u);
}

TEST(TreeModelTest, TellsPathsAndSurvivesCircles) {
  TreeModel model;
  const NodeId a = model.Add(2);
  const NodeId b = model.Add(3);
  model.AddLink(kRootNode, "a", a);
  model.AddLink(a, "b", b);
  std::string path;
  ASSERT_TRUE(model.PathOf(b, &path));
  EXPECT_EQ(path, "a/b");
  ASSERT_TRUE(model.PathOf(kRootNode, &path));
  EXPECT_EQ(path, "");
  model.RemoveLink(model.Find(kRootNode, "a"));
  EXPECT_FALSE(model.PathOf(b, &path));
  model.AddLink(b, "a", a);
  EXPECT_FALSE(model.PathOf(b, &path));
}

}  // namespace
}  // namespace tracefs::replay
