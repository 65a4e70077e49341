#include "tracefs/rules/rule.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "tracefs/base/choice.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/event/field.h"
#include "tracefs/event/op.h"

namespace tracefs {
namespace {

constexpr uint64_t kShortestNs = kNsPerSecond / 10;
constexpr uint64_t kLongestNs = 24 * 3600 * kNsPerSecond;
// Operations in a second; no mount does more.
constexpr uint64_t kMaxRate = 10'000'000;
constexpr size_t kMaxTitleBytes = 200;
constexpr size_t kMaxActions = 16;
// A hold ends by itself: nobody waits longer for an operator.
constexpr uint64_t kUsualHoldNs = 60 * kNsPerSecond;
constexpr uint64_t kLongestHoldNs = 600 * kNsPerSecond;

constexpr Choice<RuleKey> kKeys[] = {
    {"pid", RuleKey::kPid},       {"ppid", RuleKey::kPpid},
    {"tree", RuleKey::kTree},     {"tid", RuleKey::kTid},
    {"sid", RuleKey::kSid},       {"pgid", RuleKey::kPgid},
    {"uid", RuleKey::kUid},       {"gid", RuleKey::kGid},
    {"cname", RuleKey::kCommand}, {"inode", RuleKey::kInode},
};

constexpr std::array<std::string_view, 2> kConditions = {"rate", "seen"};
constexpr Choice<RuleAction::Kind> kActions[] = {
    {"snapshot", RuleAction::Kind::kSnapshot},
    {"raise", RuleAction::Kind::kRaise},
    {"start", RuleAction::Kind::kResume},
    {"stop", RuleAction::Kind::kSuspend},
    {"hold", RuleAction::Kind::kHold},
};

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Without line ends, comments and superfluous blanks.
std::string OnOneLine(std::string_view text) {
  std::string line;
  TextCursor in(text, "");
  while (!in.AtEnd()) {
    const size_t before = in.offset();
    in.SkipSpace();
    if (in.offset() != before && !line.empty() && !in.AtEnd()) line += ' ';
    if (in.AtEnd()) break;
    const size_t begin = in.offset();
    if (in.Peek() != '"' ||
        !in.TakeString(std::numeric_limits<size_t>::max()).ok()) {
      in.Advance();
    }
    line += in.Since(begin);
  }
  return line;
}

class Parser {
 public:
  Parser(std::string_view text, const FilterOrigin& origin,
         const NameService& users, NameTable& names)
      : in_(text, origin.file, origin.position),
        text_(text),
        users_(users),
        names_(names) {}

  Result<Rule> Parse() {
    in_.SkipSpace();
    const size_t begin = in_.offset();
    const SourcePosition start = in_.position();
    const std::string condition = TakeWord();
    if (condition != "rate" && condition != "seen") {
      return ErrorAt(in_.file(), start,
                     "expected rate(…) or seen(…) after 'when', found " +
                         Quoted(condition) +
                         DidYouMean(condition, kConditions));
    }
    RuleKey key = RuleKey::kNone;
    Result<Filter> what = TakeOperations(&key);
    if (!what.ok()) return what.status();
    Rule rule{.text = OnOneLine(text_),
              .title = {},
              .what = std::move(*what),
              .key = key,
              .actions = {}};
    if (condition == "rate") {
      if (Status s = TakeRate(&rule); !s.ok()) return s;
    } else {
      rule.window_ns = 1;
    }
    rule.title = OnOneLine(in_.Since(begin));
    if (Status s = TakeThen(&rule); !s.ok()) return s;
    in_.SkipSpace();
    if (!in_.AtEnd()) return Expected("the end of the rule");
    return rule;
  }

 private:
  Status Expected(std::string_view what) const {
    return in_.ErrorHere("expected " + std::string(what) + ", found " +
                         in_.Found(IsWordByte, "the end"));
  }
  // Empty if there is none.
  std::string TakeWord() {
    in_.SkipSpace();
    return std::string(in_.TakeWord(IsWordByte));
  }
  Status Take(char c, std::string_view what) {
    return in_.Take(c) ? Status::Ok() : Expected(what);
  }
  bool AtWord(std::string_view word) {
    in_.SkipSpace();
    return in_.Rest().substr(0, word.size()) == word &&
           !IsWordByte(in_.Peek(word.size()));
  }

