#include "tracefs/tools/anon/number_form.h"

#include <algorithm>
#include <bit>

#include "tracefs/base/units.h"

namespace tracefs::anonymize {

NumberForm::NumberForm(const FieldPlan& field, const Rule& rule)
    : wide_(field.width == 8), step_(StepOf(rule, field.per_second)) {
  for (const std::string& word : rule.keep) {
    if (const auto number = ParseUnsigned(word)) keep_.push_back(*number);
  }
  switch (rule.action) {
    case Action::kZero:
      kind_ = Kind::kZero;
      break;
    case Action::kKeepValues:
      // What a trace says of its policy is without lists.
      if (!keep_.empty()) kind_ = Kind::kListed;
      break;
    case Action::kBucket:
      kind_ = Kind::kPower;
      break;
    case Action::kQuantise:
      kind_ = Kind::kMultiple;
      break;
    default:
      break;
  }
}

bool NumberForm::Fits(uint64_t number) const {
  if (kind_ == Kind::kAny || number == 0 ||
      std::ranges::find(keep_, number) != keep_.end()) {
    return true;
  }
  const bool negative = wide_ && number >> 63 != 0;
  switch (kind_) {
    case Kind::kPower:
      return std::has_single_bit(negative ? -number : number);
    case Kind::kMultiple:
      // Failures stay what they are.
      return negative || number % step_ == 0;
    default:
      return false;
  }
}

std::string NumberForm::Text() const {
  switch (kind_) {
    case Kind::kPower:
      return "a power of two";
    case Kind::kMultiple:
      return "a multiple of " + std::to_string(step_);
    case Kind::kListed:
      return "one of the policy's list";
    default:
      return "zero";
  }
}

}  // namespace tracefs::anonymize
