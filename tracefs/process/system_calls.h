// Which system call a request came from.
//
// A caller waits for us inside a call: the last one that its thread entered.
// /proc/TID/syscall would say so, but reading it can wait for the caller, who
// waits for us. The kernel's tracepoints say it without anybody waiting: each
// processor keeps the newest entries in a ring (tracefs/daemon/tracepoints.h),
// and who asks goes through them, newest first, until the thread comes up. They
// are open only while somebody wants to know.
//
// What the rings do not prove is unknown, and counted, never guessed:
//  - the call is older than what a ring still holds;
//  - since its last call the thread was sent a signal: it may be dying of it;
//  - it is a call of a 32-bit program, whose numbers are others;
//  - reads and writes of a thread that has used io_submit(2) or io_uring: they
//    go on when the call has ended.
// The daemon's own threads are left out by the kernel's filter: their calls
// would be most of all, and cost a fifth of the requests' time. Of a thread
// that is new, or a number that was a thread's and is another's now, the kernel
// is told by and by: a filter is set once and for all, so other tracepoints
// take the place of these. Not asked about at all are requests that come
// without a caller, and pages that come into the page cache: read-ahead, too,
// goes on without the call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/worker.h"
#include "tracefs/process/perf_ring.h"
#include "tracefs/process/tracepoint_layout.h"

namespace tracefs {

// The numbers that count in a ring of calls.
struct CallLayout {
  uint16_t enter = 0;   // of the tracepoint of entries
  uint16_t signal = 0;  // of that of signals
  TracepointField id;   // of an entry: the number of the call

  // False if something is missing.
  static bool Find(const TracepointLayout& layout, CallLayout* found);
};

// A ring as it was at some moment, for FindCall.
struct CallRing {
  RingBytes bytes;
  uint64_t newest = 0;
};

enum class CallFound : uint8_t {
  kCall,
  kNone,      // the thread is in none of the rings
  kTooOld,    // a ring may have held a newer one, and does no more
  kSignal,    // a signal came after it
  kCompat,    // a number of another table
  kNonsense,  // a ring holds what is no record
};
// The newest thing that a thread did by these rings, and its number. `checked`:
// the position up to which ring i was looked at; what lies before it must still
// be there afterwards. Goes through `limit` records at most.
CallFound FindCall(std::span<const CallRing> rings, const CallLayout& layout,
                   uint32_t tid, size_t limit, uint32_t* call,
                   std::span<uint64_t> checked);

class SystemCalls {
 public:
  struct Opened {
    std::vector<UniqueFd> files;
    std::string layout;
  };
  // Opens the tracepoints of a processor. kSystem with ENODEV where there is
  // none of this number, or it sleeps.
  using Open = std::function<Result<Opened>(int processor)>;
  struct Stats {
    uint64_t found = 0;
    uint64_t unknown = 0;
    bool open = false;
  };

  // `open` is called by Start. Empty: it fails.
  explicit SystemCalls(Open open) : open_(std::move(open)) {}
  // No thread may be in CallOf.
  ~SystemCalls();
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  // To be called when somebody begins and ends to need them. Fails, and need
  // not be ended then, where tracepoints are not to be had. Threads: any.
  Status Start();
  void Stop();

  // The call that thread `tid`, which waits for us in it, is in. `moves_data`:
  // for a read or a write. Takes no lock and makes no system call. Threads:
  // any.
  std::optional<uint32_t> CallOf(uint32_t tid, bool moves_data);

  Stats GetStats() const;

 private:
  struct Watch {
    std::vector<PerfRing> rings;
    std::vector<int> processors;  // of the rings
    CallLayout layout;
  };
  static constexpr size_t kAsyncSlots = 4096;

  Result<std::unique_ptr<Watch>> OpenAll() const;
  std::optional<uint32_t> Find(const Watch& watch, uint32_t tid);
  // A thread of ours, or a number, that the kernel's filter may not know.
  // Threads: any.
  void AskForFilter();
  // Sets the filter again when asked to, at growing intervals, until told to
  // stop.
  void KeepFilter(Watch& watch);

  const Open open_;
  std::mutex mu_;
  int users_ = 0;                 // guarded by mu_
  std::unique_ptr<Watch> owned_;  // guarded by mu_
  Worker keeper_;                 // of KeepFilter; guarded by mu_

  std::atomic<bool> asked_{false};
  // One for each Start: a thread that has asked for the filter of this one does
  // not do so again.
  std::atomic<uint64_t> start_number_{0};

  std::atomic<const Watch*> watch_{nullptr};
  // Threads inside CallOf. Whoever counts itself here first and reads watch_
  // then may use it.
  std::atomic<int> readers_{0};
  // Threads that have used asynchronous I/O, by tid % kAsyncSlots.
  std::array<std::atomic<bool>, kAsyncSlots> async_{};
  std::atomic<uint64_t> found_{0};
  std::atomic<uint64_t> unknown_{0};
};

}  // namespace tracefs
