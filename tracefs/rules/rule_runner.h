// RuleRunner: the rules of one tracer at work. The operations that they count
// come as blocks, through a bounded queue, from a tracer of their own; a thread
// reads them, counts, and calls who acts. No operation ever waits for that:
// what finds no room in the queue is lost for the rules, and counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/worker.h"
#include "tracefs/pipeline/block_queue.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/rules/rule_engine.h"

namespace tracefs {

// What is done when a rule fires; called by runners' threads.
class AlarmHandler : public ProcessParents {
 public:
  // Finds out who made a rule fire, as far as that can be known: adds texts to
  // `values`, and sets `source`. May wait for a moment.
  virtual void Explain(Alarm* alarm) = 0;
  // Acts, and says what became of each action of the rule. `tracer` is the one
  // in whose config the rule stands. May wait.
  virtual std::vector<Status> OnAlarm(uint32_t tracer, const Rule& rule,
                                      const Alarm& alarm) = 0;
  // About once a second.
  virtual void OnTick() = 0;
  // Holds of that tracer's rules that have failed what waited and are over,
  // each told once.
  virtual std::vector<HoldOver> HoldsOver(uint32_t tracer) = 0;
};

// What a rule of a config has done so far (config/REFERENCE.md, "Rules").
struct RuleTotals {
  uint32_t tracer = 0;  // whose rule it is
  size_t number = 0;    // there, from 1
  std::string title;
  uint64_t matched = 0;
  uint64_t missed = 0;
  uint64_t alarms = 0;
  bool in_alarm = false;
};

class RuleRunner {
 public:
  // Alarms that are remembered: more than come between two looks.
  static constexpr size_t kKept = 128;

  // `handler` outlives the runner.
  RuleRunner(uint32_t tracer, std::vector<Rule> rules, AlarmHandler& handler);
  // The output must have been released, or Start never called.
  ~RuleRunner();
  RuleRunner(const RuleRunner&) = delete;
  RuleRunner& operator=(const RuleRunner&) = delete;

  // Where the operations go: the output of their tracer. Once.
  std::unique_ptr<OutputDriver> MakeOutput();
  Status Start();
  // Waits until all that came was looked at. After the output was released.
  void Join() { worker_.Join(); }

  struct Fired {
    uint64_t number = 0;  // of all alarms of this runner, from 1
    Alarm alarm;
    uint64_t real_ns = 0;
    std::vector<Status> outcomes;  // of the actions
  };
  struct Report {
    std::vector<RuleEngine::Standing> rules;
    std::deque<Fired> fired;  // the last ones, newest first
    uint64_t missed = 0;      // operations that found no room
    uint64_t alarms = 0;      // that were told
  };
  // Threads: any.
  Report report() const;
  // Appends one for each rule, as of the time `now` (monotonic).
  void AddTotals(uint64_t now, std::vector<RuleTotals>* totals) const;
  uint32_t tracer() const { return tracer_; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  void Loop();
  void Act(Alarm alarm);
  void Publish(const RuleEngine& engine, uint64_t missed);

  const uint32_t tracer_;
  const std::vector<Rule> rules_;
  AlarmHandler& handler_;
  const std::shared_ptr<BlockQueue> queue_;
  std::atomic<bool> more_{false};  // since the thread last looked

  mutable std::mutex mu_;
  Report report_;  // guarded by mu_
  Worker worker_;
};

}  // namespace tracefs
