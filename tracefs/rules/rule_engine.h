// RuleEngine: counts operations for rules, and says when one fires. It has no
// clock and no thread: the times are those of the operations.
//
// Tested by tests/unit/rules/rule_engine_test.cc.
#ifndef TRACEFS_RULES_RULE_ENGINE_H_
#define TRACEFS_RULES_RULE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/rules/rule.h"

namespace tracefs {

// A rule fired, and the operation that made it fire.
struct Alarm {
  size_t rule = 0;       // its number, from 0
  std::string key;       // "pid 4711"; empty if it counts by nothing
  uint64_t time_ns = 0;  // of the operation, monotonic
  uint64_t count = 0;    // operations in the window that decided
  Op op{};
  uint32_t pid = 0;  // 0: not known
  uint32_t uid = 0;
  std::string command;
  std::string path;
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

  // `rules` outlives the engine.
  explicit RuleEngine(const std::vector<Rule>& rules)
      : rules_(rules), states_(rules.size()) {}

  // Counts one operation; appends the alarms that it raises. Times may go back
  // a little.
  void Observe(Event& event, std::vector<Alarm>* alarms);

  struct Status {
    uint64_t matched = 0;         // operations
    uint64_t alarms = 0;          // fired
    uint64_t suppressed = 0;      // of these, more than kMaxAlarmsPerMinute
    uint64_t last_ns = 0;         // when it fired last; 0: never
    uint64_t holds_until_ns = 0;  // it counts as in alarm until then
  };
  const Status& status(size_t rule) const { return states_[rule].status; }

 private:
  struct Count {
    uint64_t start_ns = 0;  // of the present window
    uint64_t count = 0;     // in it
    uint64_t windows = 0;   // successive ones before it that were over
    uint64_t calm_at_ns = 0;
  };
  struct State {
    std::unordered_map<std::string, Count> counts;
    Status status;
    uint64_t sweep_at_ns = 0;
    uint64_t minute_ns = 0;  // begin of the minute that is counted
    uint64_t in_minute = 0;  // alarms
  };

  static bool Holds(const Rule& rule, uint64_t now, Count* count);
  Count& CountOf(const Rule& rule, const std::string& key, uint64_t now,
                 State* state);

  const std::vector<Rule>& rules_;
  std::vector<State> states_;
};

}  // namespace tracefs

#endif  // TRACEFS_RULES_RULE_ENGINE_H_
