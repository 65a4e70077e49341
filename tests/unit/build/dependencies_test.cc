// The dependency sets of small builds, worked out by hand.
#include "tracefs/build/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/build_scene.h"
#include "tracefs/build/patterns.h"

namespace tracefs::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Closure = DependencyOptions::Closure;
using Names = std::vector<std::string>;
using Scene = test::BuildScene<GraphBuilder>;

// Names without "/src/", sorted.
Names NamesOf(const BuildGraph& graph, const std::vector<PathId>& files) {
  Names names;
  for (const PathId file : files) {
    std::string text = graph.paths().Text(file);
    if (text.starts_with("/src/")) text.erase(0, 5);
    names.push_back(std::move(text));
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint32_t PidOf(const BuildGraph& graph, ExecutionId id) {
  return graph.processes()[graph.ProcessOf(id)].key.pid;
}

// Each once.
std::vector<uint32_t> PidsOf(const BuildGraph& graph,
                             const std::vector<ExecutionId>& executions) {
  std::set<uint32_t> pids;
  for (const ExecutionId id : executions) pids.insert(PidOf(graph, id));
  return {pids.begin(), pids.end()};
}

struct Answer {
  Names files;
  std::vector<uint32_t> pids;
  Dependencies all;
};

Answer Ask(const BuildGraph& graph, const DependencyOptions& options,
           const std::string& target) {
  DependencyFinder finder(graph, options);
  Answer answer;
  answer.all = finder.Of(graph.paths().Find("/src/" + target));
  answer.files = NamesOf(graph, answer.all.files);
  answer.pids = PidsOf(graph, answer.all.executions);
  return answer;
}

// sh (1) runs: cc (2) makes a.o; build.sh (5) reads many files and writes the
// linker script; cat a.o lds (6) | sort (7) > prog.
BuildGraph ToyBuild() {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/make all");
  scene.Run(1, 2, "/usr/bin/cc -c a.c -o a.o");
  scene.Open(2, "/src/a.c");
  scene.Open(2, "/src/a.h");
  scene.Create(2, "/src/a.o");
  scene.Exit(2);
  scene.Run(1, 5, "/bin/bash /src/build.sh all");
  scene.Open(5, "/src/build.sh");
  scene.Open(5, "/src/many.txt");
  scene.Create(5, "/src/lds");
  scene.Exit(5);
  scene.Fork(1, 6);
  scene.Fork(1, 7);
  scene.Exec(6, "/bin/cat a.o lds");
  scene.Pipes(6, {{1, 4711, PipeEnd::kWrite}});
  scene.Create(7, "/src/prog");
  scene.Exec(7, "/usr/bin/sort");
  scene.Pipes(7, {{0, 4711, PipeEnd::kRead}});
  scene.Open(6, "/src/a.o");
  scene.Open(6, "/src/lds");
  scene.Exit(6);
  scene.Exit(7);
  return builder.Finish();
}

DependencyOptions Flow() {
  DependencyOptions options;
  options.closure = Closure::kFlow;
  return options;
}

TEST(DependenciesTest, FollowWritersAndPipesToTheSources) {
  const BuildGraph graph = ToyBuild();
  const Answer answer = Ask(graph, Flow(), "prog");
  EXPECT_THAT(answer.files,
              ElementsAre("a.c", "a.h", "a.o", "build.sh", "lds", "many.txt"));
  EXPECT_THAT(answer.pids, ElementsAre(2, 5, 6, 7));
  EXPECT_THAT(answer.all.no_inputs, IsEmpty());
}

TEST(DependenciesTest, WhatHappensAfterAProcessEndedCountsWhereItTouchesAFile) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/make all");
  scene.Run(1, 2, "/usr/bin/cc -c a.c -o a.o");
  scene.Create(2, "/src/a.o");
  scene.Exit(2);
  // The kernel closes its files later.
  scene.Do(2, Op::release_, "/src/a.o");
  scene.Do(2, Op::flush_, "/src/a.o");
  scene.Do(2, Op::write_, "/src/a.o");
  EXPECT_EQ(builder.Finish().without_caller(), 1u);
}

TEST(DependenciesTest, WithoutPipesTheWriterHasReadNothing) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.pipes = false;
  const Answer answer = Ask(graph, options, "prog");
  EXPECT_THAT(answer.files, IsEmpty());
  EXPECT_THAT(answer.pids, ElementsAre(7));
  ASSERT_EQ(answer.all.no_inputs.size(), 1u);
  EXPECT_EQ(PidOf(graph, answer.all.no_inputs[0].writer), 7u);
}

