// What else is known of a caller: what it runs, its arguments, its control
// group, its terminal.
//
// All of it is in files of /proc whose reading may wait for the caller, who
// waits for us (proc_reader.h says which, and why). So a thread of its own
// reads them, and the thread that serves the request waits for that thread, for
// 20 ms at most and only where there is hope: by then the answer is there, or
// is unknown for this request. Nothing is guessed, and no request waits for
// good.
//
// What a process runs may only be seen with CAP_SYS_PTRACE, which the daemon
// has not: it asks a helper (tracefs/daemon/looker.h).
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/base/worker.h"
#include "tracefs/event/event.h"

namespace tracefs {

// Which process they are of: one with the number of another began later.
struct KnownDetails : CallerDetails {
  uint64_t start_time = 0;  // clock ticks since boot; 0: not known
};

// Threads: any, but for Start and Stop.
class CallerDetailsReader {
 public:
  // The file that a process runs; nothing if that is not known. May wait.
  using FindExe = std::function<std::optional<std::string>(uint32_t pid)>;

  // `proc`: a descriptor of /proc that outlives this.
  explicit CallerDetailsReader(int proc) : proc_(proc) {}

  // Begins to read. One thread calls Start and Stop, each once.
  Status Start(FindExe find_exe);
  // May have to wait for a process that cannot be looked at.
  void Stop();

  // What was found out of the process with this serial while it lived, and has
  // not been forgotten since. Null: nobody asked, or it could not be known.
  std::shared_ptr<const KnownDetails> Kept(uint64_t serial);

  // How long a request waits, and somebody for whom no request does.
  static constexpr uint64_t kOfRequestNs = 20'000'000;
  static constexpr uint64_t kOfOthersNs = 500'000'000;

  // What is known of the process with this serial (CallerInfo), at `version`
  // (ProcessTable), which changes when it becomes another. `patience_ns` is
  // given to find it out. Null if it is not known.
  std::shared_ptr<const KnownDetails> Of(const CallerInfo& caller,
                                         uint64_t version, uint64_t now_ns,
                                         uint64_t patience_ns);

 private:
  struct Entry {
    uint64_t version = 0;
    uint64_t expires_ns = 0;
    std::shared_ptr<const KnownDetails> details;
  };
  struct Job {
    uint64_t serial = 0;
    uint64_t version = 0;
    uint32_t pid = 0;
  };
  static constexpr size_t kMaxEntries = 4096;
  static constexpr size_t kMaxJobs = 256;

  void Run();
  KnownDetails Read(uint32_t pid) const;

  const int proc_;
  FindExe find_exe_;

  std::mutex mu_;
  // Guarded by mu_.
  std::condition_variable done_;  // for those who wait
  uint64_t busy_since_ns_ = 0;    // 0: it waits for work
  uint64_t last_number_ = 0;
  std::vector<Job> jobs_;
  std::unordered_map<uint64_t, Entry> entries_;  // by serial
  Worker worker_;
};

}  // namespace tracefs
