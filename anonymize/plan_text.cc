// Plan: whether times stay in order, and what --explain says.
#include <algorithm>

#include "anonymize/plan.h"
#include "anonymize/rule_facts.h"
#include "tracefs/base/units.h"

namespace tracefs::anonymize {

Status Plan::CheckTimes() const {
  // All times of a trace are on one clock: they move together.
  for (const std::string_view name : {"time", "clock"}) {
    const FieldPlan* first = nullptr;
    for (const FieldPlan& field : fields_) {
      if (field.class_name != name || field.rule == nullptr) continue;
      if (first == nullptr) first = &field;
      if (RuleText(*field.rule, false) == RuleText(*first->rule, false)) {
        continue;
      }
      return Status::Invalid(
          Where(*field.rule) + field.name + " is '" +
          RuleText(*field.rule, false) + "' and " + first->name + " is '" +
          RuleText(*first->rule, false) + "': all times of class " +
          std::string(name) + " need the same action to stay in order");
    }
  }
  if (options_.reveal) return Status::Ok();
  const uint16_t time = Info(tracefs::Field::kTime).arg_id;
  const uint16_t duration = Info(tracefs::Field::kLatency).arg_id;
  const Rule* of_time = Field(time).rule;
  const Rule* of_duration = Field(duration).rule;
  if (of_time == nullptr || of_duration == nullptr ||
      of_time->action != Action::kQuantise) {
    return Status::Ok();
  }
  const bool exact = of_duration->action == Action::kKeep ||
                     (of_duration->action == Action::kQuantise &&
                      of_duration->step != of_time->step);
  if (exact) {
    return Status::Invalid(
        Where(*of_duration) + "times are quantised to " +
        std::to_string(of_time->step) +
        " ns; so must be durations, or operations would seem to end in "
        "another order (duration = quantise " +
        std::to_string(of_time->step) + "ns;)");
  }
  return Status::Ok();
}

std::string Plan::Explain() const {
  const auto pad = [](std::string text, size_t width) {
    text.resize(std::max(text.size() + 1, width), ' ');
    return text;
  };
  std::string text = pad("field", 26) + pad("class", 12) + pad("key", 14) +
                     "action (policy line)\n";
  for (const FieldPlan& field : fields_) {
    if (field.arg_id == 0) continue;
    std::string line = pad(field.name, 26);
    line += pad(field.class_name.empty() ? "-" : field.class_name, 12);
    if (field.rule == nullptr) {
      line += pad("-", 14) + "not covered: an error where it occurs";
    } else {
      const bool keyed = RuleNeedsKey(*field.rule);
      line += pad(!keyed                                 ? "-"
                  : field.rule->action == Action::kPaper ? field.name
                                                         : field.domain,
                  14);
      line += RuleText(*field.rule, true);
      if (!field.rule->extensions.empty() || !field.rule->keep.empty()) {
        line += ", but for " +
                std::to_string(field.rule->keep.size() +
                               field.rule->extensions.size()) +
                " listed values";
      }
      if (keyed && !IsReversible(field.rule->action) && !field.rule->shift) {
        line += "; one way";
      }
      if (field.follows != nullptr && field.treatment != Treatment::kCopy) {
        const bool out = field.treatment == Treatment::kDrop;
        line += (out ? "; left out, because of " : "; its values as ") +
                field.follows->name;
      }
      line += " (" + field.rule->origin + ")";
    }
    text += line + '\n';
  }
  for (const PolicyStatement& s : policy_.statements) {
    if (s.target != PolicyStatement::Target::kProperty &&
        s.target != PolicyStatement::Target::kMessage)
      continue;
    text += pad((s.target == PolicyStatement::Target::kProperty ? "property "
                                                                : "message ") +
                    s.name,
                38);
    text += pad(RuleNeedsKey(s.rule) ? std::string(kPropertyDomain) : "-", 14);
    text += RuleText(s.rule, true) + " (" + s.rule.origin + ")\n";
  }
  return text;
}

}  // namespace tracefs::anonymize
