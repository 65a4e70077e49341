// ProtectedValues: what of an original must not be found in its anonymised
// trace, by the policy.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/plan.h"
#include "anonymize/policy.h"
#include "tracefs/base/status.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/payload_decoder.h"
#include "tracefs/tools/anon/distinct.h"
#include "tracefs/tools/anon/leak_scan.h"

namespace tracefs::anonymize {

class ProtectedValues {
 public:
  // Words that may be found; they outlive it.
  explicit ProtectedValues(const std::vector<std::string>& ok_words)
      : ok_words_(ok_words) {}

  // Takes those of the original `trace`.
  Status Read(const std::string& trace, const Policy& policy,
              const format::PayloadDecoderFactory& decoder);

  const std::string& serial() const { return serial_; }
  // Whether the original has the property, with that value.
  bool HasProperty(std::string_view key, std::string_view value) const;
  // Texts by class and numbers by NumberGroup, to be compared as a whole.
  const std::map<std::string, Distinct>& words() const { return words_; }
  const std::map<std::string, Distinct>& numbers() const { return numbers_; }
  // What is looked for within values.
  LeakScan& scan() { return scan_; }

 private:
  bool IsOk(std::string_view word) const;
  void ProtectWord(std::string_view word, const std::string& class_name,
                   const Rule& rule);
  void ProtectName(std::string_view name, const std::string& class_name,
                   const Rule& rule);
  void ProtectProperty(const Plan& plan, const std::string& key,
                       std::string_view value);
  void Protect(const format::Message& message, const format::Argument& argument,
               const FieldPlan& field);
  void ProtectXattr(std::string_view name, const std::string& class_name,
                    const Rule& rule);
  void ProtectNumber(std::string_view bytes, const FieldPlan& field);

  const std::vector<std::string>& ok_words_;
  std::string serial_;
  std::map<std::string, std::string, std::less<>> properties_;
  std::set<std::string> names_;              // classes, at places that stay
  std::map<std::string, Distinct> words_;    // by class
  std::map<std::string, Distinct> numbers_;  // by NumberGroup
  LeakScan scan_;
};

}  // namespace tracefs::anonymize
