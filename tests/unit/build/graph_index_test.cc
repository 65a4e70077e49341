// A graph comes back from its index as it was, and from bytes that are none
// comes nothing, whatever they are.
#include "tracefs/build/graph_index.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/build_scene.h"
#include "tracefs/base/varint.h"
#include "tracefs/build/dependencies.h"
#include "tracefs/build/findings.h"
#include "tracefs/build/races.h"

namespace tracefs::build {
namespace {

using Scene = test::BuildScene<GraphBuilder>;
using Sections = std::array<std::string, kGraphSections>;

BuildGraph Made() {
  GraphBuilder builder;
  Scene scene(builder);
  scene.Running(1, "/bin/make all");
  scene.Fork(1, 2);
  scene.Exec(2, "/bin/cc -c a.c");
  scene.Open(2, "/src/a.c");
  scene.Do(2, Op::read_, "/src/a.c");
  scene.Open(2, "/src/a.o", O_WRONLY);
  scene.Do(2, Op::write_, "/src/a.o");
  scene.Miss(2, "/src/inc/gone.h");
  scene.Exit(2);
  scene.Fork(1, 3);
  scene.Exec(3, "/bin/ld a.o");
  scene.Open(3, "/src/a.o");
  scene.Do(3, Op::read_, "/src/a.o");
  scene.Open(3, "/src/prog", O_WRONLY);
  scene.Do(3, Op::write_, "/src/prog");
  scene.Fork(1, 4);
  scene.Open(4, "/src/prog", O_WRONLY);
  scene.Do(4, Op::write_, "/src/prog");
  scene.Exit(4, 1);
  return builder.Finish();
}

Sections Encoded(const BuildGraph& graph) {
  Sections sections;
  for (size_t i = 0; i < sections.size(); ++i) {
    sections[i] = EncodeGraph(graph, static_cast<GraphSection>(i));
  }
  return sections;
}

Result<BuildGraph> Decoded(const Sections& sections) {
  return DecodeGraph(
      {AsBytes(sections[0]), AsBytes(sections[1]), AsBytes(sections[2])});
}

// Asks everything: it would run past an end that is wrong.
size_t AskAll(const BuildGraph& graph) {
  size_t sum = FindAbsent(graph).size() + FindUnused(graph).size() +
               FindRaces(graph).list.size() + graph.double_writes().size();
  DependencyFinder finder(graph, {});
  for (PathId path = 0; path < graph.paths().size(); ++path) {
    sum += finder.Of(path).files.size() + finder.MadeFrom(path).files.size() +
           graph.paths().Text(path).size();
  }
  for (ProcessId id = 0; id < graph.processes().size(); ++id) {
    sum += graph.NameOfProcess(id).size() + graph.Subtree(id).size();
  }
  return sum;
}

TEST(GraphIndexTest, AGraphComesBackAsItWas) {
  const BuildGraph graph = Made();
  const Sections sections = Encoded(graph);
  const Result<BuildGraph> back = Decoded(sections);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(Encoded(*back), sections);
  EXPECT_EQ(AskAll(*back), AskAll(graph));
  const PathId prog = back->paths().Find("/src/prog");
  EXPECT_EQ(prog, graph.paths().Find("/src/prog"));
  EXPECT_EQ(back->LastWriterOf(prog), graph.LastWriterOf(prog));
  EXPECT_EQ(back->double_writes().size(), 1u);
  EXPECT_EQ(back->UsesOfPath(prog)[0].times->first_write_ns,
            graph.UsesOfPath(prog)[0].times->first_write_ns);
}

TEST(GraphIndexTest, TheCoreIsEnoughForDependencies) {
  const BuildGraph graph = Made();
  const Result<BuildGraph> back = Decoded({Encoded(graph)[0], "", ""});
  ASSERT_TRUE(back.ok());
  const PathId prog = graph.paths().Find("/src/prog");
  DependencyFinder all(graph, {});
  DependencyFinder core(*back, {});
  EXPECT_EQ(core.Of(prog).files, all.Of(prog).files);
  EXPECT_FALSE(core.Of(prog).files.empty());
  EXPECT_EQ(back->UsesOfPath(prog)[0].times, nullptr);
}

TEST(GraphIndexTest, AnEmptyGraphComesBack) {
  GraphBuilder builder;
  const Sections sections = Encoded(builder.Finish());
  const Result<BuildGraph> back = Decoded(sections);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(Encoded(*back), sections);
}

TEST(GraphIndexTest, Malicious_EveryCutIsRefused) {
  const Sections sections = Encoded(Made());
  for (size_t section = 0; section < sections.size(); ++section) {
    // Nothing of a section is none of it.
    for (size_t size = 1; size < sections[section].size(); ++size) {
      Sections cut = sections;
      cut[section].resize(size);
      EXPECT_FALSE(Decoded(cut).ok()) << section << " " << size;
    }
  }
}

TEST(GraphIndexTest, Malicious_EveryByteMayBeAnything) {
  const Sections sections = Encoded(Made());
  size_t refused = 0;
  for (size_t section = 0; section < sections.size(); ++section) {
    for (size_t at = 0; at < sections[section].size(); ++at) {
      for (const int byte : {0, 1, 2, 5, 0x7f, 0x80, 0xff}) {
        Sections wrong = sections;
        wrong[section][at] = static_cast<char>(byte);
        const Result<BuildGraph> back = Decoded(wrong);
        if (back.ok()) {
          AskAll(*back);
        } else {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

// Claims of many things, with nothing but zeros to make them of.
TEST(GraphIndexTest, Malicious_ManyThingsOfNothingTakeLittleMemory) {
  constexpr size_t kMany = size_t{8} << 20;
  const auto most_kib = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  // Four numbers; then of paths, images, processes, executions or kinds.
  for (size_t none = 4; none <= 8; ++none) {
    std::string core(none, '\0');
    AppendVarint(kMany, &core);
    core.append(kMany, '\0');
    const auto before = most_kib();
    EXPECT_FALSE(Decoded({core, "", ""}).ok()) << none;
    EXPECT_LT(most_kib() - before, 8 * static_cast<long>(kMany >> 10)) << none;
  }
}

TEST(GraphIndexTest, PiecesTellWhatTheyAreOf) {
  const BuildGraph graph = Made();
  const format::IndexedPart part = {
      .bytes = 1000, .frames = 7, .events = 12, .link = 99};
  Sections sections;
  WriteGraphIndex(graph, part, [&](ByteSpan messages) {
    format::MessageCursor in(messages);
    format::Message message;
    ASSERT_TRUE(in.Next(&message));
    format::IndexPiece piece;
    ASSERT_TRUE(
        ReadIndexPiece(message.arguments, format::ArgumentWidths(), &piece));
    EXPECT_EQ(piece.of, kGraphForm);
    EXPECT_EQ(piece.part, part);
    EXPECT_EQ(piece.pieces, 1u);
    ASSERT_LT(piece.section, sections.size());
    sections[piece.section] += AsText(piece.data);
    EXPECT_FALSE(in.Next(&message));
  });
  EXPECT_EQ(sections, Encoded(graph));
}

TEST(GraphIndexTest, OnlyWholeTracesAreIndexed) {
  format::ReadStats stats;
  EXPECT_TRUE(MayIndex(stats));
  for (uint64_t format::ReadStats::*const wrong :
       {&format::ReadStats::lost_events, &format::ReadStats::missing_blocks,
        &format::ReadStats::damaged_ranges, &format::ReadStats::changes,
        &format::ReadStats::unordered_events, &format::ReadStats::cut_bytes,
        &format::ReadStats::first_part, &format::ReadStats::opaque}) {
    format::ReadStats bad;
    bad.*wrong = 1;
    EXPECT_FALSE(MayIndex(bad));
  }
}

}  // namespace
}  // namespace tracefs::build
