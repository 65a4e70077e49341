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

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Race::Kind;
using Scene = test::BuildScene<GraphBuilder>;

// Without process records a process lives from its first to its last operation.
void Read(Scene& scene, uint32_t pid, std::string_view path) {
  scene.Open(pid, path);
  scene.Do(pid, Op::read_, path);
}
void Write(Scene& scene, uint32_t pid, std::string_view path) {
  scene.Open(pid, path, O_WRONLY);
  scene.Do(pid, Op::write_, path);
}

// Of processes without records.
void LiveOn(Scene& scene, uint32_t first, uint32_t last) {
  for (uint32_t pid = first; pid <= last; ++pid) {
    scene.Do(pid, Op::getattr_, "/");
  }
}

using Found = std::tuple<Kind, uint32_t, uint32_t, uint64_t>;

std::vector<Found> Sorted(const BuildGraph& graph, const Races& races) {
  std::vector<Found> found;
  for (const Race& race : races.list) {
    found.emplace_back(
        race.kind, graph.processes()[graph.ProcessOf(race.reader)].key.pid,
        graph.processes()[graph.ProcessOf(race.writer)].key.pid, race.gap_ns);
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
  const Races races = FindRaces(graph);
  std::vector<std::tuple<Kind, uint32_t, uint32_t>> kinds;
  for (const auto& [kind, reader, writer, gap] : Sorted(graph, races)) {
    kinds.emplace_back(kind, reader, writer);
  }
  EXPECT_THAT(kinds, ElementsAre(std::tuple(Kind::kReadBefore, 1, 2),
                                 std::tuple(Kind::kReadDuring, 4, 3),
                                 std::tuple(Kind::kProbedBefore, 1, 2)));
  EXPECT_THAT(races.Notes(), Contains(HasSubstr("no process records")));
}

// make runs each line of a recipe when the one before has ended.
TEST(RacesTest, LinesOfOneRecipeAreInOrder) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/sh -c rm x.o; cc x.c; ranlib x.o");
  scene.Run(2, 3, "/bin/rm -f x.o");
  scene.Miss(3, "/src/x.o");
  scene.Exit(3);
  scene.Run(2, 4, "/usr/bin/gcc -c x.c");
  scene.Run(4, 5, "/usr/bin/as -o x.o");
  scene.Create(5, "/src/x.o", O_RDWR | O_CREAT);
  scene.Do(5, Op::write_, "/src/x.o");
  scene.Exit(5);
  scene.Exit(4);
  scene.Exit(2);
  scene.Run(1, 6, "/usr/bin/ranlib x.o");
  scene.Open(6, "/src/x.o", O_RDWR);
  scene.Do(6, Op::write_, "/src/x.o");
  scene.Exit(6);
  scene.Exit(1);
  const BuildGraph graph = builder.Finish();
  const Races races = FindRaces(graph);
  EXPECT_THAT(Sorted(graph, races), IsEmpty());
  // What the verdict does not cover.
  EXPECT_THAT(races.Notes(), ElementsAre(HasSubstr("at the same time")));
}

TEST(RacesTest, WhatALineLeavesInTheBackgroundRacesWithTheNext) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/sh -c (sleep 1; gen) & cc");
  scene.Fork(1, 2);
  scene.Run(2, 3, "/usr/bin/gen");
  scene.Exit(2);  // before what it began
  scene.Run(1, 4, "/usr/bin/cc");
  scene.Open(4, "/src/made.h");
  scene.Create(3, "/src/made.h");
  scene.Exit(4);
  scene.Exit(3);
  scene.Exit(1);
  const BuildGraph graph = builder.Finish();
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const auto& [kind, reader, writer, gap] :
       Sorted(graph, FindRaces(graph))) {
    pairs.emplace_back(reader, writer);
  }
  EXPECT_THAT(pairs, ElementsAre(std::pair(4, 3)));
}

