// Which files a command line means: folders are replaced by what is in them,
// and the parts of a rotated trace are put together, whatever their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/frame.h"

namespace tracefs {

// Adds the regular files in a folder, by name, or the name itself ("-" stands
// for standard input). kInvalid for an empty folder.
Status AddFiles(const std::string& name, std::vector<std::string>* files);

// One trace.
struct TraceFiles {
  std::string name;  // for messages
  std::vector<std::string> paths;
};

// Puts parts of one rotated trace together, in order. What is not part of one,
// or cannot be read, is a trace by itself.
std::vector<TraceFiles> JoinParts(const std::vector<std::string>& files);

// `path` and all other parts of its trace that lie beside it, named as a mount
// names them ("t", "t.000001", …), in order: for who must not go by one part
// alone. The path itself where it is no part of any.
std::vector<std::string> AllParts(const std::string& path);

// The parts that now follow part `part` of a trace, without a gap between them,
// by names as above; `path` is, or was, one of its parts. The first is not the
// next one where that is gone.
std::vector<std::string> LaterParts(const std::string& path,
                                    const format::Serial& serial,
                                    uint64_t part);

}  // namespace tracefs
