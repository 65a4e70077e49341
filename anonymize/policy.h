// A policy: what becomes of each field of a trace (POLICY.md has the language).
// Text -> plain structs that remember where each word stood. Nothing is decided
// here about a particular trace: that is plan.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::anonymize {

enum class Action : uint8_t {
  kKeep,
  kDrop,        // the argument is left out
  kZero,        // 0, or empty
  kEncrypt,     // AES-SIV: reversible; numbers become opaque bytes
  kFpe,         // FF1: reversible; numbers stay numbers of their width
  kHmac,        // one way
  kRandom,      // a new value each time: nothing can be linked
  kMap,         // 1, 2, 3, … in order of appearance; one way
  kShift,       // plus a secret constant; reversible
  kQuantise,    // down to a multiple of a step
  kBucket,      // down to a power of two
  kKeepValues,  // what is listed stays, all else is dropped
  kPaper,       // CBC with a key for each argument, padded, as in the paper
};
// "keep", "drop", …
std::string_view ActionName(Action action);
bool NeedsKey(Action action);
// Someone with the key can get the values back.
bool IsReversible(Action action);

enum class ExtensionRule : uint8_t {
  kEncrypt,  // a token of its own
  kKeep,     // in clear
  kList,     // those listed in clear, a token for others
  kJoin,     // not told apart from the stem
};

struct Rule {
  Action action = Action::kKeep;
  bool shift = false;  // of kQuantise: after a shift
  uint64_t step = 0;   // of kQuantise
  // These values stay as they are, whatever the action.
  std::vector<std::string> keep = {};

  // For names.
  bool keep_dots = false;       // leading dots
  bool keep_marks = false;      // '~', ".tmp" and their like at the end
  bool keep_digits = false;     // digits at the end of the stem
  bool keep_namespace = false;  // of attributes: "user."
  bool tree = false;            // a key for each directory
  uint64_t pad = 0;             // to multiples of so many bytes; 0 = no
  ExtensionRule extension = ExtensionRule::kEncrypt;
  std::vector<std::string> extensions = {};  // of kList

  std::string origin = {};  // "file:3", for messages
};

struct PolicyStatement {
  enum class Target : uint8_t {
    kClass,     // "uid"
    kField,     // "ARG_UID"
    kProperty,  // a key of the header, or "*"
    kMessage,   // a message of a later version; kKeep or kDrop
  };
  Target target{};
  std::string name;
  Rule rule = {};
  SourcePosition position = {};
};

struct Policy {
  std::string name;    // of the profile or file, for people
  bool daily = false;  // keys of one day do not serve another
  // At most one a target.
  std::vector<PolicyStatement> statements;

  // Null if there is none.
  const Rule* Find(PolicyStatement::Target target, std::string_view name) const;
};

inline constexpr size_t kMaxPolicyBytes = size_t{1} << 20;
inline constexpr size_t kMaxPolicyWords = 10'000;  // in one list

// Errors are kInvalid, "file:line:column: …".
Result<Policy> ParsePolicy(std::string_view text, std::string_view file);

// A profile by its name ("research"), else a file.
// `given`: the file, where somebody else has opened it.
Result<Policy> LoadPolicy(const std::string& name_or_path, UniqueFd given = {});
bool IsProfile(std::string_view name);

// The policy as text that parses to the same. for_trace: without lists of
// words, which nobody needs to undo the policy and which could tell what the
// policy hides.
std::string PolicyText(const Policy& policy, bool for_trace);
std::string RuleText(const Rule& rule, bool for_trace);

// The profiles that come along (profiles/*.policy).
struct Profile {
  std::string_view name;
  std::string_view text;
};
std::span<const Profile> Profiles();

}  // namespace tracefs::anonymize