// A shell reads a file, starts what writes it, and reads it again meanwhile:
// that the first read comes before says nothing of the second.
TEST(RacesTest, ALaterReadRacesWhereTheFirstDoesNot) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/sh -c gen & cat config");
  Read(scene, 1, "/config");
  scene.Fork(1, 2);
  Read(scene, 1, "/config");
  Write(scene, 2, "/config");
  scene.Exit(2);
  scene.Exit(1);
  const BuildGraph graph = builder.Finish();
  std::vector<std::tuple<Kind, uint32_t, uint32_t>> found;
  for (const auto& [kind, reader, writer, gap] :
       Sorted(graph, FindRaces(graph))) {
    found.emplace_back(kind, reader, writer);
  }
  EXPECT_THAT(found, ElementsAre(std::tuple(Kind::kReadBefore, 1u, 2u)));
  // Near writers are compared at both times, too.
  EXPECT_EQ(Sorted(graph, FindRaces(graph, {.users = 1})).size(), 1u);
}

// make looks for what its jobs are about to make while they run.
TEST(RacesTest, WhoeverStartsAJobMayLookForWhatItMakes) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make -j2");
  scene.Run(1, 2, "/usr/bin/bison");
  scene.Miss(1, "/src/y.tab.h");
  scene.Create(2, "/src/y.tab.h");
  scene.Exit(2);
  scene.Exit(1);
  const BuildGraph graph = builder.Finish();
  EXPECT_THAT(Sorted(graph, FindRaces(graph)), IsEmpty());
}

// The connector tells of an end when the parent may have gone on already.
TEST(RacesTest, AnEndThatIsToldLateIsWhenTheLastThingWasDone) {
  for (const ProcessSource source :
       {ProcessSource::kConnector, ProcessSource::kPtrace}) {
    GraphBuilder builder;
    Scene scene(builder);
    scene.Running(1, "/bin/sh");
    scene.Run(1, 2, "/usr/bin/one");
    scene.Open(2, "/src/a");
    scene.Run(1, 3, "/usr/bin/two");
    ProcessRecord end;
    end.kind = ProcessRecord::Kind::kExit;
    end.source = source;
    end.process = Scene::Key(2);
    end.tid = 2;
    end.exit_code = 0;
    end.time_ns = scene.now() + 500;
    builder.Take(end);
    scene.Open(3, "/src/a", O_WRONLY);
    scene.Exit(3);
    scene.Exit(1);
    const BuildGraph graph = builder.Finish();
    const bool told = source == ProcessSource::kPtrace;
    EXPECT_EQ(FindRaces(graph).list.size(), told ? 1u : 0u);
  }
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
    const auto all = Sorted(graph, FindRaces(graph));
    const Races near = FindRaces(graph, {.users = 0, .nearest = 12});
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
  LiveOn(scene, 2, 500);
  const BuildGraph graph = builder.Finish();
  const Races races = FindRaces(graph, {.nearest = 2});
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (const auto& [kind, reader, writer, gap] : Sorted(graph, races)) {
    pairs.emplace_back(reader, writer);
  }
  EXPECT_THAT(pairs, ElementsAre(std::pair(500, 300), std::pair(500, 301),
                                 std::pair(500, 1)));
  EXPECT_EQ(races.crowded_files, 1u);
  EXPECT_THAT(races.Notes(), Contains(HasSubstr("so many users")));
}

TEST(RacesTest, WhatThereIsNoRoomForIsCounted) {
  GraphBuilder builder;
  Scene scene(builder);
  for (uint32_t pid = 1; pid <= 10; ++pid) Read(scene, pid, "/a");
  Write(scene, 11, "/a");
  LiveOn(scene, 1, 10);
  const BuildGraph graph = builder.Finish();
  const Races races = FindRaces(graph, {.races = 4});
  EXPECT_EQ(races.list.size(), 4u);
  EXPECT_EQ(races.left_out, 6u);
  EXPECT_THAT(races.Notes(), Contains("6 more races are not listed"));
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
  const Races races = FindRaces(graph, limits);
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
  EXPECT_EQ(graph.Subtree(kProcesses - 1).size(), kProcesses);
  EXPECT_THAT(FindRaces(graph).list, IsEmpty());
}

}  // namespace
}  // namespace tracefs::build