TEST(DependenciesTest, ExcludedFilesAreFoundButLeadNoFurther) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.exclude_files = {"*lds"};
  const Answer answer = Ask(graph, options, "prog");
  EXPECT_THAT(answer.files, ElementsAre("a.c", "a.h", "a.o", "lds"));
  EXPECT_THAT(answer.pids, ElementsAre(2, 6, 7));
}

TEST(DependenciesTest, NothingThatAnExcludedCommandReadCounts) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.exclude_commands = {"*build.sh*"};
  const Answer answer = Ask(graph, options, "prog");
  EXPECT_THAT(answer.files, ElementsAre("a.c", "a.h", "a.o", "lds"));
  EXPECT_THAT(answer.pids, ElementsAre(2, 6, 7));
}

TEST(DependenciesTest, NegatedPatternsExcludeWhatTheyDoNotMatch) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.exclude_files = {"*prog", "*a.o"};
  options.negate = true;
  EXPECT_THAT(Ask(graph, options, "prog").files,
              ElementsAre("a.c", "a.h", "a.o", "lds"));
}

TEST(DependenciesTest, AnExcludedTargetHasNone) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.exclude_files = {"*/prog"};
  EXPECT_THAT(Ask(graph, options, "prog").files, IsEmpty());
  EXPECT_FALSE(Ask(graph, Flow(), "a.c").all.written);
}

TEST(DependenciesTest, RulesAreForTheirTargetsOnly) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  ModuleRule rule;
  rule.targets = "*/prog";
  rule.exclude_commands = {"*build.sh*"};
  options.rules = {rule};
  EXPECT_THAT(Ask(graph, options, "prog").files,
              ElementsAre("a.c", "a.h", "a.o", "lds"));
  EXPECT_THAT(Ask(graph, options, "lds").files,
              ElementsAre("build.sh", "many.txt"));
}

TEST(DependenciesTest, DirectOnesDoNotGoThroughOtherModules) {
  const BuildGraph graph = ToyBuild();
  DependencyOptions options = Flow();
  options.direct = true;
  options.modules = {"*.o"};
  EXPECT_THAT(Ask(graph, options, "prog").files,
              ElementsAre("a.o", "build.sh", "lds", "many.txt"));
  // Without a word on modules every made file is one.
  options.modules.clear();
  EXPECT_THAT(Ask(graph, options, "prog").files, ElementsAre("a.o", "lds"));
}

TEST(DependenciesTest, PrecomputedBitsAreOfTheExecutionsThatMatch) {
  const BuildGraph graph = ToyBuild();
  const Names pattern = {"*build.sh*"};
  for (const GraphExecution& execution : graph.executions()) {
    const bool expected = graph.processes()[execution.process].key.pid == 5 &&
                          execution.index == 1;
    const std::string line = execution.CommandLine();
    EXPECT_EQ(MatchBits(pattern, line),
              expected ? "\x80" : std::string(1, '\0'));
    EXPECT_EQ(MatchBits(Names(9, "*build.sh*"), line),
              expected ? "\xff\x80" : std::string(2, '\0'));
  }
  EXPECT_EQ(MatchBits({}, "sh build.sh"), "");
  EXPECT_EQ(MatchBits({"a", "b", "a*"}, "ab"), "\x20");
}

