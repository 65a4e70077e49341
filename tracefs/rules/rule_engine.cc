#include "tracefs/rules/rule_engine.h"

#include <algorithm>
#include <utility>

namespace tracefs {
namespace {

constexpr uint64_t kMinuteNs = 60'000'000'000;
// Between two looks for keys that can go.
constexpr uint64_t kSweepNs = 1'000'000'000;
constexpr char kOtherKey[] = "(other)";

std::string Number(const Event& event, Field field) {
  return event.Has(field) ? std::to_string(event.Get(field)) : "unknown";
}

Field FieldOf(RuleKey key) {
  switch (key) {
    case RuleKey::kPpid:
      return Field::kPpid;
    case RuleKey::kTid:
      return Field::kTid;
    case RuleKey::kSid:
      return Field::kSid;
    case RuleKey::kPgid:
      return Field::kPgid;
    case RuleKey::kUid:
      return Field::kUid;
    case RuleKey::kGid:
      return Field::kGid;
    case RuleKey::kInode:
      return Field::kInode;
    default:
      return Field::kPid;
  }
}

std::string TreeKey(uint32_t pid) { return "tree " + std::to_string(pid); }

uint32_t NumberOf(const Event& event, Field field) {
  return static_cast<uint32_t>(event.GetOr0(field));
}

// The operation, as it is to be told: it is gone when somebody reads that.
Alarm Describe(const Event& event) {
  Alarm alarm;
  alarm.op = event.op;
  alarm.pid = NumberOf(event, Field::kPid);
  alarm.uid = NumberOf(event, Field::kUid);
  if (event.caller != nullptr) {
    alarm.command = event.caller->comm();
    alarm.caller = *event.caller;
    alarm.caller.tid = NumberOf(event, Field::kTid);
  }
  PathBuffer buffer;
  PathBuffer buffer2;
  std::string path2;
  if (event.resolver != nullptr) {
    alarm.path = PathOf(event, buffer);
    path2 = NewPathOf(event, buffer2);
  }
  const bool ok = event.Has(Field::kErrno) && event.Get(Field::kErrno) == 0;
  for (const FieldInfo& info : Fields()) {
    // Only the lack of an errno says that there was none.
    if (!IsNumeric(info.field) || !event.Has(info.field) ||
        (info.field == Field::kErrno && ok)) {
      continue;
    }
    alarm.values.numbers.emplace_back(info.field, event.Get(info.field));
  }
  const auto add = [&alarm](Field field, std::string_view text) {
    if (!text.empty()) alarm.values.texts.emplace_back(field, text);
  };
  add(Field::kComm, alarm.command);
  add(Field::kPath, alarm.path);
  add(Field::kNewPath, path2);
  for (const RequestText& of : kRequestTexts) {
    if (of.field != Field::kNewName) add(of.field, event.*of.text);
  }
  return alarm;
}

}  // namespace

bool RuleEngine::CountsTrees(const std::vector<Rule>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& rule) {
    return rule.key == RuleKey::kTree;
  });
}

void RuleEngine::Observe(const Event& event, const RuleMatches& matches,
                         std::vector<Alarm>* alarms) {
  const uint64_t now = event.Get(Field::kTime);
  if (parents_ != nullptr && event.Has(Field::kPid) &&
      event.Has(Field::kPpid)) {
    if (seen_parents_.size() >= kMaxParents) seen_parents_.clear();
    seen_parents_[NumberOf(event, Field::kPid)] = NumberOf(event, Field::kPpid);
  }
  bool noted = false;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (!matches.Has(i)) continue;
    if (!std::exchange(noted, true) && event.resolver != nullptr) {
      PathBuffer buffer;
      recent_.Note(event, PathOf(event, buffer));
    }
    State& state = states_[i];
    ++state.standing.matched;
    keys_.clear();
    KeysOf(rule, event, &keys_);
    // A tree is told by the lowest process below which it all happened: what
    // is above it has seen no more.
    const Key* fired = nullptr;
    bool fires = false;
    bool fired_other = false;
    bool counted_other = false;
    uint64_t count_of_fired = 0;
    for (const Key& key : keys_) {
      bool other = false;
      Count& count = CountOf(rule, key.text, now, &state, &other);
      if (other && std::exchange(counted_other, true)) continue;
      if (now < count.from_ns) continue;
      if (!Holds(rule, now, &count)) continue;
      if (fired == nullptr) {
        fired = &key;
        fired_other = other;
        fires = now >= count.calm_at_ns;
        count_of_fired = count.count;
      }
      count.calm_at_ns = now + std::max(kCalmNs, rule.window_ns);
      state.standing.holds_until_ns =
          std::max(state.standing.holds_until_ns, count.calm_at_ns);
    }
    if (!fires) continue;
    ++state.standing.alarms;
    state.standing.last_ns = now;
    if (now - std::min(state.minute_ns, now) >= kMinuteNs ||
        state.minute_ns == 0) {
      state.minute_ns = now;
      state.in_minute = 0;
    }
    const bool quiet = ++state.in_minute > Rule::kMaxAlarmsPerMinute;
    if (quiet) ++state.standing.suppressed;
    if (quiet && !rule.holds()) continue;
    Alarm alarm = Describe(event);
    alarm.quiet = quiet;
    alarm.rule = i;
    alarm.key = fired_other ? kOtherKey : fired->text;
    alarm.key_pid = fired_other ? 0 : fired->pid;
    alarm.other = fired_other;
    alarm.time_ns = now;
    alarm.count = count_of_fired;
    alarm.paths = PathsAround(rule, event,
                              alarm.key_pid != 0 ? alarm.key_pid : alarm.pid);
    alarms->push_back(std::move(alarm));
  }
}

