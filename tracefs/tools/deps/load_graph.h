// From traces to the graph of a build.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/build_graph.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/deps/trace_index.h"

namespace tracefs {

struct LoadedGraph {
  build::BuildGraph graph;
  std::string mount_point;          // of the first trace that says
  std::string source;               // that was mounted there, likewise
  std::vector<std::string> limits;  // what the traces cannot tell, a line each
  bool may_index = false;           // of one trace that was read
  uint64_t events = 0;              // likewise: operation messages, and blocks
  uint64_t blocks = 0;
  bool damaged = false;  // something is lost, cut or bad; it was told
};

// What is wrong with the traces is told to `err`, each line after the command's
// name. `mount_point`: null, or what to take in place of what the headers say.
// `index`: what is wanted of the trace's index, where it has one and nothing
// else is asked for; the graph is the same, but for what was left out.
Result<LoadedGraph> LoadGraph(const std::vector<std::string>& names,
                              const std::vector<std::string>& keys,
                              const std::string* mount_point, IndexWish index,
                              OutputBuffer& err);

}  // namespace tracefs
