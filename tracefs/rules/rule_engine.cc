#include "tracefs/rules/rule_engine.h"

#include <algorithm>

namespace tracefs {
namespace {

constexpr uint64_t kMinuteNs = 60'000'000'000;
// Between two looks for keys that can go.
constexpr uint64_t kSweepNs = 1'000'000'000;
constexpr char kOtherKey[] = "(other)";

std::string Number(const Event& event, Field field) {
  return event.Has(field) ? std::to_string(event.Get(field)) : "unknown";
}

std::string KeyText(RuleKey key, const Event& event) {
  switch (key) {
    case RuleKey::kNone:
      return {};
    case RuleKey::kPid:
      return "pid " + Number(event, Field::kPid);
    case RuleKey::kTid:
      return "tid " + Number(event, Field::kTid);
    case RuleKey::kSid:
      return "sid " + Number(event, Field::kSid);
    case RuleKey::kUid:
      return "uid " + Number(event, Field::kUid);
    case RuleKey::kGid:
      return "gid " + Number(event, Field::kGid);
    case RuleKey::kCommand:
      return "cname " + (event.caller == nullptr
                             ? "unknown"
                             : std::string(event.caller->comm()));
    case RuleKey::kInode:
      return "inode " + Number(event, Field::kInode);
  }
  return {};
}

uint32_t NumberOf(const Event& event, Field field) {
  return event.Has(field) ? static_cast<uint32_t>(event.Get(field)) : 0;
}

}  // namespace

void RuleEngine::Observe(Event& event, std::vector<Alarm>* alarms) {
  const uint64_t now = event.Get(Field::kTime);
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (!rule.what.Keep(event)) continue;
    State& state = states_[i];
    ++state.status.matched;
    std::string key = KeyText(rule.key, event);
    Count& count = CountOf(rule, key, now, &state);
    if (!Holds(rule, now, &count)) continue;
    const bool fires = now >= count.calm_at_ns;
    count.calm_at_ns = now + std::max(kCalmNs, rule.window_ns);
    state.status.holds_until_ns =
        std::max(state.status.holds_until_ns, count.calm_at_ns);
    if (!fires) continue;
    ++state.status.alarms;
    state.status.last_ns = now;
    if (now - std::min(state.minute_ns, now) >= kMinuteNs ||
        state.minute_ns == 0) {
      state.minute_ns = now;
      state.in_minute = 0;
    }
    if (++state.in_minute > Rule::kMaxAlarmsPerMinute) {
      ++state.status.suppressed;
      continue;
    }
    PathBuffer buffer;
    alarms->push_back({.rule = i,
                       .key = std::move(key),
                       .time_ns = now,
                       .count = count.count,
                       .op = event.op,
                       .pid = NumberOf(event, Field::kPid),
                       .uid = NumberOf(event, Field::kUid),
                       .command = event.caller == nullptr
                                      ? std::string()
                                      : std::string(event.caller->comm()),
                       .path = event.resolver == nullptr
                                   ? std::string()
                                   : std::string(PathOf(event, buffer))});
  }
}

// Counts one operation, and says whether the condition is true now.
bool RuleEngine::Holds(const Rule& rule, uint64_t now, Count* count) {
  if (count->count == 0 || now >= count->start_ns + 2 * rule.window_ns) {
    // The first one, or the first after a window in which there was none.
    count->start_ns = now;
    count->count = count->windows = 0;
  } else if (now >= count->start_ns + rule.window_ns) {
    if (count->count > rule.limit) {
      ++count->windows;
      count->start_ns += rule.window_ns;
    } else {
      count->windows = 0;
      count->start_ns = now;
    }
    count->count = 0;
  }
  ++count->count;
  return count->count > rule.limit && count->windows + 1 >= rule.windows;
}

RuleEngine::Count& RuleEngine::CountOf(const Rule& rule, const std::string& key,
                                       uint64_t now, State* state) {
  auto& counts = state->counts;
  if (const auto found = counts.find(key); found != counts.end()) {
    return found->second;
  }
  if (counts.size() >= kMaxKeys && now >= state->sweep_at_ns) {
    state->sweep_at_ns = now + kSweepNs;
    // What has been quiet for a whole window, and is not in alarm, is as good
    // as new.
    std::erase_if(counts, [&](const auto& entry) {
      const Count& c = entry.second;
      return now >= c.start_ns + 2 * rule.window_ns && now >= c.calm_at_ns;
    });
  }
  return counts[counts.size() >= kMaxKeys ? kOtherKey : key];
}

}  // namespace tracefs