TEST(DependenciesTest, ReverseIsTheOtherWayRound) {
  const BuildGraph graph = ToyBuild();
  DependencyFinder finder(graph, Flow());
  const auto of = [&](const std::string& source) {
    return NamesOf(graph,
                   finder.MadeFrom(graph.paths().Find("/src/" + source)).files);
  };
  EXPECT_THAT(of("a.h"), ElementsAre("a.o", "prog"));
  EXPECT_THAT(of("many.txt"), ElementsAre("lds", "prog"));
  EXPECT_THAT(of("prog"), IsEmpty());
}

// cc (2) runs cc1 (3), which writes /tmp/x.s outside the mount, and as (4),
// which reads it and writes a.o.
BuildGraph BrokenChain() {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/gcc -c a.c");
  scene.Run(2, 3, "/usr/lib/gcc/cc1 a.c");
  scene.Miss(3, "/src/inc/a.h");
  scene.Open(3, "/src/a.c");
  scene.Open(3, "/src/a.h");
  scene.Exit(3);
  scene.Run(2, 4, "/usr/bin/as -o a.o /tmp/x.s");
  scene.Create(4, "/src/a.o", O_RDWR | O_CREAT);
  scene.Exit(4);
  scene.Exit(2);
  scene.Run(1, 5, "/usr/bin/gcc -c b.c");
  scene.Run(5, 6, "/usr/lib/gcc/cc1 b.c");
  scene.Open(6, "/src/b.c");
  scene.Run(5, 7, "/usr/bin/as -o b.o /tmp/y.s");
  scene.Create(7, "/src/b.o", O_RDWR | O_CREAT);
  scene.Exit(5);
  return builder.Finish();
}

TEST(DependenciesTest, WhatPassesOutsideTheMountIsMendedByTheProcessTree) {
  const BuildGraph graph = BrokenChain();
  EXPECT_THAT(Ask(graph, Flow(), "a.o").files, IsEmpty());
  const Answer answer = Ask(graph, {}, "a.o");
  EXPECT_THAT(answer.files, ElementsAre("a.c", "a.h"));
  ASSERT_EQ(answer.all.no_inputs.size(), 1u);
  EXPECT_EQ(PidOf(graph, answer.all.no_inputs[0].writer), 4u);
  EXPECT_EQ(PidOf(graph, answer.all.no_inputs[0].instead), 2u);
  DependencyOptions tree;
  tree.closure = Closure::kTree;
  EXPECT_THAT(Ask(graph, tree, "b.o").files, ElementsAre("b.c"));
}

TEST(DependenciesTest, AWriterThatNobodyHelpsIsToldOf) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/date");
  scene.Create(2, "/src/stamp");
  scene.Run(1, 3, "/usr/bin/cat other");
  scene.Open(3, "/src/other");
  const BuildGraph graph = builder.Finish();
  const Answer answer = Ask(graph, {}, "stamp");
  EXPECT_THAT(answer.files, IsEmpty());
  ASSERT_EQ(answer.all.no_inputs.size(), 1u);
  EXPECT_EQ(answer.all.no_inputs[0].instead, kNobody);
}

// tracefs-run, and a shell that was not recorded, are told of by the fork of
// what they run: a script, whose commands are the jobs.
TEST(DependenciesTest, TheRunIsNoJobAlthoughItsParentIsToldOf) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Run(1, 2, "/bin/sh build.sh");
  scene.Open(2, "/src/build.sh");
  scene.Run(2, 3, "/bin/cat x");
  scene.Create(3, "/src/o1");
  scene.Open(3, "/src/x");
  scene.Exit(3);
  scene.Run(2, 4, "/bin/cat secret");
  scene.Open(4, "/src/secret");
  scene.Exit(4);
  scene.Run(2, 5, "/usr/bin/touch stamp");
  scene.Create(5, "/src/stamp");
  scene.Exit(5);
  scene.Create(2, "/src/log");
  scene.Exit(2);
  const BuildGraph graph = builder.Finish();
  const Answer answer = Ask(graph, {}, "stamp");
  EXPECT_THAT(answer.files, IsEmpty());
  ASSERT_EQ(answer.all.no_inputs.size(), 1u);
  EXPECT_EQ(answer.all.no_inputs[0].instead, kNobody);
  EXPECT_THAT(Ask(graph, {}, "o1").files, ElementsAre("x"));
  DependencyFinder finder(graph, {});
  EXPECT_THAT(finder.MadeFrom(graph.paths().Find("/src/secret")).files,
              IsEmpty());
  for (ExecutionId id = 0; id < graph.executions().size(); ++id) {
    EXPECT_EQ(finder.JobOf(id), id);
  }
}

