// LLVM XRay logs, for `llvm-xray account|stack|graph|convert`: an operation is
// a call of the function of its name, on the thread that called. fdr is the
// flight recorder's format (versions 1, 3 and 5), basic the plain one (version
// 3). Times are ns (a cycle counter of 1 GHz). Operations of one thread that
// overlap without one lying in the other are on further threads, kLaneTids
// apart.
//
// In fdr, a custom event follows each entry: the operation as a line of JSON,
// which has its path, sizes, result and errno; and one each thing that happened
// to a process. basic has room for numbers only: an entry's arguments are the
// inode, and what the call returned, -errno where it failed. The processor is
// the one that a process record last named for the process, or the largest
// number there is where none did: operations do not tell theirs.
//
// The instrumentation map that gives functions their names is an ELF file,
// written beside it if --set map=FILE asks for it: `llvm-xray … -m FILE`.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

// More than there are thread ids.
inline constexpr uint32_t kLaneTids = 10'000'000;

inline constexpr ExportChoice kXrayFdrChoices[] = {
    {"version", "3 1 5", "of the format; default 3"},
    {"map", "FILE", "write the instrumentation map there"},
};
inline constexpr ExportChoice kXrayBasicChoices[] = {
    {"map", "FILE", "write the instrumentation map there"},
};

std::unique_ptr<Exporter> MakeXrayFdrExporter(OutputBuffer& out,
                                              const ExportOptions& options);
std::unique_ptr<Exporter> MakeXrayBasicExporter(OutputBuffer& out,
                                                const ExportOptions& options);

}  // namespace tracefs
