// Rule: `when CONDITION then { ACTIONS }` of a config, checked. config/
// REFERENCE.md ("Rules") describes the language.
//
// Tested by tests/unit/rules/rule_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/input/filter.h"
#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {

// What operations are counted apart by.
enum class RuleKey : uint8_t {
  kNone,
  kPid,
  kPpid,
  kTid,
  kSid,
  kPgid,
  kUid,
  kGid,
  kCommand,
  kInode,
  kTree,  // a process and all its ancestors, each by itself
};
// "pid"; empty for kNone.
std::string_view RuleKeyName(RuleKey key);

struct RuleAction {
  enum class Kind : uint8_t { kSnapshot, kRaise, kResume, kSuspend, kHold };

  Kind kind{};
  // As written: a name, or a number that counts the tracers of the file. Of
  // kHold none: it is about who made the rule fire.
  std::string tracer;
  SourcePosition position;  // of that word
  // Filled in by who knows the tracers. All copies share it: the config that a
  // rule stands in may come to have another tracer of that name.
  std::shared_ptr<std::atomic<uint32_t>> target =
      std::make_shared<std::atomic<uint32_t>>(0);
  uint32_t tracer_id() const { return target->load(); }
  bool names_tracer() const { return kind != Kind::kHold; }
  // kRaise and kHold: for how long; kRaise: the filter that holds meanwhile;
  // kHold: whether what waits fails in the end, or goes on.
  uint64_t duration_ns = 0;
  std::optional<Filter> filter;
  bool fails = true;
};

// Its word in a config: "start" for kResume, "stop" for kSuspend.
std::string_view RuleActionName(RuleAction::Kind kind);

struct Rule {
  // Alarms of one rule in a minute; more are only counted, but `hold` is done.
  static constexpr uint64_t kMaxAlarmsPerMinute = 60;

  std::string text;   // as written, on one line
  std::string title;  // of `alarm "…"`; else the condition
  Filter what;
  RuleKey key = RuleKey::kNone;
  // It holds while more than `limit` operations with the same key come in each
  // of `windows` successive windows. seen(…): limit 0, one window.
  uint64_t limit = 0;
  uint64_t window_ns = 1'000'000'000;
  uint64_t windows = 1;
  std::vector<RuleAction> actions;

  bool holds() const {
    return std::ranges::any_of(actions, [](const RuleAction& action) {
      return action.kind == RuleAction::Kind::kHold;
    });
  }
};

// Reads what follows `when`. Errors are kInvalid with the place: bad
// words, and rules that can never fire. `origin` is of the first byte of
// `text`.
Result<Rule> ParseRule(std::string_view text, const FilterOrigin& origin,
                       const NameService& users, NameTable& names);

// The tracers that actions of these rules mean, in order; of actions that name
// none, nothing. False, and nothing is set, if it is not one for each.
std::vector<uint32_t> TargetsOf(const std::vector<Rule>& rules);
bool SetTargets(const std::vector<Rule>& rules,
                std::span<const uint32_t> targets);

// A filter that keeps what any of the rules counts.
Result<Filter> FilterOf(const std::vector<Rule>& rules,
                        const NameService& users, NameTable& names);

// Which rules of a tracer count an operation; a byte for eight of them. It is
// found out where all that their filters ask for is known, which no record
// holds.
class RuleMatches {
 public:
  // The argument of operations that has it, between a tracer and its rules: in
  // no trace.
  static constexpr uint16_t kArgument = 0x7f00;

  RuleMatches() = default;
  explicit RuleMatches(std::string bytes) : bytes_(std::move(bytes)) {}
  // Asks all of them.
  static RuleMatches Of(const std::vector<Rule>& rules, Event& event);

  bool Has(size_t rule) const {
    return rule / 8 < bytes_.size() &&
           (static_cast<unsigned char>(bytes_[rule / 8]) >> rule % 8 & 1) != 0;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace tracefs
