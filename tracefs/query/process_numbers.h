// ProcessNumbers: one number for each process behind operations. A pid that is
// given again is another process: told apart as build::ProcessTracker does it,
// by start times and by the records of processes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "tracefs/build/process_tracker.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/record.h"

namespace tracefs::query {

// Used by one thread. Memory: some bytes a process, for kMost of them; of
// others only the pid and the start time are looked at.
class ProcessNumbers {
 public:
  using Number = uint64_t;
  static constexpr Number kUnknown = 0;  // the operation has no pid
  static constexpr size_t kMost = size_t{1} << 18;

  struct Found {
    Number number = kUnknown;
    uint32_t pid = 0;
    // How many processes had the pid before, that are known.
    uint32_t earlier = 0;
  };

  // In order of time, between the operations.
  void Take(const ProcessRecord& record);
  // Whose operation it is; to be called in order of time.
  Found Of(const format::Record& record);

 private:
  class Listener final : public build::TrackerListener {
   public:
    explicit Listener(ProcessNumbers* all) : all_(*all) {}
    void ProcessBegan(const build::Process& process) override;
    void Did(const build::Process& process,
             const build::FileStep& step) override;
    void DidWithout(build::ProcessId id, uint32_t number,
                    const build::FileStep& step) override;

   private:
    ProcessNumbers& all_;
  };
  using Key = std::tuple<uint32_t, uint32_t, uint64_t>;  // machine, pid, start

  static Key KeyOf(const ProcessKey& key) {
    return {key.machine, key.pid, key.start_ticks};
  }
  bool HasRoom(const ProcessKey& key) const {
    return begun_ < kMost || tracker_.Knows(key);
  }
  Found FoundLate(const ProcessKey& key) const;

  // What was found last of the pids that have this place. What comes to be true
  // of a pid is told by its operations and records alone.
  struct Recent {
    ProcessKey key;
    Found found;
  };
  static constexpr size_t kRecent = 64;
  Recent& RecentOf(const ProcessKey& key) { return recent_[key.pid % kRecent]; }

  std::array<Recent, kRecent> recent_{};  // pid 0: none
  Listener listener_{this};
  build::ProcessTracker tracker_{listener_};
  std::map<Key, Found> by_start_;
  size_t begun_ = 0;
  Found found_;  // by the tracker
};

}  // namespace tracefs::query
