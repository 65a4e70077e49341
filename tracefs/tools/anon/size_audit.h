// SizeAudit: whether sizes of files that a policy hides can be told from other
// fields of the trace (anonymize/sizes.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "anonymize/plan.h"
#include "anonymize/sizes.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/tools/anon/number_form.h"
#include "tracefs/tools/anon/number_set.h"

namespace tracefs::anonymize {

class SizeAudit {
 public:
  // `plan` outlives it; original_sizes: empty without an original.
  SizeAudit(const Plan& plan, const NumberSet& original_sizes);

  bool Wants(const FieldPlan& field) const {
    return hidden_ && TellsOfSize(field.arg_id) != SizeTell::kNothing;
  }
  // Every argument of the trace that it wants, in order.
  void Look(const format::Message& message, const format::Argument& argument,
            const FieldPlan& field);
  // One line for each field that tells.
  void Tell(const std::function<void(const std::string&)>& leak) const;

 private:
  struct State {
    SizeTell tells = SizeTell::kNothing;
    bool exact = false;   // by the policy
    bool absent = false;  // by the policy
    NumberForm form;      // else
    uint64_t times = 0;
    uint64_t example = 0;
    NumberSet sizes;  // of the original, that follow from it
  };
  void LookAtNumber(uint64_t number, State* state);
  void Told(uint64_t number, State* state);

  const Plan& plan_;
  const NumberSet& original_;
  bool hidden_ = false;
  std::vector<State> states_;           // in the order of the plan's fields
  const std::byte* message_ = nullptr;  // at hand
  std::optional<uint64_t> offset_;      // in it, in clear
};

}  // namespace tracefs::anonymize
