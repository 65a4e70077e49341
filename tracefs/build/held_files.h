// HeldFiles: which files a process has opened to write, has not written to as
// far as the trace tells, and has not closed. What it runs next may write to
// them: the trace may have no writes, and nothing may be written.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "tracefs/build/path_table.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/step_paths.h"

namespace tracefs::build {

// Used by one thread. Memory: the files of processes that live.
class HeldFiles {
 public:
  void Note(ProcessId process, const FileStep& step, const StepPaths& paths);
  void Forget(ProcessId process) { held_.erase(process); }

  template <typename Visit>
  void ForEachNotWritten(ProcessId process, Visit visit) const {
    const auto found = held_.find(process);
    if (found == held_.end()) return;
    for (const auto& [path, held] : found->second) {
      if (!held.written) visit(path);
    }
  }

 private:
  struct Held {
    uint64_t fh = 0;  // of the last open; 0: not known
    bool written = false;
  };
  using Files = std::unordered_map<PathTable::Id, Held>;

  void NoteWrite(ProcessId process, PathTable::Id path);

  std::unordered_map<ProcessId, Files> held_;
};

}  // namespace tracefs::build
