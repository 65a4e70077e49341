// What tells the size of a file that is hidden: rule by rule, and field by
// field.
#include "anonymize/sizes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tracefs/event/field.h"
#include "tracefs/format/names.h"

namespace tracefs::anonymize {
namespace {

uint16_t IdOf(Field field) { return Info(field).arg_id; }
uint16_t IdOf(format::ArgId id) { return static_cast<uint16_t>(id); }

FieldPlan PlanOf(uint16_t arg_id, const Rule* rule) {
  FieldPlan plan;
  plan.arg_id = arg_id;
  plan.name = "FIELD_" + std::to_string(arg_id);
  plan.rule = rule;
  return plan;
}

Rule Does(Action action) {
  Rule rule;
  rule.action = action;
  rule.origin = "policy:1";
  return rule;
}
Rule Quantises(uint64_t step, bool shift) {
  Rule rule = Does(Action::kQuantise);
  rule.step = step;
  rule.shift = shift;
  return rule;
}
Rule Pads(uint32_t pad) {
  Rule rule = Does(Action::kEncrypt);
  rule.pad = pad;
  return rule;
}

TEST(SizesTest, OfEachRuleItIsKnownWhatItTells) {
  struct {
    Rule rule;
    bool size, transfer, bytes, target;  // told exactly
  } const rows[] = {
      {Does(Action::kKeep), true, true, true, true},
      {Does(Action::kDrop), false, false, false, false},
      {Does(Action::kZero), false, false, true, false},
      {Does(Action::kBucket), false, false, false, false},
      {Does(Action::kFpe), false, false, false, false},
      {Does(Action::kHmac), false, false, false, false},
      {Does(Action::kRandom), false, false, false, false},
      {Does(Action::kShift), false, true, false, false},
      {Quantises(0, false), true, true, false, false},
      {Quantises(1, false), true, true, false, false},
      {Quantises(2, false), false, false, false, false},
      {Quantises(1, true), false, true, false, false},
      {Quantises(2, true), false, false, false, false},
      {Pads(0), false, false, true, true},
      {Pads(1), false, false, true, true},
      {Pads(2), false, false, false, false},
  };
  for (const auto& row : rows) {
    const std::string text = RuleText(row.rule, false);
    const auto tells = [&](Field field) {
      return TellsExactly(PlanOf(IdOf(field), &row.rule));
    };
    EXPECT_EQ(tells(Field::kSize), row.size) << text;
    EXPECT_EQ(tells(Field::kOffset), row.transfer) << text;
    EXPECT_EQ(tells(Field::kData), row.bytes) << text;
    EXPECT_EQ(tells(Field::kTarget), row.target) << text;
    EXPECT_FALSE(tells(Field::kName)) << text;
  }
}

TEST(SizesTest, SumsTellWhatTheyWereOnlyWhereTheyAreCopied) {
  const Rule keep = Does(Action::kKeep);
  for (const format::ArgId id :
       {format::ArgId::kByteCount, format::ArgId::kSizeMax,
        format::ArgId::kSizeHistogram, format::ArgId::kDataRanges}) {
    FieldPlan plan = PlanOf(IdOf(id), &keep);
    for (const auto& [treatment, told] : {std::pair(Treatment::kCopy, true),
                                          {Treatment::kDrop, false},
                                          {Treatment::kNumber, false},
                                          {Treatment::kHistogram, false}}) {
      plan.treatment = treatment;
      EXPECT_EQ(TellsExactly(plan), told);
    }
  }
}

TEST(SizesTest, EachFieldThatTellsAHiddenSizeIsNamed) {
  const Rule hides = Does(Action::kBucket);
  const Rule keeps = Does(Action::kKeep);
  const FieldPlan size = PlanOf(IdOf(Field::kSize), &hides);
  const FieldPlan shown = PlanOf(IdOf(Field::kSize), &keeps);
  const FieldPlan offset = PlanOf(IdOf(Field::kOffset), &keeps);
  const FieldPlan target = PlanOf(IdOf(Field::kTarget), &keeps);
  const FieldPlan name = PlanOf(IdOf(Field::kName), &keeps);
  FieldPlan none = PlanOf(IdOf(Field::kNewSize), nullptr);
  EXPECT_TRUE(CheckSizes({}).ok());
  EXPECT_TRUE(CheckSizes({none}).ok());
  EXPECT_TRUE(CheckSizes({size}).ok());
  EXPECT_TRUE(CheckSizes({name, size, none}).ok());
  EXPECT_TRUE(CheckSizes({shown, offset, target}).ok()) << "none is hidden";
  for (const std::vector<FieldPlan>& fields :
       {std::vector{size, offset, target},
        {offset, size, target},
        {offset, target, size},
        {none, offset, name, size, target}}) {
    const Status status = CheckSizes(fields);
    ASSERT_EQ(status.code(), StatusCode::kInvalid);
    EXPECT_NE(status.message().find(
                  "policy:1: " + size.name +
                  " is 'bucket', but sizes of files would still be told by " +
                  offset.name + " (where the last transfer ends), " +
                  target.name + " (as long as the link); make"),
              std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace tracefs::anonymize
