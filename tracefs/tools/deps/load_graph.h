// From traces to the graph of a build.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/build_graph.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

struct LoadedGraph {
  build::BuildGraph graph;
  std::string mount_point;          // of the first trace that says
  std::string source;               // that was mounted there, likewise
  std::vector<std::string> limits;  // what the traces cannot tell, a line each
  bool damaged = false;  // something is lost, cut or bad; it was told
};

// What is wrong with the traces is told to `err`, each line after the command's
// name. `mount_point`: null, or what to take in place of what the headers say.
Result<LoadedGraph> LoadGraph(const std::vector<std::string>& names,
                              const std::vector<std::string>& keys,
                              const std::string* mount_point,
                              OutputBuffer& err);

}  // namespace tracefs
