// RuleEngine: counts operations for rules, and says when one fires. It has no
// clock and no thread: the times are those of the operations.
//
// Tested by tests/unit/rules/rule_engine_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/format/alarm.h"
#include "tracefs/rules/recent_paths.h"
#include "tracefs/rules/rule.h"

namespace tracefs {

// Who made a rule fire, found out when it had fired: by then the process may
// have ended. What is not known is left out, and `not_known` names it.
struct AlarmSource {
  struct Ancestor {
    uint32_t pid = 0;
    std::string comm;  // empty: not known
  };
  std::vector<Ancestor> ancestors;  // from the parent up
  // "exe", "cmdline", "ancestors" (the rest of them).
  std::vector<std::string_view> not_known;
};

// A rule fired, and the operation that made it fire.
struct Alarm {
  size_t rule = 0;       // its number, from 0
  std::string key;       // "pid 4711"; empty if it counts by nothing
  uint32_t key_pid = 0;  // of a tree: the process on top
  bool other = false;    // it is what had no key of its own
  // More than kMaxAlarmsPerMinute: nobody is told, but what the rule holds is
  // held. Who starts processes enough would be free otherwise.
  bool quiet = false;
  uint64_t time_ns = 0;  // of the operation, monotonic
  uint64_t count = 0;    // operations in the window that decided
  Op op{};
  uint32_t pid = 0;  // 0: not known
  uint32_t uid = 0;
  std::string command;
  std::string path;
  format::AlarmValues values;  // all that is known of the operation
  CallerInfo caller;           // pid 0: not known
  // What was touched last, by the same process tree or for the same key, by
  // operations that any of the rules counts; the newest first.
  std::vector<std::string> paths;
  AlarmSource source;
};

// A hold that a rule began, and that ended without letting anybody go.
struct HoldOver {
  size_t rule = 0;   // its number, from 0
  uint32_t pid = 0;  // whom it held; 0: a user
  uint32_t uid = 0;
  uint64_t at_ns = 0;  // monotonic
};

// Parents of processes, also of those that did nothing in the mount.
class ProcessParents {
 public:
  virtual ~ProcessParents() = default;
  // 0: not known, or gone.
  virtual uint32_t ParentOf(uint32_t pid) = 0;
};

// Used by one thread.
class RuleEngine {
 public:
  // Keys that one rule tells apart at a time. What comes when there is no room
  // is counted under one key for all the rest.
  static constexpr size_t kMaxKeys = 4096;
  // A key that has fired fires again only after the rule has not held for it
  // for so long, or for a whole window.
  static constexpr uint64_t kCalmNs = 10'000'000'000;

  // Ancestors that are counted of a process, and parents that are remembered.
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxParents = 16384;

  // Paths that an alarm tells.
  static constexpr size_t kToldPaths = 8;

  // `rules` and `parents` outlive the engine; without `parents` only parents of
  // processes that did something are known.
  explicit RuleEngine(const std::vector<Rule>& rules,
                      ProcessParents* parents = nullptr)
      : rules_(rules),
        parents_(CountsTrees(rules) ? parents : nullptr),
        states_(rules.size()) {}

  // Whether any of them needs to know parents.
  static bool CountsTrees(const std::vector<Rule>& rules);

  // Counts one operation for the rules that `matches` has; appends the alarms
  // that it raises. Times may go back a little.
  void Observe(const Event& event, const RuleMatches& matches,
               std::vector<Alarm>* alarms);

  // Who was held has nothing to wait for: the rule fires for him again as soon
  // as he does enough after the end of the hold.
  void Rearm(const HoldOver& over);

  // How one rule stands.
  struct Standing {
    uint64_t matched = 0;         // operations
    uint64_t alarms = 0;          // fired
    uint64_t suppressed = 0;      // of these, more than kMaxAlarmsPerMinute
    uint64_t last_ns = 0;         // when it fired last; 0: never
    uint64_t holds_until_ns = 0;  // it counts as in alarm until then
  };
  const Standing& standing(size_t rule) const { return states_[rule].standing; }

 private:
  struct Count {
    uint64_t start_ns = 0;  // of the present window
    uint64_t count = 0;     // in it
    uint64_t windows = 0;   // successive ones before it that were over
    uint64_t calm_at_ns = 0;
    uint64_t from_ns = 0;  // what began before is not counted
  };
  struct State {
    std::unordered_map<std::string, Count> counts;
    Standing standing;
    uint64_t sweep_at_ns = 0;
    uint64_t minute_ns = 0;  // begin of the minute that is counted
    uint64_t in_minute = 0;  // alarms
  };

  // One that an operation counts for.
  struct Key {
    std::string text;
    uint32_t pid = 0;  // of a tree
  };

  static bool Holds(const Rule& rule, uint64_t now, Count* count);
  void KeysOf(const Rule& rule, const Event& event, std::vector<Key>* keys);
  void AddTree(const Event& event, std::vector<Key>* keys);
  std::vector<std::string> PathsAround(const Rule& rule, const Event& event,
                                       uint32_t top);
  uint32_t ParentOf(uint32_t pid);
  Count& CountOf(const Rule& rule, const std::string& key, uint64_t now,
                 State* state, bool* other);

  const std::vector<Rule>& rules_;
  ProcessParents* const parents_;
  // As events told it: of those that may be gone.
  std::unordered_map<uint32_t, uint32_t> seen_parents_;
  std::vector<Key> keys_;
  RecentPaths recent_;
  std::vector<State> states_;
};

}  // namespace tracefs
