// How long callers wait for an answer, by the policy of the threads that give
// it, on this machine as it is now.
//
// A model, since before a mount is there nobody can ask it, and afterwards
// nobody should: a process in a session of its own asks, as callers do, and
// threads of this one answer, one bound to each processor, that of the
// processor being asked on which the caller is. What decides a round trip over
// io_uring is then the same: whether the caller, when he is woken, stays where
// he was.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/thread_policy.h"

namespace tracefs {

struct PolicyTrial {
  ThreadPolicy policy = ThreadPolicy::kNormal;
  // The median trip of each batch. Empty: threads of this policy could not be
  // had, or did not get to answer in time.
  std::vector<std::chrono::nanoseconds> batches;

  // The median of the batches: callers stay where they are for the whole of a
  // batch, or are moved about for the whole of it, so that neither the best nor
  // a disturbed one tells what is usual.
  std::optional<std::chrono::nanoseconds> round_trip() const;
};

// Threads: one at a time.
class RoundTrips {
 public:
  // Forks the asking process, which ends with this object and has no rights
  // and no files: to be made while this process has one thread, and by the one
  // that lives longest.
  RoundTrips();
  ~RoundTrips();
  RoundTrips(const RoundTrips&) = delete;
  RoundTrips& operator=(const RoundTrips&) = delete;

  // Tries each of `policies` in turns, for some milliseconds in all, also in
  // the sandbox. `session` is afterwards left as kNormal wants it. Empty if
  // nothing can be tried.
  std::vector<PolicyTrial> Try(std::span<const ThreadPolicy> policies,
                               const OwnSession& session);

 private:
  class Servers;
  bool MakeAll();
  void EndCaller();
  [[noreturn]] void Call() const;
  void KeepOnlyOwnFiles() const;
  size_t ServerHere() const;
  int64_t MedianOfABatch() const;
  std::optional<std::chrono::nanoseconds> Batch() const;
  bool TryOnce(const OwnSession& session, PolicyTrial* trial) const;

  std::vector<int> processors_;
  // All of these the asking process has, too.
  std::vector<UniqueFd> asked_;  // by processor
  UniqueFd answered_;
  std::array<UniqueFd, 2> go_;      // pipes: a byte for each batch
  std::array<UniqueFd, 2> result_;  // its median in ns
  pid_t caller_ = -1;
  HelperLink link_{HelperKind::kTrial, "measures round trips"};
};

// The best one: the first of those that are at most half as slow again as the
// fastest, because to move a caller costs several times the trip, and what
// differs by less says nothing of real requests. None if no one answered.
std::optional<ThreadPolicy> BestOf(std::span<const PolicyTrial> trials);

// "normal 14.2 µs, nice 13.9 µs, idle 9.1 µs".
std::string TrialsText(std::span<const PolicyTrial> trials);

}  // namespace tracefs
