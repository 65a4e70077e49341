// copy_file_range, which cp, cat and install are today: what is written is made
// from what is read, also where an older trace does not name it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/build_scene.h"
#include "tracefs/build/dependencies.h"

namespace tracefs::build {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;
using Scene = test::BuildScene<GraphBuilder>;

// `cat in` with its output opened by somebody else, so that only the copy says
// where the bytes went.
struct Copying {
  GraphBuilder builder;
  Scene scene{builder};

  Copying() {
    scene.Running(1, "/bin/sh");
    scene.Run(1, 2, "/bin/cat in");
    FileStep in = scene.Step(2, Op::open_, "/src/in");
    in.fh = 70;
    in.inode = 7;
    in.size = 5000;
    in.has_attributes = true;
    scene.Take(in);
  }
  void Open(uint32_t pid, std::string_view path, uint64_t fh, uint64_t inode) {
    FileStep out = scene.Step(pid, Op::open_, path);
    out.flags = O_WRONLY | O_TRUNC;
    out.fh = fh;
    out.inode = inode;
    scene.Take(out);
  }
  FileStep Copy(uint64_t bytes, uint64_t offset_out = 0) {
    FileStep copy = scene.Step(2, Op::copy_file_range_, "/src/in");
    copy.fh = 70;
    copy.inode = 7;
    copy.fh_out = 71;
    copy.inode_out = 8;
    copy.size = 5000;
    copy.has_attributes = true;
    copy.bytes = bytes;
    copy.offset_out = offset_out;
    return copy;
  }
};

DependencyOptions Flow() {
  DependencyOptions options;
  options.closure = DependencyOptions::Closure::kFlow;
  return options;
}

Names SourcesOf(const BuildGraph& graph, std::string_view target) {
  Names names;
  DependencyFinder finder(graph, Flow());
  for (const PathId file : finder.Of(graph.paths().Find(target)).files) {
    names.push_back(graph.paths().Text(file));
  }
  return names;
}

Names MadeFrom(const BuildGraph& graph, std::string_view source) {
  Names names;
  DependencyFinder finder(graph, Flow());
  for (const PathId file : finder.MadeFrom(graph.paths().Find(source)).files) {
    names.push_back(graph.paths().Text(file));
  }
  return names;
}

TEST(CopiesTest, TheDestinationDependsOnTheSourceAndNotTheOtherWay) {
  Copying copying;
  FileStep copy = copying.Copy(100);
  copy.path2 = "/src/out";
  copying.scene.Take(copy);
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_THAT(SourcesOf(graph, "/src/out"), ElementsAre("/src/in"));
  EXPECT_THAT(MadeFrom(graph, "/src/in"), ElementsAre("/src/out"));
  EXPECT_THAT(SourcesOf(graph, "/src/in"), IsEmpty());
  EXPECT_EQ(graph.LastWriterOf(graph.paths().Find("/src/in")), kNobody);
  EXPECT_EQ(graph.unknown_copies(), 0u);
}

TEST(CopiesTest, OlderTraces_TheHandleSaysWhatWasWritten) {
  Copying copying;
  copying.Open(1, "/src/out", 71, 8);
  copying.scene.Take(copying.Copy(100));
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_THAT(SourcesOf(graph, "/src/out"), ElementsAre("/src/in"));
}

TEST(CopiesTest, OlderTraces_TheInodeSaysItByTheNameItHasNow) {
  Copying copying;
  copying.Open(1, "/src/tmp", 99, 8);
  FileStep move = copying.scene.Step(1, Op::rename_, "/src/tmp");
  move.path2 = "/src/out";
  move.inode = 8;
  copying.scene.Take(move);
  copying.scene.Take(copying.Copy(100));
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_THAT(MadeFrom(graph, "/src/in"), ElementsAre("/src/out"));
}

TEST(CopiesTest, OlderTraces_AnotherInodesHandleIsOfAnotherTrace) {
  Copying copying;
  copying.Open(1, "/src/other", 71, 9);
  copying.scene.Take(copying.Copy(100));
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_THAT(MadeFrom(graph, "/src/in"), IsEmpty());
  EXPECT_EQ(graph.unknown_copies(), 1u);
}

TEST(CopiesTest, OlderTraces_AClosedHandleAndARemovedNameSayNothing) {
  Copying copying;
  copying.Open(1, "/src/out", 71, 8);
  FileStep close = copying.scene.Step(1, Op::release_, "/src/out");
  close.fh = 71;
  copying.scene.Take(close);
  FileStep remove = copying.scene.Step(1, Op::unlink_, "/src/out");
  remove.inode = 8;
  copying.scene.Take(remove);
  copying.scene.Take(copying.Copy(100));
  EXPECT_EQ(copying.builder.Finish().unknown_copies(), 1u);
}

TEST(CopiesTest, SizesAreOfTheFileThatEachEndIs) {
  Copying copying;
  copying.Open(1, "/src/out", 71, 8);
  copying.scene.Take(copying.Copy(100));
  copying.scene.Take(copying.Copy(20, 100));
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_EQ(graph.Facts(graph.paths().Find("/src/in")).size, 5000u);
  EXPECT_EQ(graph.Facts(graph.paths().Find("/src/out")).size, 120u);
  // The destination's inode tells who wrote it again, not the source's.
  EXPECT_THAT(graph.double_writes(), ::testing::SizeIs(1));
  EXPECT_EQ(graph.double_writes()[0].kind, DoubleWrite::Kind::kRewritten);
}

TEST(CopiesTest, Malicious_OffsetsBeyondAllFilesDoNotWrapAround) {
  Copying copying;
  FileStep copy = copying.Copy(100, UINT64_MAX - 5);
  copy.path2 = "/src/out";
  copying.scene.Take(copy);
  const BuildGraph graph = copying.builder.Finish();
  EXPECT_EQ(graph.Facts(graph.paths().Find("/src/out")).size, UINT64_MAX);
}

}  // namespace
}  // namespace tracefs::build
