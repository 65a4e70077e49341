#include "filters/input/ops_with.h"

namespace tracefs {
namespace {

// The mask of a stat says what is asked for, and access asks about rights.
bool MeansAnother(Field field, Op op) {
  return (field == Field::kValid && op != Op::setattr_) ||
         (field == Field::kArgMode && op == Op::access_);
}

}  // namespace

uint64_t OpsWith(Field field) {
  const bool second_path = field == Field::kNewPath;
  const bool of_request =
      IsNumeric(field) &&
      (Info(field).source == FieldSource::kRequest || field == Field::kType);
  if (!of_request && !second_path) return kAllOps;
  uint64_t ops = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const bool has = second_path ? HasSecondPath(op)
                                 : (Info(op).request_fields & Bit(field)) != 0;
    if (has && !MeansAnother(field, op)) ops |= uint64_t{1} << i;
  }
  return ops;
}

bool MeansSeveral(Field field) {
  for (size_t i = 0; i < kOpCount; ++i) {
    if (MeansAnother(field, static_cast<Op>(i))) return true;
  }
  return false;
}

Predicate PredicateOnOps(Field field) {
  Predicate on_ops;
  on_ops.form = Predicate::Form::kOps;
  on_ops.field = Field::kOp;
  on_ops.ops = OpsWith(field);
  return on_ops;
}

}  // namespace tracefs