// bash -c "cat many.txt other | sort > out.f", in a build that has read a lot.
TEST(DependenciesTest, AWrappedWriterCountsAsItsShell) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Open(1, "/src/Makefile");
  scene.Run(1, 2, "/bin/bash -c cat|sort>out.f");
  scene.Run(2, 3, "/bin/cat many.txt other");
  scene.Open(3, "/src/many.txt");
  scene.Open(3, "/src/other");
  scene.Run(2, 4, "/usr/bin/sort");
  scene.Create(4, "/src/out.f");
  const BuildGraph graph = builder.Finish();
  DependencyOptions options = Flow();
  EXPECT_THAT(Ask(graph, options, "out.f").files, IsEmpty());
  options.wrap = true;
  EXPECT_THAT(Ask(graph, options, "out.f").files,
              ElementsAre("many.txt", "other"));
}

// bash -c "echo x > in; exec cat other > out", as bash does it.
BuildGraph ExecAfterWriting(bool writes) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/bash -c echo>in;exec cat other");
  scene.Open(2, "/src/setup");
  scene.Create(2, "/src/in");
  if (writes) scene.Do(2, Op::write_, "/src/in");
  scene.Do(2, Op::release_, "/src/in");
  scene.Create(2, "/src/out");
  if (writes) scene.Do(2, Op::write_, "/src/out");
  scene.Exec(2, "/bin/cat other");
  scene.Open(2, "/src/other");
  if (writes) scene.Do(2, Op::write_, "/src/out");
  scene.Create(2, "/src/late");
  scene.Do(2, Op::release_, "/src/out");
  scene.Exit(2);
  return builder.Finish();
}

TEST(DependenciesTest, WhatWasWrittenBeforeAnExecIsNotMadeFromWhatIsReadAfter) {
  for (const bool writes : {true, false}) {
    const BuildGraph graph = ExecAfterWriting(writes);
    for (const Closure closure :
         {Closure::kFlow, Closure::kBoth, Closure::kTree}) {
      DependencyOptions options;
      options.closure = closure;
      const auto files = [&](const char* of) {
        return Ask(graph, options, of).files;
      };
      EXPECT_THAT(files("in"), ElementsAre("setup")) << writes;
      // It stayed open, and was written by both.
      EXPECT_THAT(files("out"), ElementsAre("other", "setup")) << writes;
      // What the program before has read may be in the arguments.
      EXPECT_THAT(files("late"), ElementsAre("other", "setup")) << writes;
      DependencyFinder finder(graph, options);
      const auto made = [&](const char* of) {
        return NamesOf(
            graph,
            finder.MadeFrom(graph.paths().Find("/src/" + std::string(of)))
                .files);
      };
      EXPECT_THAT(made("other"), ElementsAre("late", "out"));
      EXPECT_THAT(made("setup"), ElementsAre("in", "late", "out"));
    }
    const Answer answer = Ask(graph, {}, "in");
    ASSERT_EQ(answer.all.steps.size(), 1u);
    EXPECT_EQ(graph.NameOfExecution(answer.all.steps[0].writer),
              "/bin/bash -c echo>in;exec cat other (2)");
    EXPECT_EQ(graph.LastWriterOf(graph.paths().Find("/src/in")),
              answer.all.steps[0].writer);
  }
}

