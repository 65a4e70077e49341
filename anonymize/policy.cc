#include "anonymize/policy.h"

#include <fcntl.h>

#include <algorithm>

#include "anonymize/fields.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"

namespace tracefs::anonymize {
namespace {

using Target = PolicyStatement::Target;

constexpr size_t kMaxWordBytes = 4096;
constexpr size_t kMaxStatements = 10'000;
constexpr size_t kMaxPad = 128;

struct ActionRow {
  Action action;
  std::string_view name;
  bool key;
  bool reversible;
};
constexpr ActionRow kActions[] = {
    {Action::kKeep, "keep", false, true},
    {Action::kDrop, "drop", false, false},
    {Action::kZero, "zero", false, false},
    {Action::kEncrypt, "encrypt", true, true},
    {Action::kFpe, "fpe", true, true},
    {Action::kHmac, "hmac", true, false},
    {Action::kRandom, "random", true, false},
    {Action::kMap, "map", false, false},
    {Action::kShift, "shift", true, true},
    {Action::kQuantise, "quantise", false, false},
    {Action::kBucket, "bucket", false, false},
    {Action::kKeepValues, "keep-values", false, false},
    {Action::kPaper, "paper", true, true},
};

const ActionRow& RowOf(Action action) {
  return *std::find_if(std::begin(kActions), std::end(kActions),
                       [&](const ActionRow& r) { return r.action == action; });
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         c == '*' || c == '+' || c == '~' || c == '/' || c == ':';
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : in_(text, file) {}

  Result<Policy> Parse() {
    policy_.name = in_.file();
    for (in_.SkipSpace(); !in_.AtEnd(); in_.SkipSpace()) {
      if (Status s = Statement(); !s.ok()) return s;
      if (policy_.statements.size() > kMaxStatements) {
        return in_.ErrorHere("too many statements");
      }
    }
    return std::move(policy_);
  }

 private:
  // A bare word or a string.
  Result<std::string> Word(std::string_view what) {
    in_.SkipSpace();
    if (in_.Peek() == '"') return in_.TakeString(kMaxWordBytes);
    const std::string_view word = in_.TakeWord(IsWordByte);
    if (!word.empty()) return std::string(word);
    return in_.ErrorHere("expected " + std::string(what) + ", found " +
                         in_.Found(IsWordByte, "the end"));
  }

  Status Expect(char c, std::string_view after) {
    if (in_.Take(c)) return Status::Ok();
    return in_.ErrorHere(std::string("expected '") + c + "' after " +
                         std::string(after));
  }

  Status Statement() {
    const SourcePosition start = in_.position();
    const Result<std::string> first = Word("a field, a class or 'use'");
    if (!first.ok()) return first.status();
    in_.SkipSpace();
    if (*first == "use" && in_.Peek() != '=') return Use(start);
    if (*first == "keys" && in_.Peek() != '=') {
      const SourcePosition at = in_.position();
      const Result<std::string> word = Word("'daily'");
      if (!word.ok()) return word.status();
      if (*word != "daily") {
        return ErrorAt(in_.file(), at,
                       "keys can be 'daily', not " + Quoted(*word));
      }
      policy_.daily = true;
      return Expect(';', "'keys daily'");
    }
    std::vector<PolicyStatement> targets(1);
    if (Status s = TakeTarget(*first, start, &targets[0]); !s.ok()) return s;
    while (in_.Take(',')) {
      in_.SkipSpace();
      const SourcePosition at = in_.position();
      const Result<std::string> next = Word("a field or a class");
      if (!next.ok()) return next.status();
      if (Status s = TakeTarget(*next, at, &targets.emplace_back()); !s.ok()) {
        return s;
      }
    }
    if (Status s = Expect('=', "the fields"); !s.ok()) return s;
    Rule rule;
    rule.origin = std::string(in_.file()) + ':' + std::to_string(start.line);
    if (Status s = TakeRule(&rule); !s.ok()) return s;
    for (PolicyStatement& statement : targets) {
      statement.rule = rule;
      if (Status s = Add(std::move(statement)); !s.ok()) return s;
    }
    return Status::Ok();
  }

  Status Use(SourcePosition start) {
    const SourcePosition at = in_.position();
    const Result<std::string> name = Word("the name of a profile");
    if (!name.ok()) return name.status();
    if (Status s = Expect(';', "the profile"); !s.ok()) return s;
    if (!policy_.statements.empty() || policy_.daily) {
      return ErrorAt(in_.file(), start,
                     "'use' comes first: what follows overrides it");
    }
    std::vector<std::string_view> known;
    for (const Profile& profile : Profiles()) {
      known.push_back(profile.name);
      if (profile.name != *name) continue;
      Result<Policy> base = ParsePolicy(profile.text, profile.name);
      if (!base.ok()) return base.status();
      policy_.statements = std::move(base->statements);
      policy_.daily = base->daily;
      inherited_ = policy_.statements.size();
      return Status::Ok();
    }
    return ErrorAt(
        in_.file(), at,
        "there is no profile " + Quoted(*name) + DidYouMean(*name, known));
  }

  Status TakeTarget(const std::string& word, SourcePosition at,
                    PolicyStatement* statement) {
    statement->position = at;
    if (word == "property" || word == "message") {
      statement->target =
          word == "property" ? Target::kProperty : Target::kMessage;
      Result<std::string> name = Word("its name");
      if (!name.ok()) return name.status();
      statement->name = *std::move(name);
      return Status::Ok();
    }
    statement->name = word;
    if (word.starts_with("ARG_")) {
      statement->target = Target::kField;
      return Status::Ok();
    }
    statement->target = Target::kClass;
    if (FindClass(word) != nullptr) return Status::Ok();
    std::vector<std::string_view> known = {"property", "message", "use",
                                           "keys"};
    for (const ClassInfo& c : Classes()) known.push_back(c.name);
    return ErrorAt(in_.file(), at,
                   "there is no class of fields " + Quoted(word) +
                       DidYouMean(word, known) +
                       " (single fields are named as in the trace, ARG_UID)");
  }

  Status TakeRule(Rule* rule) {
    in_.SkipSpace();
    SourcePosition at = in_.position();
    const Result<std::string> word = Word("an action");
    if (!word.ok()) return word.status();
    const auto* row =
        std::find_if(std::begin(kActions), std::end(kActions),
                     [&](const ActionRow& r) { return r.name == *word; });
    if (row == std::end(kActions)) {
      std::vector<std::string_view> known;
      for (const ActionRow& r : kActions) known.push_back(r.name);
      return ErrorAt(
          in_.file(), at,
          "there is no action " + Quoted(*word) + DidYouMean(*word, known));
    }
    rule->action = row->action;
    if (rule->action == Action::kKeepValues) {
      if (Status s = List(&rule->keep); !s.ok()) return s;
    } else if (rule->action == Action::kQuantise) {
      if (Status s = Step(rule); !s.ok()) return s;
    }
    while (!in_.Take(';')) {
      in_.SkipSpace();
      at = in_.position();
      const Result<std::string> option = Word("an option or ';'");
      if (!option.ok()) return option.status();
      if (Status s = TakeOption(*option, at, rule); !s.ok()) return s;
    }
    return Status::Ok();
  }

  Status Step(Rule* rule) {
    in_.SkipSpace();
    const SourcePosition at = in_.position();
    const Result<std::string> word = Word("a step");
    if (!word.ok()) return word.status();
    auto step = ParseDuration(*word);
    if (!step || *step == 0) step = ParseSize(*word);
    if (!step || *step == 0) {
      return ErrorAt(
          in_.file(), at,
          Quoted(*word) + " is no step: write 1ms, 4096 or 4K, for example");
    }
    rule->step = *step;
    return Status::Ok();
  }

  Status List(std::vector<std::string>* words) {
    if (Status s = Expect('{', "what takes a list"); !s.ok()) return s;
    while (!in_.Take('}')) {
      Result<std::string> word = Word("a value or '}'");
      if (!word.ok()) return word.status();
      words->push_back(*std::move(word));
      if (words->size() > kMaxPolicyWords) {
        return in_.ErrorHere("too many values in a list");
      }
      (void)in_.Take(',');
    }
    std::sort(words->begin(), words->end());
    words->erase(std::unique(words->begin(), words->end()), words->end());
    return Status::Ok();
  }

  Status TakeOption(const std::string& option, SourcePosition at, Rule* rule) {
    constexpr std::string_view kKnown[] = {
        "keep", "keep-dots", "keep-marks", "keep-digits", "keep-namespace",
        "tree", "flat",      "pad",        "ext",         "quantise"};
    if (option == "keep") return List(&rule->keep);
    if (option == "keep-dots") {
      rule->keep_dots = true;
    } else if (option == "keep-marks") {
      rule->keep_marks = true;
    } else if (option == "keep-digits") {
      rule->keep_digits = true;
    } else if (option == "keep-namespace") {
      rule->keep_namespace = true;
    } else if (option == "tree" || option == "flat") {
      rule->tree = option == "tree";
    } else if (option == "quantise" && rule->action == Action::kShift) {
      rule->action = Action::kQuantise;
      rule->shift = true;
      return Step(rule);
    } else if (option == "pad") {
      const Result<std::string> word = Word("a number of bytes");
      if (!word.ok()) return word.status();
      const auto pad = ParseUnsigned(*word);
      if (!pad || *pad == 0 || *pad > kMaxPad) {
        return ErrorAt(in_.file(), at,
                       "pad takes 1 to " + std::to_string(kMaxPad) + " bytes");
      }
      rule->pad = *pad;
    } else if (option == "ext") {
      in_.SkipSpace();
      if (in_.Peek() == '{') {
        rule->extension = ExtensionRule::kList;
        return List(&rule->extensions);
      }
      const Result<std::string> word = Word("keep, encrypt, join or a list");
      if (!word.ok()) return word.status();
      if (*word == "keep") {
        rule->extension = ExtensionRule::kKeep;
      } else if (*word == "join") {
        rule->extension = ExtensionRule::kJoin;
      } else if (*word == "encrypt") {
        rule->extension = ExtensionRule::kEncrypt;
      } else {
        return ErrorAt(in_.file(), at,
                       "ext takes keep, encrypt, join or a list in braces");
      }
    } else {
      return ErrorAt(in_.file(), at,
                     Quoted(option) + " is no option of '" +
                         std::string(ActionName(rule->action)) + '\'' +
                         DidYouMean(option, kKnown));
    }
    return Status::Ok();
  }

  Status Add(PolicyStatement statement) {
    auto& all = policy_.statements;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].target != statement.target || all[i].name != statement.name) {
        continue;
      }
      if (i >= inherited_) {
        return ErrorAt(in_.file(), statement.position,
                       Quoted(statement.name) + " already has an action (" +
                           all[i].rule.origin + "): one of them must go");
      }
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      --inherited_;
      break;
    }
    all.push_back(std::move(statement));
    return Status::Ok();
  }

  TextCursor in_;
  Policy policy_;
  size_t inherited_ = 0;  // the first so many statements come from `use`
};

