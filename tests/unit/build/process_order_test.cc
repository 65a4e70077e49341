// What happens before what among processes, against a slow model that follows
// every arrow there is.
#include "tracefs/build/process_order.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/support/build_scene.h"

namespace tracefs::build {
namespace {

using Scene = test::BuildScene<GraphBuilder>;

// Something that a process did, with arrows to what can only come after it.
struct Point {
  uint32_t pid;
  uint64_t time_ns;
  bool access;
  std::vector<size_t> after;
};

// A tree of processes that fork, use a file and end as chance has it; the
// builder hears of it, and the points know their arrows.
class RandomTree {
 public:
  explicit RandomTree(uint32_t seed) : random_(seed) {
    scene_.Running(1, "/bin/sh");
    Begin(1, 0);
  }

  void Grow(int steps) {
    for (int i = 0; i < steps && !live_.empty(); ++i) {
      auto at = live_.begin();
      std::advance(at, random_() % live_.size());
      const uint32_t pid = at->first;
      switch (random_() % 4) {
        case 0:
          Fork(pid);
          break;
        case 1:
          End(pid);
          break;
        default:
          scene_.Do(pid, Op::read_, "/src/file");
          Add(pid, true);
      }
    }
  }

  // Everything that has to come after a point.
  std::vector<char> AfterAll(size_t from) const {
    std::vector<char> reached(points_.size(), 0);
    std::vector<size_t> left = {from};
    while (!left.empty()) {
      const size_t at = left.back();
      left.pop_back();
      for (const size_t next : points_[at].after) {
        if (reached[next] != 0) continue;
        reached[next] = 1;
        left.push_back(next);
      }
    }
    return reached;
  }

  const std::vector<Point>& points() const { return points_; }
  BuildGraph Finish() { return builder_.Finish(); }

 private:
  struct Live {
    uint32_t parent;
    size_t last;                 // its last point
    std::vector<size_t> waited;  // ends of children since then
  };

  void Begin(uint32_t pid, uint32_t parent) {
    points_.push_back({pid, scene_.now(), false, {}});
    live_[pid] = {parent, points_.size() - 1, {}};
  }

  size_t Add(uint32_t pid, bool access) {
    Live& live = live_.at(pid);
    points_.push_back({pid, scene_.now(), access, {}});
    const size_t point = points_.size() - 1;
    points_[live.last].after.push_back(point);
    for (const size_t end : live.waited) points_[end].after.push_back(point);
    live.waited.clear();
    live.last = point;
    return point;
  }

  void Fork(uint32_t pid) {
    const uint32_t child = ++last_pid_;
    scene_.Fork(pid, child);
    const size_t fork = Add(pid, false);
    Begin(child, pid);
    points_[fork].after.push_back(points_.size() - 1);
  }

  void End(uint32_t pid) {
    scene_.Exit(pid);
    const size_t end = Add(pid, false);
    const uint32_t parent = live_.at(pid).parent;
    live_.erase(pid);
    if (const auto above = live_.find(parent); above != live_.end()) {
      above->second.waited.push_back(end);
    }
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  Scene scene_{builder_};
  std::vector<Point> points_;
  std::map<uint32_t, Live> live_;
  uint32_t last_pid_ = 1;
};

TEST(ProcessOrderTest, EveryPairOfAccessesIsAsTheSlowModelHasIt) {
  size_t ordered = 0;
  size_t unordered = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RandomTree tree(seed);
    tree.Grow(20 + static_cast<int>(seed % 80));
    const BuildGraph graph = tree.Finish();
    const ProcessOrder order(graph);
    std::map<uint32_t, ProcessId> ids;
    for (ProcessId id = 0; id < graph.processes().size(); ++id) {
      ids[graph.processes()[id].key.pid] = id;
    }
    const std::vector<Point>& points = tree.points();
    for (size_t i = 0; i < points.size(); ++i) {
      if (!points[i].access) continue;
      const std::vector<char> after = tree.AfterAll(i);
      for (size_t k = i + 1; k < points.size(); ++k) {
        if (!points[k].access) continue;
        const bool before = order.Before(ids[points[i].pid], points[i].time_ns,
                                         ids[points[k].pid], points[k].time_ns);
        ASSERT_EQ(before, after[k] != 0)
            << "seed " << seed << ": " << points[i].pid << " and "
            << points[k].pid;
        ++(before ? ordered : unordered);
      }
    }
  }
  EXPECT_GT(ordered, 10'000u);
  EXPECT_GT(unordered, 10'000u);
}

// A million questions about a chain: each may not cost its length.
TEST(ProcessOrderTest, Malicious_ADeepTreeIsAnsweredInFewSteps) {
  GraphBuilder builder;
  Scene scene(builder);
  constexpr uint32_t kDepth = 100'000;
  scene.Running(1, "/bin/sh");
  for (uint32_t pid = 1; pid < kDepth; ++pid) scene.Fork(pid, pid + 1);
  scene.Fork(1, kDepth + 1);
  const uint64_t now = scene.now();
  const BuildGraph graph = builder.Finish();
  const ProcessOrder order(graph);
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_FALSE(order.Before(kDepth - 1, now, kDepth, now));
  }
  EXPECT_TRUE(order.Before(0, 0, kDepth - 1, now));
}

}  // namespace
}  // namespace tracefs::build