// gen (3) is run by the shell, cat (2) by what gave way to it.
TEST(DependenciesTest, WhatAJobRunsAfterAnExecIsNotOfWhatItRanBefore) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/sh -c gen;exec driver");
  scene.Run(2, 3, "/bin/gen");
  scene.Create(3, "/src/in");
  scene.Exit(3);
  scene.Exec(2, "/bin/driver");
  scene.Run(2, 4, "/bin/cat");
  scene.Open(4, "/src/other");
  scene.Exit(4);
  scene.Run(2, 5, "/bin/touch");
  scene.Create(5, "/src/stamp");
  scene.Exit(5);
  scene.Exit(2);
  const BuildGraph graph = builder.Finish();
  for (const bool tree : {false, true}) {
    DependencyOptions options;
    if (tree) options.closure = Closure::kTree;
    EXPECT_THAT(Ask(graph, options, "in").files, IsEmpty());
    EXPECT_THAT(Ask(graph, options, "stamp").files, ElementsAre("other"));
    DependencyFinder finder(graph, options);
    EXPECT_THAT(
        NamesOf(graph, finder.MadeFrom(graph.paths().Find("/src/other")).files),
        ElementsAre("stamp"));
  }
}

// $(shell cat foo), of a make that a shell gave way to.
TEST(DependenciesTest,
     WhatComesThroughAPipeOfTheNextProgramIsNotOfTheOneBefore) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/sh");
  scene.Run(1, 2, "/bin/bash -c echo>in;exec make");
  scene.Create(2, "/src/in");
  scene.Do(2, Op::release_, "/src/in");
  scene.Exec(2, "/usr/bin/make");
  scene.Run(2, 3, "/bin/cat foo");
  scene.Pipes(3, {{1, 4711, PipeEnd::kWrite}});
  scene.Open(3, "/src/foo");
  scene.Exit(3);
  scene.Create(2, "/src/out");
  scene.Exit(2);
  const BuildGraph graph = builder.Finish();
  EXPECT_THAT(Ask(graph, Flow(), "in").files, IsEmpty());
  EXPECT_THAT(Ask(graph, Flow(), "out").files, ElementsAre("foo"));
  DependencyFinder finder(graph, Flow());
  EXPECT_THAT(
      NamesOf(graph, finder.MadeFrom(graph.paths().Find("/src/foo")).files),
      ElementsAre("out"));
}

// A shell forks with the command line of its own.
TEST(DependenciesTest, WhoIsRunByAnExcludedCommandIsNotExcluded) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/sh -c cc");
  scene.Run(2, 3, "/usr/bin/cc -c a.c");
  scene.Open(3, "/src/a.c");
  scene.Create(3, "/src/a.o");
  const BuildGraph graph = builder.Finish();
  DependencyOptions options = Flow();
  options.exclude_commands = {"/bin/sh *"};
  EXPECT_THAT(Ask(graph, options, "a.o").files, ElementsAre("a.c"));
}

// cc (2) makes a.s and reads it again, all in one job.
BuildGraph OwnProducts() {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/gcc a.c");
  scene.Run(2, 3, "/usr/lib/cc1 a.c");
  scene.Open(3, "/src/a.c");
  scene.Create(3, "/src/a.s");
  scene.Exit(3);
  scene.Run(2, 4, "/usr/bin/as a.s");
  scene.Open(4, "/src/a.s");
  scene.Create(4, "/src/a.o");
  scene.Exit(4);
  scene.Exit(2);
  scene.Run(1, 5, "/usr/bin/wc a.s");
  scene.Open(5, "/src/a.s");
  scene.Create(5, "/src/lines");
  return builder.Finish();
}

