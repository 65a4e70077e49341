// ProcessWatch: what happens to all processes of the machine, for the tracers
// of a mount that keep process records.
//
// Two sources, of which the better one that can be had is taken:
//  - tracepoints (tracefs/daemon/tracepoints.h): every thread that begins,
//    every program that is run, every end, with exact times and flags. Beside
//    them the proc connector tells with which status processes end.
//  - the proc connector alone (proc_connector.h): the same without flags.
// Neither stops a process. The tracepoints have programs, their names and
// arguments, if these are not longer than some KiB (exec_stack.h). What else
// there is to say (working directory, control group, …) is read from /proc a
// moment later, is marked as late, and is missing where the process was gone by
// then.
//
// Both see the initial pid namespace, and work in it only. What the kernel had
// no room for is counted and told to the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/event/process_sink.h"
#include "tracefs/process/perf_ring.h"
#include "tracefs/process/proc_connector.h"
#include "tracefs/process/tracepoint_layout.h"

namespace tracefs {

enum class LookFor : uint8_t { kExe, kCwd, kEnvironment };

class ProcessWatch final : private ProcConnector::Observer {
 public:
  struct Opened {
    std::vector<UniqueFd> files;
    std::string layout;
  };
  struct Options {
    int proc = -1;  // a descriptor of /proc
    // Opens the tracepoints of a processor; ENODEV: there is none, or it
    // sleeps. Empty: there are none.
    std::function<Result<Opened>(int processor)> open = {};
    // Joined before the sandbox; null: there is none.
    std::unique_ptr<ProcConnector> connector = {};
    // Makes what finds out of a process what only some may see. May be empty,
    // and so may what it makes.
    using Look =
        std::function<std::optional<std::string>(uint32_t pid, LookFor what)>;
    std::function<Look()> make_look = {};
  };
  struct Stats {
    std::string source;  // "tracepoints", "proc connector", or "": it rests
    std::string why;     // not tracepoints
    uint64_t records = 0;
    uint64_t lost = 0;
  };

  ProcessWatch(Options options, ProcessSink& sink);
  ~ProcessWatch() override;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // To be called when somebody begins and ends to keep records. Fails, and need
  // not be ended then, where neither source is to be had. Threads: any.
  Status Start();
  // A record of every process that is there: for who has just begun to keep
  // them.
  void TellWhoRuns();
  void Stop();
  // Tells what has happened up to now, and no more, whoever still wants it.
  void End();

  Stats GetStats() const;

 private:
  // A moment as either source tells of it.
  struct Happening {
    ProcessRecord::Kind kind{};
    uint64_t time_ns = 0;
    uint32_t tid = 0;
    uint32_t pid = 0;
    uint32_t child_tid = 0;
    uint32_t child_pid = 0;  // 0: not told
    std::optional<uint64_t> clone_flags;
    std::optional<uint32_t> status;  // as of wait(2)
    std::optional<uint32_t> cpu;
    bool group_ended = false;
    std::string text;  // name, or program
    // kExec, from the tracepoints.
    std::optional<std::string> argv = {};
    std::string comm = {};
  };
  struct Ended {
    Happening what;
    uint64_t until_ns = 0;  // waits for its status as long as that
  };

  Status OpenTracepoints();
  void Rest();
  void Run();
  void TellRunning();
  void TakeRings();
  void DropRenamesOfExec();
  void TakeSample(ByteSpan record, uint32_t cpu);
  void TakeEnds(uint64_t now_ns);
  void Tell(const Happening& happening);
  void TellFork(const Happening& happening, ProcessRecord* record);
  bool Describe(ProcessRecord* record, struct ProcessTexts* texts);
  uint64_t StartOf(uint32_t pid, uint64_t time_ns, bool is_new);
  void Give(const ProcessRecord& record);
  void OnChange(uint32_t) override {}
  void OnLost() override;
  void OnEvent(const ProcEvent& event) override;

  Options options_;
  ProcessSink& sink_;
  Options::Look look_;

  mutable std::mutex start_mu_;
  int users_ = 0;       // guarded by start_mu_
  std::string source_;  // likewise
  std::string why_;     // likewise

  // Of the thread, while it runs.
  std::thread thread_;
  EventFd stop_;
  std::vector<PerfRing> rings_;
  std::vector<uint32_t> ring_cpus_;
  TracepointLayout layout_;
  std::vector<Happening> batch_;
  std::map<uint32_t, uint64_t> start_ticks_;  // by pid
  std::map<uint32_t, Ended> ended_;           // by tid; wait for their status
  // Whether the connector tells of ends beside the tracepoints.
  bool statuses_come_ = false;

  // What the connector's thread hands over.
  std::mutex told_mu_;
  std::vector<Happening> told_;            // guarded by told_mu_
  std::map<uint32_t, uint32_t> statuses_;  // likewise; by tid
  EventFd told_event_;
  std::atomic<bool> tell_who_runs_{false};
  // Written by the thread, read by the connector's, too.
  std::atomic<uint64_t> read_until_ns_{0};

  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> lost_{0};
};

}  // namespace tracefs
