// Reads that race with a writer: which ones, and how many files and processes
// may be in it.
#include "tracefs/build/races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/build_scene.h"

namespace tracefs::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Race::Kind;
using Scene = test::BuildScene<GraphBuilder>;

// Without process records each process is a job of its own.
void Read(Scene& scene, uint32_t pid, std::string_view path) {
  scene.Open(pid, path);
  scene.Do(pid, Op::read_, path);
}
void Write(Scene& scene, uint32_t pid, std::string_view path) {
  scene.Open(pid, path, O_WRONLY);
  scene.Do(pid, Op::write_, path);
}

using Found = std::tuple<Kind, uint32_t, uint32_t, uint64_t>;

std::vector<Found> Sorted(const BuildGraph& graph, const Races& races) {
  std::vector<Found> found;
  for (const Race& race : races.list) {
    found.emplace_back(race.kind, graph.processes()[race.reader].key.pid,
                       graph.processes()[race.writer].key.pid, race.gap_ns);
  }
  std::ranges::sort(found);
  return found;
}

TEST(RacesTest, ReadsAndProbesBeforeAWriteAndReadsDuringOneAreTold) {
  GraphBuilder builder;
  Scene scene(builder);
  Read(scene, 1, "/early");
  Write(scene, 2, "/early");
  scene.Miss(1, "/late");
  scene.Create(2, "/late");
  scene.Do(2, Op::write_, "/late");
  Write(scene, 3, "/log");
  Read(scene, 4, "/log");
  scene.Do(3, Op::write_, "/log");
  Write(scene, 5, "/fine");
  Read(scene, 6, "/fine");
  const BuildGraph graph = builder.Finish();
  const Races races = FindRaces(graph, DependencyFinder(graph, {}));
  std::vector<std::tuple<Kind, uint32_t, uint32_t>> kinds;
  for (const auto& [kind, reader, writer, gap] : Sorted(graph, races)) {
    kinds.emplace_back(kind, reader, writer);
  }
  EXPECT_THAT(kinds, ElementsAre(std::tuple(Kind::kReadBefore, 1, 2),
                                 std::tuple(Kind::kReadDuring, 4, 3),
                                 std::tuple(Kind::kProbedBefore, 1, 2)));
  EXPECT_THAT(races.Notes(), IsEmpty());
}

// Where only near writers are looked at but all are near, nothing is missed.
TEST(RacesTest, NearWritersAreAllWritersWhereThereAreFew) {
  std::mt19937 random(18);
  size_t compared = 0;
  for (int round = 0; round < 200; ++round) {
    GraphBuilder builder;
    Scene scene(builder);
    for (int i = 0; i < 40; ++i) {
      const uint32_t pid = 1 + random() % 12;
      const std::string path = random() % 3 == 0 ? "/a" : "/b";
      switch (random() % 3) {
        case 0:
          Read(scene, pid, path);
          break;
        case 1:
          Write(scene, pid, path);
          break;
        default:
          scene.Miss(pid, path);
      }
    }
    const BuildGraph graph = builder.Finish();
    const DependencyFinder finder(graph, {});
    const auto all = Sorted(graph, FindRaces(graph, finder));
    const Races near = FindRaces(graph, finder, {.users = 0, .nearest = 12});
    ASSERT_EQ(Sorted(graph, near), all) << round;
    compared += all.size();
  }
  EXPECT_GT(compared, 1000u);
}

TEST(RacesTest, ACrowdedFileShowsTheWritersNearestInTime) {
  GraphBuilder builder;
  Scene scene(builder);
  Write(scene, 1, "/log");  // goes on until the end
  for (uint32_t pid = 2; pid < 300; ++pid) Write(scene, pid, "/log");
  Read(scene, 500, "/log");
  for (uint32_t pid = 300; pid < 500; ++pid) Write(scene, pid, "/log");
  scene.Do(1, Op::write_, "/log");
  const BuildGraph graph = builder.Finish();
  const Races races =
      FindRaces(graph, DependencyFinder(graph, {}), {.nearest = 2});
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const auto& [kind, reader, writer, gap] : Sorted(graph, races)) {
    pairs.emplace_back(reader, writer);
  }
  EXPECT_THAT(pairs, ElementsAre(std::pair(500, 300), std::pair(500, 301),
                                 std::pair(500, 1)));
  EXPECT_EQ(races.crowded_files, 1u);
  EXPECT_EQ(races.Notes().size(), 1u);
}

TEST(RacesTest, WhatThereIsNoRoomForIsCounted) {
  GraphBuilder builder;
  Scene scene(builder);
  for (uint32_t pid = 1; pid <= 10; ++pid) Read(scene, pid, "/a");
  Write(scene, 11, "/a");
  const BuildGraph graph = builder.Finish();
  const Races races =
      FindRaces(graph, DependencyFinder(graph, {}), {.races = 4});
  EXPECT_EQ(races.list.size(), 4u);
  EXPECT_EQ(races.left_out, 6u);
  EXPECT_THAT(races.Notes(), ElementsAre("6 more races are not listed"));
}

// Each pair of a quarter million processes would take hours.
TEST(RacesTest, Malicious_AMillionEventsOnOneFileAreLookedThroughAtOnce) {
  GraphBuilder builder;
  Scene scene(builder);
  constexpr uint32_t kProcesses = 250'000;
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    if (pid % 2 == 0) {
      Read(scene, pid, "/a");
    } else {
      Write(scene, pid, "/a");
    }
  }
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    scene.Do(pid, pid % 2 == 0 ? Op::read_ : Op::write_, "/a");
    scene.Do(pid, Op::release_, "/a");
  }
  const BuildGraph graph = builder.Finish();
  const RaceLimits limits;
  const Races races = FindRaces(graph, DependencyFinder(graph, {}), limits);
  EXPECT_EQ(races.crowded_files, 1u);
  EXPECT_EQ(races.list.size(), limits.races);
  EXPECT_GT(races.left_out, 0u);
  EXPECT_LE(races.list.size() + races.left_out,
            uint64_t{kProcesses} * 2 * limits.nearest);
}

// Each is the child of the one that is heard of next.
TEST(RacesTest, Malicious_AChainOfProcessesIsGoneThroughOnce) {
  GraphBuilder builder;
  Scene scene(builder);
  constexpr uint32_t kProcesses = 250'000;
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    FileStep step = scene.Step(pid, Op::read_, "/a");
    step.ppid = pid + 1;
    scene.Take(step);
  }
  const BuildGraph graph = builder.Finish();
  const DependencyFinder finder(graph, {});
  const std::vector<ProcessId> jobs = finder.Jobs();
  EXPECT_EQ(graph.Subtree(jobs[0]).size(), kProcesses);
  EXPECT_EQ(jobs[0], finder.JobOf(kProcesses / 2));
  EXPECT_THAT(FindRaces(graph, finder).list, IsEmpty());
}

}  // namespace
}  // namespace tracefs::build
