// SQLite: a database of operations. Tables:
//   ops        an operation a row: the columns of columns.h, but with numbers
//              in place of paths, callers' names and hosts
//   paths      id, path (escaped text), raw (its bytes, where they differ)
//   processes  id, host, cpid, cppid, csid, cpgid, cname
//   process_events  forks, programs run, exits
//   alarms     what rules said
//   counted    what aggregate counted
//   losses     trace, reason, count: what was not recorded or is missing
//   meta       trace, key, value: what the traces say of themselves
// and the view `operations`, which has every column by its name, and views
// named for what studies ask. One transaction; a number beyond 2^63 - 1 is
// stored as the negative one with the same bits.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr ExportChoice kSqliteChoices[] = {
    {"indices", "no yes",
     "indices on time, path, process and operation; default no"},
};

std::unique_ptr<Exporter> MakeSqliteExporter(OutputBuffer& out,
                                             const ExportOptions& options);

}  // namespace tracefs