// For every pair of files: in the dependencies of the one is the other exactly
// if in what is made from the other is the one.
TEST(DependenciesTest, ForwardAndReverseAgreeOnEveryPairOfFiles) {
  std::vector<BuildGraph> graphs;
  graphs.push_back(ToyBuild());
  graphs.push_back(BrokenChain());
  graphs.push_back(OwnProducts());
  graphs.push_back(ExecAfterWriting(true));
  for (size_t number = 0; number < graphs.size(); ++number) {
    const BuildGraph& graph = graphs[number];
    for (const Closure closure :
         {Closure::kFlow, Closure::kBoth, Closure::kTree}) {
      for (const bool wrap : {false, true}) {
        DependencyOptions options;
        options.closure = closure;
        options.wrap = wrap;
        DependencyFinder finder(graph, options);
        for (PathId a = 0; a < graph.paths().size(); ++a) {
          const std::vector<PathId> deps = finder.Of(a).files;
          for (PathId b = 0; b < graph.paths().size(); ++b) {
            if (a == b) continue;
            const std::vector<PathId> made = finder.MadeFrom(b).files;
            EXPECT_EQ(std::count(deps.begin(), deps.end(), b),
                      std::count(made.begin(), made.end(), a))
                << number << " " << graph.paths().Text(a) << " "
                << graph.paths().Text(b) << " " << static_cast<int>(closure)
                << wrap;
          }
        }
      }
    }
  }
}

TEST(DependenciesTest, MovesAndLinksAreFlowButALinkOnTheWayIsNone) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/cc");
  scene.Open(2, "/src/a.c");
  scene.Create(2, "/src/tmp1");
  scene.Run(1, 3, "/bin/mv tmp1 a.o");
  scene.Do(3, Op::rename_, "/src/tmp1", "/src/a.o");
  scene.Run(1, 4, "/bin/ln a.o b.o");
  scene.Do(4, Op::link_, "/src/a.o", "/src/b.o");
  scene.Run(1, 5, "/bin/ln -s b.o c.o");
  scene.Do(5, Op::symlink_, "/src/c.o");
  scene.Run(1, 6, "/usr/bin/ld");
  scene.Do(6, Op::readlink_, "/src/c.o");
  scene.Open(6, "/src/b.o");
  scene.Create(6, "/src/prog");
  const BuildGraph graph = builder.Finish();
  EXPECT_THAT(Ask(graph, Flow(), "prog").files,
              ElementsAre("a.c", "a.o", "b.o", "tmp1"));
  // A path walk reads it, and opens what it leads to.
  const PathId link = graph.paths().Find("/src/c.o");
  for (const BuildGraph::PathUse& use : graph.UsesOfPath(link)) {
    EXPECT_FALSE(use.use->Reads());
  }
}

// sed -i reads what another one made, and moves a file of its own over it.
TEST(DependenciesTest, WhatIsEditedInPlaceIsMadeFromWhatItWas) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/gen");
  scene.Open(2, "/src/in");
  scene.Create(2, "/src/out");
  scene.Exit(2);
  scene.Run(1, 3, "/bin/sed -i s/a/b/ out");
  scene.Open(3, "/src/out");
  scene.Create(3, "/src/sedAB");
  scene.Do(3, Op::rename_, "/src/sedAB", "/src/out");
  scene.Exit(3);
  scene.Run(1, 4, "/bin/other");
  scene.Open(4, "/src/unrelated");
  scene.Exit(4);
  const BuildGraph graph = builder.Finish();
  const Answer answer = Ask(graph, {}, "out");
  EXPECT_THAT(answer.files, ElementsAre("in"));
  EXPECT_THAT(answer.all.no_inputs, IsEmpty());
  // The name leads from nothing to nothing.
  DependencyFinder finder(graph, {});
  EXPECT_THAT(finder.MadeFrom(graph.paths().Find("/src/sedAB")).files,
              IsEmpty());
}

// A wrapper makes a name, and who it runs writes the file.
TEST(DependenciesTest, ATemporaryThatAnotherOneWroteIsFollowed) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/bin/wrapper");
  scene.Create(2, "/src/tmp");
  scene.Run(2, 3, "/usr/bin/cc -o tmp");
  scene.Open(3, "/src/a.c");
  scene.Create(3, "/src/tmp");
  scene.Exit(3);
  scene.Do(2, Op::rename_, "/src/tmp", "/src/a.o");
  scene.Exit(2);
  EXPECT_THAT(Ask(builder.Finish(), Flow(), "a.o").files,
              ElementsAre("a.c", "tmp"));
}

