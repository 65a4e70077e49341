// What a build tool was told of inputs and outputs, as it prints it, and how
// that differs from what was used.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/dependencies.h"

namespace tracefs {

// Names as the tool has them.
struct Declared {
  // Of each output its inputs, those of order only among them.
  std::map<std::string, std::set<std::string>> inputs;
};

// What ninja -t deps, -t query or -t graph printed, one after the other if all
// are there. kCorrupt, with the line, for anything else.
Result<Declared> ParseNinja(std::string_view text, const std::string& name);
// What make -pn printed.
Result<Declared> ParseMake(std::string_view text, const std::string& name);

// Both as absolute paths.
struct DeclaredDifference {
  struct Pair {
    std::string output;
    std::string input;
    std::string command;  // of who used it
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };
  std::vector<Pair> undeclared_inputs;
  std::vector<Pair> unused_inputs;       // declared, and not read
  std::vector<Pair> undeclared_outputs;  // made by a job of `output`
  std::vector<std::string> never_made;   // declared outputs
};

// `folder` is where relative names begin. Only files below `inside` count as
// inputs: what lies elsewhere belongs to the system.
DeclaredDifference CompareDeclared(const Declared& declared,
                                   const std::string& folder,
                                   const std::string& inside,
                                   const build::BuildGraph& graph,
                                   const build::DependencyOptions& options);

}  // namespace tracefs
