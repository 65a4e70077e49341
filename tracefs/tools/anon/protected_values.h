// ProtectedValues: what of an original must not be found in its anonymised
// trace, by the policy.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/plan.h"
#include "anonymize/policy.h"
#include "tracefs/base/status.h"
#include "tracefs/base/text_dictionary.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/tools/anon/audit_walk.h"
#include "tracefs/tools/anon/distinct.h"
#include "tracefs/tools/anon/leak_scan.h"
#include "tracefs/tools/anon/number_set.h"

namespace tracefs::anonymize {

class ProtectedValues {
 public:
  // Words that may be found; they outlive it.
  explicit ProtectedValues(const std::vector<std::string>& ok_words)
      : ok_words_(ok_words) {}

  // Takes those of the original `trace`.
  Status Read(const std::string& trace, const Policy& policy,
              const reader::TraceSet::Options& options);

  const std::string& serial() const { return serial_; }
  uint64_t operations() const { return operations_; }
  // Whether the original has the property, with that value.
  bool HasProperty(std::string_view key, std::string_view value) const;
  // Texts by class and numbers, to be compared as a whole.
  const std::map<std::string, Distinct>& words() const { return words_; }
  const std::map<NumberGroup, NumberSet>& numbers() const { return numbers_; }
  // Of files.
  const NumberSet& sizes() const { return sizes_; }
  // What is looked for within values.
  LeakScan& scan() { return scan_; }

 private:
  // What is looked up once for each field, and what of it was seen already.
  struct FieldState {
    const FieldPlan* field = nullptr;
    bool hidden = false;
    std::vector<uint64_t> keep;    // numbers that the rule lists
    NumberSet* numbers = nullptr;  // of numbers that are compared
    bool is_identity = false;
    bool is_size = false;
    std::optional<uint64_t> last;  // number
    NumberSet identities;
    TextDictionary texts;
  };

  bool IsOk(std::string_view word) const;
  void ProtectWord(std::string_view word, const std::string& class_name,
                   const Rule& rule);
  void ProtectName(std::string_view name, const std::string& class_name,
                   const Rule& rule);
  void ProtectProperty(const Plan& plan, const std::string& key,
                       std::string_view value);
  void Protect(const format::Message& message, const format::Argument& argument,
               FieldState* state);
  void ProtectText(std::string_view value, const FieldPlan& field);
  void ProtectXattr(std::string_view name, const std::string& class_name,
                    const Rule& rule);
  void MakeStates(const Plan& plan);
  void ProtectNumber(uint64_t number, FieldState* state);

  const std::vector<std::string>& ok_words_;
  std::shared_ptr<const Plan> plan_;
  std::string serial_;
  uint64_t operations_ = 0;
  std::map<std::string, std::string, std::less<>> properties_;
  std::set<std::string> names_;            // classes, at places that stay
  std::map<std::string, Distinct> words_;  // by class
  std::map<NumberGroup, NumberSet> numbers_;
  NumberSet sizes_;
  std::vector<FieldState> states_;  // in the order of the plan's fields
  LeakScan scan_;
};

}  // namespace tracefs::anonymize
