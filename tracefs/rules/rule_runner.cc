#include "tracefs/rules/rule_runner.h"

#include <chrono>
#include <cstring>

#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs {
namespace {

// Blocks that wait: a second of what two processors can do.
constexpr size_t kQueueBytes = size_t{32} << 20;
// How long an operation may wait for one that began before it.
constexpr uint64_t kPatienceNs = 333'000'000;
constexpr uint64_t kTickNs = 1'000'000'000;
// Between looks while something waits for its order to be sure.
constexpr auto kShort = std::chrono::milliseconds(50);
constexpr auto kLong = std::chrono::milliseconds(1000);

class QueueSource final : public format::ByteSource {
 public:
  explicit QueueSource(std::shared_ptr<BlockQueue> queue)
      : queue_(std::move(queue)) {}

  Result<size_t> Read(std::span<std::byte> out) override {
    // What was there when it had ended is all there is.
    const bool ended = queue_->ended();
    const std::string bytes = queue_->Take(out.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    may_grow_ = !bytes.empty() || !ended;
    return bytes.size();
  }
  bool MayGrow() override { return may_grow_; }

 private:
  const std::shared_ptr<BlockQueue> queue_;
  bool may_grow_ = true;
};

RuleMatches MatchesIn(const format::Record& record) {
  for (const format::ExtraArgument& extra : record.extra) {
    if (extra.id == RuleMatches::kArgument) {
      return RuleMatches(std::string(AsText(extra.value)));
    }
  }
  return {};
}

}  // namespace

RuleRunner::RuleRunner(uint32_t tracer, std::vector<Rule> rules,
                       AlarmHandler& handler)
    : tracer_(tracer),
      rules_(std::move(rules)),
      handler_(handler),
      queue_(std::make_shared<BlockQueue>(kQueueBytes)) {
  report_.rules.resize(rules_.size());
  queue_->SetWake([this] {
    more_.store(true);
    worker_.Wake();
  });
}

RuleRunner::~RuleRunner() {
  Join();
  queue_->SetWake(nullptr);
}

std::unique_ptr<OutputDriver> RuleRunner::MakeOutput() {
  return MakeBlockQueueOutput(queue_);
}

Status RuleRunner::Start() {
  return worker_.Start("tracefs-rules", [this] { Loop(); });
}

RuleRunner::Report RuleRunner::report() const {
  std::lock_guard lock(mu_);
  return report_;
}

void RuleRunner::AddTotals(uint64_t now,
                           std::vector<RuleTotals>* totals) const {
  const Report last = report();
  for (size_t i = 0; i < rules_.size(); ++i) {
    const RuleEngine::Standing& standing = last.rules[i];
    totals->push_back({.tracer = tracer_,
                       .number = i + 1,
                       .title = rules_[i].title,
                       .matched = standing.matched,
                       .missed = last.missed,
                       .alarms = standing.alarms,
                       .in_alarm = now < standing.holds_until_ns});
  }
}

void RuleRunner::Loop() {
  format::TraceReaderOptions options;
  options.name = "rules";
  options.follow = true;
  uint64_t missed = 0;
  options.report = [&](const format::Report& report) {
    if (report.kind == format::ReportKind::kLoss) missed += report.count;
  };
  format::TraceMerger merger;
  merger.Add(std::make_unique<format::TraceReader>(
      std::make_unique<QueueSource>(queue_), std::move(options)));

  RuleEngine engine(rules_, &handler_);
  std::vector<Alarm> alarms;
  format::Record record;
  bool settled = true;         // nothing is held back
  uint64_t waiting_since = 0;  // unless settled
  uint64_t tick_at = 0;
  for (;;) {
    const uint64_t now = MonotonicNs();
    if (now >= tick_at) {
      handler_.OnTick();
      Publish(engine, missed);
      tick_at = now + kTickNs;
    }
    const bool hurry = !settled && now - waiting_since >= kPatienceNs;
    const format::ReadStep step = merger.Next(&record, hurry);
    if (step == format::ReadStep::kItem) {
      if (!hurry) waiting_since = now;
      for (const HoldOver& over : handler_.HoldsOver(tracer_)) {
        engine.Rearm(over);
      }
      engine.Observe(record.event, MatchesIn(record), &alarms);
      for (Alarm& alarm : alarms) Act(std::move(alarm));
      alarms.clear();
      continue;
    }
    Publish(engine, missed);
    if (step == format::ReadStep::kEnd) return;
    if (hurry) settled = true;
    worker_.WaitFor(settled ? kLong : kShort);
    if (!more_.exchange(false)) continue;
    if (settled) waiting_since = MonotonicNs();
    settled = false;
  }
}

void RuleRunner::Act(Alarm alarm) {
  if (alarm.quiet) {
    handler_.OnAlarm(tracer_, rules_[alarm.rule], alarm);
    return;
  }
  Fired fired;
  fired.real_ns = CommonClockPair().ToReal(alarm.time_ns);
  handler_.Explain(&alarm);
  fired.outcomes = handler_.OnAlarm(tracer_, rules_[alarm.rule], alarm);
  fired.alarm = std::move(alarm);
  const std::string& title = rules_[fired.alarm.rule].title;
  std::lock_guard lock(mu_);
  fired.number = ++report_.alarms;
  // Who, but not what it was about: the log has other readers than the trace.
  std::string who;
  if (fired.alarm.pid != 0) {
    who = " (pid " + std::to_string(fired.alarm.pid) + " of uid " +
          std::to_string(fired.alarm.uid) +
          "; tracefs-ctl MNT rules tells the rest)";
  }
  Notify(NoticeId::kAlarm, "alarm " + std::to_string(fired.number) +
                               " of tracer " + std::to_string(tracer_) +
                               (title.empty() ? "" : ": " + title) + who);
  report_.fired.push_front(std::move(fired));
  if (report_.fired.size() > kKept) report_.fired.pop_back();
}

void RuleRunner::Publish(const RuleEngine& engine, uint64_t missed) {
  std::lock_guard lock(mu_);
  report_.missed = missed;
  for (size_t i = 0; i < rules_.size(); ++i) {
    report_.rules[i] = engine.standing(i);
  }
}

}  // namespace tracefs