TEST(DependenciesTest, FilesInAMovedDirectoryKeepTheirOrigin) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/cc");
  scene.Open(2, "/src/a.c");
  scene.Create(2, "/src/tmp/x/a.o");
  scene.Run(1, 3, "/bin/mv tmp out");
  FileStep move = scene.Step(3, Op::rename_, "/src/tmp");
  move.path2 = "/src/out";
  move.mode = S_IFDIR | 0755;
  scene.Take(move);
  const BuildGraph graph = builder.Finish();
  EXPECT_THAT(Ask(graph, Flow(), "out/x/a.o").files,
              ElementsAre("a.c", "tmp/x/a.o"));
  EXPECT_TRUE(graph.Facts(graph.paths().Find("/src/tmp/x/a.o")).gone);
}

FileStep Exchange(Scene& scene, uint32_t pid, std::string_view one,
                  std::string_view other, uint32_t mode) {
  FileStep step = scene.Step(pid, Op::rename_, one);
  step.path2 = other;
  step.flags = RENAME_EXCHANGE;
  step.mode = mode;
  return step;
}

TEST(DependenciesTest, NamesThatAreExchangedHaveWhatTheOtherOneHad) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/cc old.c");
  scene.Open(2, "/src/old.c");
  scene.Create(2, "/src/out");
  scene.Run(1, 3, "/bin/cat in");
  scene.Open(3, "/src/in");
  scene.Create(3, "/src/tmp");
  scene.Run(1, 4, "/usr/bin/exch tmp out");
  scene.Take(Exchange(scene, 4, "/src/tmp", "/src/out", S_IFREG | 0644));
  scene.Run(1, 5, "/bin/cat tmp");
  scene.Open(5, "/src/tmp");
  scene.Create(5, "/src/oldcopy");
  scene.Run(1, 6, "/bin/cat out");
  scene.Open(6, "/src/out");
  scene.Create(6, "/src/newcopy");
  const BuildGraph graph = builder.Finish();
  for (const Closure closure : {Closure::kFlow, Closure::kBoth}) {
    DependencyOptions options;
    options.closure = closure;
    for (const char* copy : {"oldcopy", "newcopy"}) {
      const Answer answer = Ask(graph, options, copy);
      EXPECT_THAT(answer.files, ElementsAre("in", "old.c", "out", "tmp"));
      EXPECT_THAT(answer.all.no_inputs, IsEmpty());
    }
  }
  for (const char* name : {"/src/tmp", "/src/out"}) {
    EXPECT_FALSE(graph.Facts(graph.paths().Find(name)).gone) << name;
  }
}

// One command makes the file and puts it in the place of what was there.
TEST(DependenciesTest, WhatAJobGetsByAnExchangeIsNotItsOwn) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/cc old.c");
  scene.Open(2, "/src/old.c");
  scene.Create(2, "/src/out");
  scene.Run(1, 3, "/bin/sh swap.sh");
  scene.Run(3, 4, "/bin/cat in");
  scene.Open(4, "/src/in");
  scene.Create(4, "/src/tmp");
  scene.Run(3, 5, "/usr/bin/exch tmp out");
  scene.Take(Exchange(scene, 5, "/src/tmp", "/src/out", S_IFREG | 0644));
  scene.Run(3, 6, "/bin/cat tmp");
  scene.Open(6, "/src/tmp");
  scene.Create(6, "/src/oldcopy");
  const BuildGraph graph = builder.Finish();
  DependencyOptions options;
  options.closure = Closure::kTree;
  EXPECT_THAT(Ask(graph, options, "oldcopy").files,
              ::testing::IsSupersetOf({"in", "old.c", "out"}));
}