  // "(" OPERATIONS [ "by" KEY ] ")": a filter, or nothing but names of
  // operations.
  Result<Filter> TakeOperations(RuleKey* key) {
    if (Status s = Take('(', "'('"); !s.ok()) return s;
    in_.SkipSpace();
    const size_t begin = in_.offset();
    const SourcePosition start = in_.position();
    bool only_words = true;
    size_t end = begin;
    size_t depth = 0;
    for (;;) {
      in_.SkipSpace();
      if (in_.AtEnd()) return Expected("')' of the condition");
      const char c = in_.Peek();
      if (depth == 0 && c == ')') break;
      if (depth == 0 && AtKey()) {
        static_cast<void>(TakeWord());  // "by"
        if (Status s = TakeKey(key); !s.ok()) return s;
        break;
      }
      if (IsWordByte(c)) {
        while (IsWordByte(in_.Peek())) in_.Advance();
      } else if (c == '"') {
        const Result<std::string> string =
            in_.TakeString(std::numeric_limits<size_t>::max());
        if (!string.ok()) return string.status();
        only_words = false;
      } else {
        if (c == '(' || c == '{') ++depth;
        if ((c == ')' || c == '}') && depth > 0) --depth;
        if (c != ',') only_words = false;
        in_.Advance();
      }
      end = in_.offset();
    }
    if (Status s = Take(')', "')' of the condition"); !s.ok()) return s;
    const std::string_view written = text_.substr(begin, end - begin);
    if (Trim(written).empty()) {
      return ErrorAt(in_.file(), start,
                     "which operations? Write some names of operations, or a "
                     "filter: rate(unlink by pid)");
    }
    // Positions in messages are those of what is written.
    constexpr std::string_view kBefore = "op IN { ";
    std::string text(written);
    SourcePosition position = start;
    if (only_words) {
      text = std::string(kBefore) + text + "\n}";
      position.column -=
          std::min<uint32_t>(position.column - 1, kBefore.size());
    }
    Result<Filter> filter = Filter::Compile(
        text, {.file = in_.file(), .position = position}, users_, names_);
    if (!filter.ok()) return filter.status();
    for (size_t op = 0; op < kOpCount; ++op) {
      if (filter->Needs(static_cast<Op>(op)).constant != Verdict::kDrop) {
        return filter;
      }
    }
    return ErrorAt(in_.file(), start,
                   "this rule can never fire: no operation satisfies " +
                       Quoted(OnOneLine(written)));
  }

  // "by", a word and ")" follow.
  bool AtKey() {
    if (!AtWord("by")) return false;
    TextCursor ahead = in_;
    ahead.Advance(2);
    ahead.SkipSpace();
    if (!IsWordByte(ahead.Peek())) return false;
    while (IsWordByte(ahead.Peek())) ahead.Advance();
    ahead.SkipSpace();
    return ahead.Peek() == ')';
  }

  Status TakeKey(RuleKey* key) {
    in_.SkipSpace();
    const SourcePosition start = in_.position();
    const std::string word = TakeWord();
    std::vector<std::string_view> known;
    for (const auto& row : kKeys) {
      known.push_back(row.word);
      if (!SameField(row.word, word)) continue;
      *key = row.value;
      return Status::Ok();
    }
    return ErrorAt(in_.file(), start,
                   "operations cannot be counted by " + Quoted(word) +
                       DidYouMean(word, known) +
                       " (known: pid ppid tree tid sid pgid uid gid cname "
                       "inode)");
  }

