// Dependencies as lists, graphs and the files of build tools. Names are as they
// are in list, depfile and dyndep but for what these escape; JSON has \xNN for
// bytes that are not UTF-8.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/build_config.h"
#include "tracefs/build/dependencies.h"

namespace tracefs {

struct Answered {
  build::PathId target = build::PathTable::kNone;
  build::Dependencies dependencies;
};

// Sorted by path; with `sources` only files that no process wrote.
std::vector<build::PathId> FilesOf(const build::BuildGraph& graph,
                                   const Answered& answer, bool sources);

std::string ListText(const build::BuildGraph& graph, const Answered& answer,
                     bool sources);
std::string JsonText(const build::BuildGraph& graph,
                     const std::vector<Answered>& answers, bool sources);
std::string DotText(const build::BuildGraph& graph,
                    const std::vector<Answered>& answers, bool reverse);
// kInvalid for a name that the format cannot hold: one with a line end.
Result<std::string> DepfileText(const build::BuildGraph& graph,
                                const Answered& answer, bool sources);
Result<std::string> DyndepText(const build::BuildGraph& graph,
                               const std::vector<Answered>& answers,
                               const std::string& folder, bool sources);
// `untold`: how many may have compiled something that nothing tells of.
std::string CompileCommands(const build::BuildGraph& graph,
                            const build::BuildConfig& config, size_t* untold);

// "a.o: as -o a.o (77) read nothing that was traced; …", of the first few;
// long commands without their middle.
std::vector<std::string> NoInputLines(const build::BuildGraph& graph,
                                      const build::Dependencies& dependencies);

}  // namespace tracefs
