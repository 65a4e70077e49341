#include "tracefs/tracers/rule_tap.h"

#include <algorithm>
#include <utility>

#include "tracefs/pipeline/block_builder.h"

namespace tracefs {

RuleTap::RuleTap(std::vector<Rule> rules,
                 std::shared_ptr<const AssemblyDriver> messages)
    : rules_(std::move(rules)), messages_(std::move(messages)) {}

AssemblyNeeds RuleTap::Needs(Op op) const {
  AssemblyNeeds needs = messages_->Needs(op);
  for (const Rule& rule : rules_) needs.AddThoseOf(rule.what.Needs(op));
  return needs;
}

bool RuleTap::Assemble(Event& event, BlockBuilder& block) const {
  // First: what a filter has to fetch is known to the message, too.
  const RuleMatches matches = RuleMatches::Of(rules_, event);
  if (!messages_->Assemble(event, block)) return false;
  block.writer().PutText(RuleMatches::kArgument, matches.bytes());
  return block.writer().End();
}

bool RuleTap::NamesDefined(const Event& event,
                           const BlockBuilder& block) const {
  return messages_->NamesDefined(event, block) &&
         std::ranges::none_of(rules_, [&](const Rule& rule) {
           return rule.what.Needs(event.op).before_reply();
         });
}

}  // namespace tracefs
