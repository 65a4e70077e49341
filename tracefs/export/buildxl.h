// BuildXL's File Access Trace File, versions 1, 2 and 3: which process touched
// which path, and how.
//
// The format has no escaping. What would break it (in paths '=' and ',', in
// programs ',' and '"', everywhere control characters and bytes that are not
// UTF-8) is written as %XX, with %25 for '%'; or the export fails. Process 0,
// whose command line tells whether the kernel's caches hid anything, has the
// operations without a known process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

struct BuildXlOptions {
  int version = 3;
  bool fail_on_escape = false;
  uint32_t root_pid = 0;  // only this process and its descendants; 0: all
  // Gets a file for each process tree, as BuildXL has one for each pip; empty:
  // one for all.
  std::string folder;
  size_t memory_bytes = size_t{1} << 20;  // of each block, before it is spooled
};

inline constexpr ExportChoice kBuildXlChoices[] = {
    {"version", "1 2 3", "of the format; default 3"},
    {"escape", "percent fail",
     "names that it cannot hold: as %XX (default), or none"},
    {"root-pid", "N", "only this process and its descendants"},
    {"split", "yes no",
     "a folder with a file for each process tree; default no"},
};

std::unique_ptr<Exporter> MakeBuildXl(OutputBuffer& out,
                                      const BuildXlOptions& options);
std::unique_ptr<Exporter> MakeBuildXlExporter(OutputBuffer& out,
                                              const ExportOptions& options);

}  // namespace tracefs
