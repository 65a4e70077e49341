// One file access trace of BuildXL's while it is made: its blocks, and what
// they number. The process tracker decides what goes into which file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/path_table.h"
#include "tracefs/export/buildxl.h"
#include "tracefs/export/buildxl_rows.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/text/spool.h"

namespace tracefs::buildxl {

// Used by one thread. Memory: BuildXlOptions::memory_bytes for each block, some
// bytes for each path; the rest is in temporary files.
class File {
 public:
  struct ProcessLine {
    uint32_t pid = 0;
    uint32_t parent = 0;
    std::string_view exe;
    std::string_view line;  // its arguments
    uint64_t begin_ticks = 0;
    uint64_t end_ticks = 0;
    uint32_t code = 0;
  };
  struct RowFacts {
    uint32_t pid = 0;
    uint32_t error = 0;
    bool augmented = false;
    uint64_t correlation = 0;  // an access id, or 0
    uint32_t open_flags = kNotKnown;
    uint32_t attributes = kNotKnown;
  };

  // `paths` outlives it. `spool`: of all files that are made at a time; null:
  // each block has one of its own.
  File(const BuildXlOptions& options, build::PathTable& paths,
       const std::shared_ptr<SpoolFile>& spool);

  void AddProcess(const ProcessLine& process);
  // Returns the row's access id.
  uint64_t AddRow(Row row, std::string_view path, const RowFacts& facts);
  // The whole file; `marker` is the command line of process 0. Once.
  Status WriteTo(OutputBuffer* out, std::string_view marker);

  uint64_t rows() const { return rows_; }
  // kInvalid: a name that the format cannot hold, and escaping was forbidden.
  const Status& status() const { return status_; }

 private:
  using Names = std::vector<std::pair<uint8_t, std::string_view>>;

  std::string Safe(std::string_view text, std::string_view separators,
                   std::string_view what);
  uint64_t PathNumber(std::string_view path);
  void Copy(Spool* spool, OutputBuffer* out);

  const BuildXlOptions options_;
  build::PathTable& paths_;
  std::unordered_map<build::PathTable::Id, uint32_t> path_numbers_;
  Names operation_names_;  // as they were met
  Names access_names_;
  Spool processes_;
  Spool paths_text_;
  Spool operations_;
  Spool extras_;
  Spool attributes_;
  uint64_t process_count_ = 0;
  uint64_t rows_ = 0;
  Status status_;
};

}  // namespace tracefs::buildxl