TEST(DependenciesTest, FilesInExchangedDirectoriesComeFromTheOtherOne) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  scene.Run(1, 2, "/usr/bin/cc");
  scene.Open(2, "/src/a.c");
  scene.Create(2, "/src/one/x/both");
  scene.Create(2, "/src/one/a");
  scene.Run(1, 3, "/usr/bin/cc");
  scene.Open(3, "/src/b.c");
  scene.Create(3, "/src/two/x/both");
  scene.Create(3, "/src/two/b");
  scene.Run(1, 4, "/usr/bin/exch one two");
  scene.Take(Exchange(scene, 4, "/src/one", "/src/two", S_IFDIR | 0755));
  const BuildGraph graph = builder.Finish();
  const auto files = [&](const char* of) {
    return Ask(graph, Flow(), of).files;
  };
  EXPECT_THAT(files("two/a"), ::testing::IsSupersetOf({"a.c", "one/a"}));
  EXPECT_THAT(files("one/b"), ::testing::IsSupersetOf({"b.c", "two/b"}));
  EXPECT_THAT(files("one/x/both"),
              ::testing::IsSupersetOf({"b.c", "two/x/both"}));
  EXPECT_THAT(files("two/x/both"),
              ::testing::IsSupersetOf({"a.c", "one/x/both"}));
  for (const auto& [name, gone] :
       std::vector<std::pair<std::string, bool>>{{"one", false},
                                                 {"two", false},
                                                 {"one/x/both", false},
                                                 {"two/x/both", false},
                                                 {"one/a", true},
                                                 {"two/b", true},
                                                 {"two/a", false},
                                                 {"one/b", false}}) {
    const PathId path = graph.paths().Find("/src/" + name);
    ASSERT_NE(path, PathTable::kNone) << name;
    EXPECT_EQ(graph.Facts(path).gone, gone) << name;
  }
}

// A log that every command of a long build appends to.
TEST(DependenciesTest, EachOfVeryManyWritersIsFoundOnce) {
  constexpr uint32_t kWriters = 20'000;
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/usr/bin/make");
  for (uint32_t i = 0; i < kWriters; ++i) {
    const uint32_t pid = i + 2;
    scene.Run(1, pid, "/usr/bin/cc");
    scene.Open(pid, "/src/in" + std::to_string(i));
    scene.Open(pid, "/src/log", O_WRONLY | O_APPEND);
    scene.Open(pid, "/src/log", O_WRONLY | O_APPEND);
    scene.Exit(pid);
  }
  const BuildGraph graph = builder.Finish();
  const Answer answer = Ask(graph, {}, "log");
  EXPECT_EQ(answer.files.size(), kWriters);
  const std::vector<ExecutionId>& found = answer.all.executions;
  EXPECT_EQ(found.size(), kWriters);
  EXPECT_EQ(std::set<ExecutionId>(found.begin(), found.end()).size(), kWriters);
  EXPECT_EQ(graph.LastWriterOf(graph.paths().Find("/src/log")), found.back());
}

// Each could have written what each other one read: nine million pairs.
TEST(DependenciesTest, Malicious_APipeThatThousandsHoldLeadsNowhere) {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/sh");
  for (uint32_t pid = 2; pid < 3000; ++pid) {
    scene.Run(1, pid, "/bin/cat");
    scene.Pipes(pid, {{0, 4711, PipeEnd::kRead}, {1, 4711, PipeEnd::kWrite}});
  }
  const BuildGraph graph = builder.Finish();
  EXPECT_THAT(graph.pipes(), IsEmpty());
  EXPECT_EQ(graph.crowded_pipes(), 1u);
}

TEST(DependenciesTest, ATraceWithoutProcessRecordsStillAnswers) {
  GraphBuilder builder;
  Scene scene(builder);
  const auto step = [&](uint32_t pid, uint32_t ppid, Op op, const char* path,
                        uint32_t flags) {
    FileStep s = scene.Step(pid, op, path);
    s.ppid = ppid;
    s.flags = flags;
    s.comm = "x";
    scene.Take(s);
  };
  step(3, 2, Op::open_, "/src/a.c", O_RDONLY);
  step(4, 2, Op::create_, "/src/a.o", O_WRONLY);
  step(2, 1, Op::getattr_, "/src/a.o", 0);
  const BuildGraph graph = builder.Finish();
  EXPECT_FALSE(graph.has_process_records());
  EXPECT_THAT(Ask(graph, {}, "a.o").files, ElementsAre("a.c"));
}

}  // namespace
}  // namespace tracefs::build