std::string Escaped(std::string_view word) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsWordByte)) {
    return std::string(word);
  }
  std::string out = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ListText(const std::vector<std::string>& words) {
  std::string text = "{";
  for (const std::string& word : words) text += ' ' + Escaped(word);
  return text + " }";
}

bool IsNumber(std::string_view word) { return ParseUnsigned(word).has_value(); }

}  // namespace

std::string_view ActionName(Action action) { return RowOf(action).name; }
bool NeedsKey(Action action) { return RowOf(action).key; }
bool IsReversible(Action action) { return RowOf(action).reversible; }

const Rule* Policy::Find(Target target, std::string_view wanted) const {
  for (const PolicyStatement& s : statements) {
    if (s.target == target && s.name == wanted) return &s.rule;
  }
  return nullptr;
}

Result<Policy> ParsePolicy(std::string_view text, std::string_view file) {
  return Parser(text, file).Parse();
}

bool IsProfile(std::string_view name) {
  return std::any_of(Profiles().begin(), Profiles().end(),
                     [&](const Profile& p) { return p.name == name; });
}

Result<Policy> LoadPolicy(const std::string& name_or_path, UniqueFd given) {
  for (const Profile& profile : Profiles()) {
    if (profile.name == name_or_path) {
      return ParsePolicy(profile.text, profile.name);
    }
  }
  UniqueFd fd = std::move(given);
  if (!fd) {
    fd.Reset(::open(name_or_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  }
  if (!fd) {
    const int error = errno;
    std::string what = "policy '" + name_or_path + '\'';
    if (error == ENOENT && name_or_path.find('/') == std::string::npos) {
      what += " (there are the profiles";
      for (const Profile& p : Profiles()) what += ' ' + std::string(p.name);
      what += ')';
    }
    return Status::System(error, what);
  }
  const Result<std::string> text =
      ReadText(fd.get(), kMaxPolicyBytes + 1, "policy '" + name_or_path + '\'');
  if (!text.ok()) return text.status();
  if (text->size() > kMaxPolicyBytes) {
    return Status::Invalid("policy '" + name_or_path +
                           "' is longer than a policy can be");
  }
  return ParsePolicy(*text, name_or_path);
}

std::string RuleText(const Rule& rule, bool for_trace) {
  std::string text;
  if (rule.action == Action::kQuantise) {
    text = rule.shift ? "shift quantise " : "quantise ";
    text += std::to_string(rule.step);
  } else {
    text = ActionName(rule.action);
  }
  // Numbers are needed to undo a permutation around them, and say little.
  const bool numbers =
      std::all_of(rule.keep.begin(), rule.keep.end(), IsNumber);
  if (rule.action == Action::kKeepValues) {
    text += ' ' + ListText(!for_trace || numbers ? rule.keep
                                                 : std::vector<std::string>());
  } else if (!rule.keep.empty() && (!for_trace || numbers)) {
    text += " keep " + ListText(rule.keep);
  }
  if (rule.keep_dots) text += " keep-dots";
  if (rule.keep_marks) text += " keep-marks";
  if (rule.keep_digits) text += " keep-digits";
  if (rule.keep_namespace) text += " keep-namespace";
  if (rule.tree) text += " tree";
  if (rule.pad != 0) text += " pad " + std::to_string(rule.pad);
  switch (rule.extension) {
    case ExtensionRule::kEncrypt:
      break;
    case ExtensionRule::kKeep:
      text += " ext keep";
      break;
    case ExtensionRule::kJoin:
      text += " ext join";
      break;
    case ExtensionRule::kList:
      if (!for_trace) text += " ext " + ListText(rule.extensions);
      break;
  }
  return text;
}

std::string PolicyText(const Policy& policy, bool for_trace) {
  std::string text;
  if (policy.daily) text += "keys daily;\n";
  for (const PolicyStatement& s : policy.statements) {
    if (s.target == Target::kProperty) text += "property ";
    if (s.target == Target::kMessage) text += "message ";
    text += Escaped(s.name) + " = " + RuleText(s.rule, for_trace) + ";\n";
  }
  return text;
}

}  // namespace tracefs::anonymize
