// How queue threads stand beside the processes whose calls they answer.
//
// Over io_uring a queue thread and the caller it answers take turns on one
// processor. When the reply wakes the caller, the scheduler looks for an idle
// processor; on one where it finds it the caller has to start over, and its
// next request is another queue's: twice the time on one machine, nothing on
// another. A queue thread with a better nice value, or one that is SCHED_IDLE
// and so counts as idle, may keep its caller where he is. Which of them does is
// a matter of the machine: round_trips.h measures it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

enum class ThreadPolicy {
  kNormal,  // as the daemon was started
  kNice,  // SCHED_OTHER, nice −10: helps callers in the daemon's own session
  // SCHED_IDLE, in a session that is the most urgent of all. Such a thread
  // would starve beside busy ones of its own group; where the session is a
  // group by itself (autogroups, sched(7)) groups compete and not their
  // threads.
  kIdle,
};

inline constexpr int kUrgentNice = -10;

// "normal", "nice", "idle".
const char* PolicyName(ThreadPolicy policy);
std::optional<ThreadPolicy> PolicyOf(std::string_view name);

// Makes thread `tid` (0: the calling one) one of that policy. 0 or an errno:
// EPERM without CAP_SYS_NICE. Threads that it starts later are like it.
int ApplyToThread(ThreadPolicy policy, int tid);

// How a session stands beside others that want a processor.
enum class Standing {
  kLikeOthers,
  kMostUrgent,  // nice −20: its threads run as soon as they can
  kGivesWay,    // nice 7: they run when no one else can, but are never left out
};

// The session of this process as a group by itself. Threads: one at a time.
class OwnSession {
 public:
  // Looks whether it is one: this process leads it, autogroups are on, and no
  // cgroup has a say. Else `obstacle` says why not, and Stand does nothing.
  OwnSession();

  const std::string& obstacle() const { return obstacle_; }
  // 0 or an errno. May be called in the sandbox.
  int Stand(Standing standing) const;

 private:
  std::string obstacle_;
  UniqueFd autogroup_;
};

// How the session of threads of that policy stands.
constexpr Standing StandingOf(ThreadPolicy policy) {
  return policy == ThreadPolicy::kIdle ? Standing::kMostUrgent
                                       : Standing::kLikeOthers;
}

// Makes all threads of this process, and those that they will start, and its
// session, of that policy; but kNice is for queue threads alone. False if that
// was refused; then all are as they were before.
bool ApplyToProcess(ThreadPolicy policy, const OwnSession& session);

}  // namespace tracefs
