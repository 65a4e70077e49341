// FioPass: goes through an iolog of fio(1) and makes events of its lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/import/file_tree.h"
#include "tracefs/import/tally.h"
#include "tracefs/import/trace_output.h"

namespace tracefs::import {

// What the first pass finds of a file: what was read before it was written.
using SizesBefore = std::map<std::string, uint64_t, std::less<>>;

// Used by one thread.
class FioPass {
 public:
  static constexpr uint64_t kFirstNs =
      1'000'000'000;  // the begin of all iologs
  static constexpr size_t kMostFiles = 200'000;

  // `sizes` is filled in where there is no `out`, and used where there is. All
  // outlive the pass.
  FioPass(SizesBefore* sizes, TraceOutput* out, ImportCounts* counts);

  // kCorrupt where the first line is not that of an iolog.
  Status Take(std::string_view line);
  Status Finish();

 private:
  struct File {
    NodeId node = kNoNode;  // none yet
    uint64_t fh = 0;        // 0: not open
    uint64_t written = 0;   // to there
  };

  Status Act(std::string_view name, std::string_view action, uint64_t offset,
             uint64_t length);
  Status Introduce(std::string_view name, File* file);
  Status Open(std::string_view name, File* file);
  Status Close(File* file);
  Event Make(Op op, const File& file) const;
  Status Emit(Event* event);

  FileTree tree_;
  SizesBefore* const sizes_;
  TraceOutput* const out_;
  ImportCounts* const counts_;
  std::map<std::string, File, std::less<>> files_;
  int version_ = 0;
  uint64_t now_ns_ = kFirstNs;
  uint64_t waited_ns_ = kFirstNs;
  uint64_t next_fh_ = 1;
};

}  // namespace tracefs::import