void RuleEngine::Rearm(const HoldOver& over) {
  if (over.rule >= rules_.size()) return;
  const RuleKey by = rules_[over.rule].key;
  // A user for whom there was no room as single processes: all of them.
  const bool any = over.pid == 0 && by != RuleKey::kUid;
  const std::string held = std::string(RuleKeyName(by)) + ' ' +
                           std::to_string(over.pid == 0 ? over.uid : over.pid);
  for (auto& [key, count] : states_[over.rule].counts) {
    if (any || key == held) count = {.from_ns = over.at_ns};
  }
}

void RuleEngine::KeysOf(const Rule& rule, const Event& event,
                        std::vector<Key>* keys) {
  switch (rule.key) {
    case RuleKey::kNone:
      keys->push_back({});
      return;
    case RuleKey::kTree:
      AddTree(event, keys);
      return;
    case RuleKey::kCommand:
      keys->push_back({"cname " + (event.caller == nullptr
                                       ? std::string("unknown")
                                       : std::string(event.caller->comm()))});
      return;
    default:
      keys->push_back({std::string(RuleKeyName(rule.key)) + ' ' +
                       Number(event, FieldOf(rule.key))});
  }
}

// The process and its ancestors, but for the first of all: everything is its
// doing.
void RuleEngine::AddTree(const Event& event, std::vector<Key>* keys) {
  uint32_t pid = NumberOf(event, Field::kPid);
  if (pid == 0) {
    keys->push_back({"tree unknown"});
    return;
  }
  // Its own parent is the one that it had then.
  keys->push_back({TreeKey(pid), pid});
  uint32_t parent = NumberOf(event, Field::kPpid);
  for (size_t depth = 1; depth < kMaxDepth && parent > 1; ++depth) {
    pid = parent;
    keys->push_back({TreeKey(pid), pid});
    parent = ParentOf(pid);
  }
}

std::vector<std::string> RuleEngine::PathsAround(const Rule& rule,
                                                 const Event& event,
                                                 uint32_t top) {
  const std::unordered_map<uint32_t, uint32_t> seen = recent_.Parents();
  const auto below_top = [&](uint32_t pid) {
    for (size_t depth = 0; depth < kMaxDepth && pid > 1; ++depth) {
      if (pid == top) return true;
      const auto parent = seen.find(pid);
      pid = parent != seen.end() ? parent->second : ParentOf(pid);
    }
    return false;
  };
  const Field field = FieldOf(rule.key);
  return recent_.Newest(kToldPaths, [&](const RecentPaths::Entry& entry) {
    if (rule.key == RuleKey::kCommand) {
      if (event.caller != nullptr && entry.comm == event.caller->comm()) {
        return true;
      }
    } else if (event.Has(field) && entry.Get(field) == event.Get(field)) {
      return true;
    }
    return below_top(entry.pid());
  });
}

uint32_t RuleEngine::ParentOf(uint32_t pid) {
  if (parents_ == nullptr) return 0;
  if (const uint32_t parent = parents_->ParentOf(pid); parent != 0) {
    return parent;
  }
  const auto seen = seen_parents_.find(pid);
  return seen == seen_parents_.end() ? 0 : seen->second;
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
                                       uint64_t now, State* state,
                                       bool* other) {
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
  *other = counts.size() >= kMaxKeys;
  return counts[*other ? kOtherKey : key];
}

}  // namespace tracefs