  // ">" N "/" ( UNIT | DURATION ) [ "for" DURATION ]
  Status TakeRate(Rule* rule) {
    if (Status s = Take('>', "'>' and a rate, such as > 100/s"); !s.ok()) {
      return s;
    }
    in_.SkipSpace();
    const SourcePosition start = in_.position();
    const std::string number = TakeWord();
    const std::optional<uint64_t> limit = ParseUnsigned(number);
    if (!limit) {
      return ErrorAt(in_.file(), start,
                     "expected a number after '>', found " + Quoted(number));
    }
    if (Status s = Take('/', "'/' and a time, such as /s or /10s"); !s.ok()) {
      return s;
    }
    in_.SkipSpace();
    const SourcePosition window_start = in_.position();
    const std::string window = TakeWord();
    // "s" is one of them.
    const bool bare = !window.empty() && (window[0] < '0' || window[0] > '9');
    const std::optional<uint64_t> length =
        ParseDuration((bare ? "1" : "") + window);
    if (!length || *length < kShortestNs || *length > kLongestNs) {
      return ErrorAt(in_.file(), window_start,
                     "a rate is per s, m, h or a time from 100ms to 24h such "
                     "as 10s, not " +
                         Quoted(window));
    }
    if (static_cast<double>(*limit) / static_cast<double>(*length) >=
        static_cast<double>(kMaxRate) / kNsPerSecond) {
      return ErrorAt(in_.file(), start,
                     "this rule can never fire: no mount does more than " +
                         std::to_string(kMaxRate) + " operations a second");
    }
    rule->limit = *limit;
    rule->window_ns = *length;
    if (!AtWord("for")) return Status::Ok();
    static_cast<void>(TakeWord());
    uint64_t ns = 0;
    if (Status s = TakeDuration(&ns); !s.ok()) return s;
    rule->windows =
        std::max<uint64_t>(1, (ns + rule->window_ns - 1) / rule->window_ns);
    return Status::Ok();
  }

  Status TakeDuration(uint64_t* ns) {
    in_.SkipSpace();
    const SourcePosition start = in_.position();
    const std::string word = TakeWord();
    const std::optional<uint64_t> duration = ParseDuration(word);
    if (!duration || *duration == 0) {
      return ErrorAt(
          in_.file(), start,
          "expected a time such as 5s after 'for', found " + Quoted(word));
    }
    if (*duration > kLongestNs) {
      return ErrorAt(in_.file(), start, "longer than a day");
    }
    *ns = *duration;
    return Status::Ok();
  }

  // "then" "{" [ action ] { ";" [ action ] } "}"
  Status TakeThen(Rule* rule) {
    if (!AtWord("then")) return Expected("'then' and { what to do }");
    static_cast<void>(TakeWord());
    if (Status s = Take('{', "'{'"); !s.ok()) return s;
    for (;;) {
      in_.SkipSpace();
      if (in_.Peek() == '}') break;
      if (in_.Peek() == ';') {
        in_.Advance();
        continue;
      }
      if (rule->actions.size() == kMaxActions) {
        return in_.ErrorHere("more than " + std::to_string(kMaxActions) +
                             " actions");
      }
      if (Status s = TakeAction(rule); !s.ok()) return s;
      in_.SkipSpace();
      if (in_.Peek() != ';' && in_.Peek() != '}') return Expected("';' or '}'");
    }
    in_.Advance();
    return Status::Ok();
  }

  Status TakeAction(Rule* rule) {
    const SourcePosition start = in_.position();
    const std::string word = TakeWord();
    if (word == "alarm") return TakeTitle(rule);
    const auto* const row =
        std::find_if(std::begin(kActions), std::end(kActions),
                     [&](const auto& known) { return known.word == word; });
    if (row == std::end(kActions)) {
      std::vector<std::string_view> known;
      for (const auto& one : kActions) known.push_back(one.word);
      known.push_back("alarm");
      std::string list;
      for (const std::string_view one : known) list += ' ' + std::string(one);
      return ErrorAt(in_.file(), start,
                     Quoted(word) + " is nothing a rule can do" +
                         DidYouMean(word, known) + " (known:" + list + ")");
    }
    RuleAction action;
    action.kind = row->value;
    if (action.kind == RuleAction::Kind::kHold) {
      if (Status s = TakeHold(start, *rule, &action); !s.ok()) return s;
      rule->actions.push_back(std::move(action));
      return Status::Ok();
    }
    in_.SkipSpace();
    action.position = in_.position();
    action.tracer = TakeWord();
    if (action.tracer.empty()) {
      return Expected("a tracer of this file: its name or its number");
    }
    if (action.kind == RuleAction::Kind::kRaise) {
      if (Status s = TakeRaise(&action); !s.ok()) return s;
    }
    rule->actions.push_back(std::move(action));
    return Status::Ok();
  }

