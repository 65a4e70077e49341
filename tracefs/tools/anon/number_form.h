// NumberForm: what numbers look like that a rule has made, whatever they were.
// A number of another form was not made by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anonymize/plan.h"

namespace tracefs::anonymize {

class NumberForm {
 public:
  // Of a number of the field by `rule`, which need not be the field's own.
  NumberForm(const FieldPlan& field, const Rule& rule);
  NumberForm() = default;

  // False of no number if the rule's numbers may be any.
  bool Fits(uint64_t number) const;
  // "a power of two"
  std::string Text() const;

 private:
  enum class Kind : uint8_t { kAny, kZero, kListed, kPower, kMultiple };
  Kind kind_ = Kind::kAny;
  bool wide_ = false;  // may be negative
  uint64_t step_ = 1;
  std::vector<uint64_t> keep_;
};

}  // namespace tracefs::anonymize
