// The kernel's process events (proc connector): who changed and must be looked
// at again.
//
// A netlink multicast (linux/drivers/connector/cn_proc.c) that tells of exec,
// setsid, renaming and exit in the initial pid and user namespaces, to whoever
// may join (CAP_NET_ADMIN before Linux 6.6). Events arrive shortly after the
// fact and may be lost when too many come; a loss is reported as such. There is
// no event for setpgid(2) or for a parent's death.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "tracefs/base/bytes.h"
#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// One event, as far as this wants to know it.
struct ProcEvent {
  enum class Kind : uint8_t { kFork, kExec, kComm, kSession, kExit };
  Kind kind{};
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint32_t cpu = 0;
  uint32_t tid = 0;
  uint32_t pid = 0;
  // kFork: who was made; `tid` and `pid` are its parent's.
  uint32_t child_tid = 0;
  uint32_t child_pid = 0;
  uint32_t exit_code = 0;  // kExit: as of wait(2)
  std::string_view comm;   // kComm
};

class ProcConnector {
 public:
  // Called by one thread at a time: the listener's, or who takes reports.
  class Observer {
   public:
    virtual ~Observer() = default;
    // This task, or the process it leads, is not what it was.
    virtual void OnChange(uint32_t tid) = 0;
    // Events were lost: anybody may have changed.
    virtual void OnLost() = 0;
    // The same event in full; before OnChange.
    virtual void OnEvent(const ProcEvent& /*event*/) {}
  };

  // What may be asked for, besides what makes somebody another: forks.
  enum Wanted : uint8_t { kChanges, kChangesAndForks };

  // Opens and joins, so that a sandbox may come between this and Start();
  // nothing is received yet. kSystem where the kernel or the namespace has no
  // such events or refuses.
  static Result<std::unique_ptr<ProcConnector>> Open(Wanted wanted = kChanges);
  ~ProcConnector();
  ProcConnector(const ProcConnector&) = delete;
  ProcConnector& operator=(const ProcConnector&) = delete;

  // Switches the events on and starts the listener's thread (nice -10 where
  // allowed: an event should overtake the request that follows it). Waits a
  // fraction of a second at most for the kernel's word. kSystem if none comes.
  Status Start(Observer* observer);
  // Switches them off and joins the thread. May be started again.
  void Stop();
  // Hands what the kernel has told so far to the observer of the last Start.
  // False if another thread is doing so, and may not be done, or if there are
  // more than can be taken in a moment. Threads: any.
  bool TakeReports();

 private:
  ProcConnector(UniqueFd socket, Wanted wanted)
      : socket_(std::move(socket)), wanted_(wanted) {}
  Status Subscribe();
  bool Send(ByteSpan operation);
  // Takes what has arrived; true if an acknowledgement was among it.
  // Takes what is there, or as many datagrams of it. True if that was all.
  // `answer`: the error of an acknowledgement among them; may be null.
  bool Drain(Observer* observer, std::optional<int>* answer,
             size_t most = SIZE_MAX);
  void Listen();

  UniqueFd socket_;
  const Wanted wanted_;
  const EventFd stop_;
  std::thread thread_;
  // Held while events are taken and handed over, and while asked for them.
  std::mutex take_mu_;
  Observer* observer_ = nullptr;  // guarded by take_mu_
};

// Reads one netlink datagram of the connector. Calls `observer` (if any) for
// each event in it; returns true and sets `ack_error` if it is an
// acknowledgement. Anything malformed is passed over.
bool ParseProcEvents(ByteSpan datagram, ProcConnector::Observer* observer,
                     int* ack_error);

}  // namespace tracefs
