// UseCollector: sums up what each execution did with each file.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tracefs/build/access.h"
#include "tracefs/build/path_table.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/step_paths.h"

namespace tracefs::build {

using PathId = PathTable::Id;

// What an execution did with a file.
struct FileUse {
  static constexpr uint8_t kNotOpened = 3;

  PathId path = PathTable::kNone;
  uint16_t access = kNoAccess;  // all of it
  // 0 only read, 1 only written, 2 both or opened for both, kNotOpened.
  uint8_t open_mode = kNotOpened;
  // Opened, listed, made or moved by name in this execution: not just used
  // through a handle that somebody else has opened.
  bool opened = false;
  uint8_t type = 0;  // st_mode >> 12; 0 = not known

  bool Has(uint16_t bits) const { return (access & bits) != 0; }
  // Opened for writing, and for reading; of a directory neither.
  bool Writes() const { return open_mode == 1 || open_mode == 2; }
  bool Reads() const { return open_mode == 0 || open_mode == 2; }
};

// When it did; monotonic ns, 0: never.
struct UseTimes {
  uint64_t first_read_ns = 0;
  uint64_t last_read_ns = 0;  // of its begin
  uint64_t first_write_ns = 0;
  uint64_t last_write_ns = 0;
  uint64_t first_absent_ns = 0;
};

// All that is collected of it.
struct Use : FileUse, UseTimes {
  uint64_t size = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;  // of its end
};

// Used by one thread. Memory: the files of executions that run.
class UseCollector {
 public:
  using Uses = std::unordered_map<PathId, Use>;

  void Add(ExecutionId execution, const FileStep& step, const StepPaths& paths);
  // Marks `path` as read, written, …; for what no operation says by itself.
  void Add(ExecutionId execution, PathId path, uint16_t access,
           uint64_t time_ns);
  // A file that the program before has opened to write, and may have left open.
  void Inherit(ExecutionId execution, PathId path, uint64_t time_ns);
  // What an execution did, which is over; in order of paths.
  std::vector<Use> Take(ExecutionId execution);

 private:
  std::unordered_map<ExecutionId, Uses> running_;
};

}  // namespace tracefs::build
