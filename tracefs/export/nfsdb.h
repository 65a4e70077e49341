// CAS's Build Awareness Service: the raw .nfsdb, and .nfsdb.json with an entry
// for each program that a process ran.
//
// The raw format has no escaping either, but sizes; ends of lines are split off
// (Cont). In JSON bytes that are not UTF-8 are \xNN. Paths as they were given
// before links were followed are not known to a file system: there is no "o".
#pragma once

#include <memory>
#include <string>

#include "tracefs/build/build_config.h"
#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

struct NfsdbOptions {
  build::BuildConfig config;
  bool post = true;  // with what CAS adds afterwards: d l t m n
  // Files beside the export; empty: not wanted.
  std::string environment;
  std::string mounts;
  std::string stats;                      // what was lost
  size_t memory_bytes = size_t{1} << 20;  // of each part, before it is spooled
};

inline constexpr ExportChoice kNfsdbChoices[] = {
    {"config", "FILE", "patterns of programs and commands, as .bas_config"},
    {"post", "yes no", "also what CAS adds afterwards; default yes"},
    {"env", "FILE", "writes the environments there"},
    {"mounts", "FILE", "writes the mounts there"},
    {"stats", "FILE", "writes there what was lost"},
};

std::unique_ptr<Exporter> MakeNfsdbJson(OutputBuffer& out,
                                        const NfsdbOptions& options);
std::unique_ptr<Exporter> MakeNfsdbJsonExporter(OutputBuffer& out,
                                                const ExportOptions& options);

struct NfsdbRawOptions {
  bool names = false;   // also what processes and threads call themselves
  bool mounts = false;  // also what was mounted, before all
  size_t memory_bytes = size_t{1} << 20;  // before it is spooled
};

inline constexpr ExportChoice kNfsdbRawChoices[] = {
    {"comm", "yes no", "also names of processes (etrace -t); default no"},
    {"mounts", "yes no", "also the mounts (etrace -m); default no"},
};

std::unique_ptr<Exporter> MakeNfsdb(OutputBuffer& out,
                                    const NfsdbRawOptions& options);
std::unique_ptr<Exporter> MakeNfsdbExporter(OutputBuffer& out,
                                            const ExportOptions& options);

}  // namespace tracefs
