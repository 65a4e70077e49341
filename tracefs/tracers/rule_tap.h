// RuleTap: the assembly driver of what feeds the rules of a tracer. It writes
// the messages of another driver, and into each which of the rules count the
// operation: only here is all known that their filters may ask for.
#pragma once

#include <memory>
#include <vector>

#include "tracefs/pipeline/stages.h"
#include "tracefs/rules/rule.h"

namespace tracefs {

class RuleTap final : public AssemblyDriver {
 public:
  // `messages` writes one message when an operation is done, and none but that.
  RuleTap(std::vector<Rule> rules,
          std::shared_ptr<const AssemblyDriver> messages);

  AssemblyNeeds Needs(Op op) const override;
  bool Assemble(Event& event, BlockBuilder& block) const override;
  bool NamesDefined(const Event& event,
                    const BlockBuilder& block) const override;

 private:
  const std::vector<Rule> rules_;
  const std::shared_ptr<const AssemblyDriver> messages_;
};

}  // namespace tracefs
