// Fuzz target: the index of a trace, which answers questions in place of the
// trace. Four bytes each say how long its first two sections are; what follows
// them is the third.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tracefs/build/dependencies.h"
#include "tracefs/build/findings.h"
#include "tracefs/build/graph_index.h"
#include "tracefs/build/races.h"

namespace {

using namespace tracefs;         // NOLINT: a fuzz target
using namespace tracefs::build;  // NOLINT

// It would run past an end that is wrong.
void AskAll(const BuildGraph& graph) {
  static_cast<void>(FindAbsent(graph));
  static_cast<void>(FindUnused(graph));
  if (graph.has_times()) static_cast<void>(FindRaces(graph));
  DependencyFinder finder(graph, {});
  for (PathId path = 0; path < graph.paths().size(); ++path) {
    static_cast<void>(finder.Of(path));
    static_cast<void>(finder.MadeFrom(path));
  }
  for (ProcessId id = 0; id < graph.processes().size(); ++id) {
    static_cast<void>(graph.NameOfProcess(id));
    static_cast<void>(graph.Subtree(id));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 8;
  if (size < kHead) return 0;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  ByteSpan rest = bytes.subspan(kHead);
  std::array<ByteSpan, kGraphSections> sections;
  for (size_t i = 0; i < 2; ++i) {
    const size_t length =
        std::min<size_t>(LoadLe<uint32_t>(bytes.data() + 4 * i), rest.size());
    sections[i] = rest.first(length);
    rest = rest.subspan(length);
  }
  sections[2] = rest;
  const Result<BuildGraph> graph = DecodeGraph(sections);
  if (!graph.ok()) {
    if (graph.status().message().empty()) std::abort();
    return 0;
  }
  AskAll(*graph);
  // What it is made of comes back as it was.
  const std::string core = EncodeGraph(*graph, GraphSection::kCore);
  const Result<BuildGraph> again = DecodeGraph({AsBytes(core), {}, {}});
  if (!again.ok() || EncodeGraph(*again, GraphSection::kCore) != core) {
    std::abort();
  }
  return 0;
}