  // [ "for" DURATION ] [ "then" ( "fail" | "go" "on" ) ]
  Status TakeHold(SourcePosition start, const Rule& rule, RuleAction* action) {
    action->position = start;
    if (rule.key != RuleKey::kPid && rule.key != RuleKey::kTree &&
        rule.key != RuleKey::kUid) {
      return ErrorAt(in_.file(), start,
                     "hold is for rules that count by pid or tree (a process "
                     "and all below it are held) or by uid");
    }
    action->duration_ns = kUsualHoldNs;
    if (AtWord("for")) {
      static_cast<void>(TakeWord());
      in_.SkipSpace();
      const SourcePosition time = in_.position();
      if (Status s = TakeDuration(&action->duration_ns); !s.ok()) return s;
      if (action->duration_ns > kLongestHoldNs) {
        return ErrorAt(in_.file(), time, "a hold lasts 10m at most");
      }
    }
    if (!AtWord("then")) return Status::Ok();
    static_cast<void>(TakeWord());
    if (AtWord("go")) {
      static_cast<void>(TakeWord());
      if (!AtWord("on")) return Expected("'on': hold for 60s then go on");
      static_cast<void>(TakeWord());
      action->fails = false;
      return Status::Ok();
    }
    if (!AtWord("fail")) return Expected("'fail' or 'go on'");
    static_cast<void>(TakeWord());
    return Status::Ok();
  }

  // [ "to" "FILTER" ] "for" DURATION
  Status TakeRaise(RuleAction* action) {
    std::string filter;
    SourcePosition position = in_.position();
    if (AtWord("to")) {
      static_cast<void>(TakeWord());
      in_.SkipSpace();
      position = in_.position();
      if (in_.Peek() != '"') return Expected("a filter between double quotes");
      Result<std::string> text =
          in_.TakeString(std::numeric_limits<size_t>::max());
      if (!text.ok()) return text.status();
      filter = *std::move(text);
      ++position.column;  // behind the quote
    }
    if (!AtWord("for")) return Expected("'for' and a time: raise 2 for 10m");
    static_cast<void>(TakeWord());
    if (Status s = TakeDuration(&action->duration_ns); !s.ok()) return s;
    Result<Filter> compiled = Filter::Compile(
        filter, {.file = in_.file(), .position = position}, users_, names_);
    if (!compiled.ok()) return compiled.status();
    action->filter = std::move(*compiled);
    return Status::Ok();
  }

  Status TakeTitle(Rule* rule) {
    in_.SkipSpace();
    if (in_.Peek() != '"') return Expected("a text between double quotes");
    Result<std::string> text = in_.TakeString(kMaxTitleBytes);
    if (!text.ok()) return text.status();
    rule->title = *std::move(text);
    return Status::Ok();
  }

  TextCursor in_;
  const std::string_view text_;
  const NameService& users_;
  NameTable& names_;
};

}  // namespace

std::string_view RuleKeyName(RuleKey key) { return WordOf(kKeys, key); }

std::string_view RuleActionName(RuleAction::Kind kind) {
  return WordOf(kActions, kind);
}

Result<Rule> ParseRule(std::string_view text, const FilterOrigin& origin,
                       const NameService& users, NameTable& names) {
  return Parser(text, origin, users, names).Parse();
}

std::vector<uint32_t> TargetsOf(const std::vector<Rule>& rules) {
  std::vector<uint32_t> targets;
  for (const Rule& rule : rules) {
    for (const RuleAction& action : rule.actions) {
      if (action.names_tracer()) targets.push_back(action.tracer_id());
    }
  }
  return targets;
}

bool SetTargets(const std::vector<Rule>& rules,
                std::span<const uint32_t> targets) {
  if (TargetsOf(rules).size() != targets.size()) return false;
  auto next = targets.begin();
  for (const Rule& rule : rules) {
    for (const RuleAction& action : rule.actions) {
      if (action.names_tracer()) action.target->store(*next++);
    }
  }
  return true;
}

Result<Filter> FilterOf(const std::vector<Rule>& rules,
                        const NameService& users, NameTable& names) {
  std::string all;
  for (const Rule& rule : rules) {
    // The line end is for a filter that ends in a comment.
    all += (all.empty() ? "(" : " OR (") + rule.what.text() + "\n)";
  }
  return Filter::Compile(all, {.file = "rules"}, users, names);
}

RuleMatches RuleMatches::Of(const std::vector<Rule>& rules, Event& event) {
  std::string bytes((rules.size() + 7) / 8, '\0');
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].what.Keep(event)) continue;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << i % 8);
  }
  return RuleMatches(std::move(bytes));
}

}  // namespace tracefs
