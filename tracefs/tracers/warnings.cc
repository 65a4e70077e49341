#include "tracefs/tracers/warnings.h"

#include <algorithm>

#include "tracefs/base/join.h"
#include "tracefs/tracers/plan_facts.h"

namespace tracefs {
namespace {

// What the kernel answers from its caches there, of operations that it asks
// the mount for otherwise.
std::string AnsweredByKernel(const TracerPlan& plan,
                             std::string_view visibility) {
  std::vector<Op> ops;
  if (visibility == "auto") ops = {Op::lookup_, Op::getattr_};
  if (visibility == "fast") {
    ops = {Op::lookup_, Op::getattr_, Op::readdir_, Op::readlink_};
  }
  std::string text;
  for (const Op op : ops) {
    if (MayKeep(plan, op)) AppendWord(OpName(op), ", ", &text);
  }
  return text;
}

}  // namespace

std::vector<std::string> WarningsOf(const TracerPlan& plan,
                                    const WarningFacts& facts) {
  std::vector<std::string> warnings = plan.warnings;
  if (!plan.filter) return warnings;
  const auto say = [&](const std::string& text) {
    warnings.push_back(
        plan.filter_place.empty() ? text : plan.filter_place + ": " + text);
  };
  if (plan.filter->Names(Op::access_) && MayKeep(plan, Op::access_)) {
    say("no operation is ever 'access': the kernel checks permissions by "
        "itself (default_permissions); access(2) is seen as the lookups and "
        "getattrs that it makes");
  }
  if (FailsClosed({&plan, 1})) {
    if (const std::string kept = AnsweredByKernel(plan, facts.visibility);
        !kept.empty()) {
      say("not each " + kept +
          " comes to the mount, and so some are done "
          "unrecorded in spite of when_full = fail: --visibility " +
          std::string(facts.visibility) +
          " lets the kernel answer them for a while; mount with --visibility "
          "exact, or leave them out of the filter");
    }
  }
  if (facts.forwards_locks || !MayKeepLocks(plan)) return warnings;
  // Which does not name them has not asked for them: the header says what
  // cannot be seen.
  if (facts.mounted && NamesLocks({&plan, 1})) {
    say("it names lock operations, which the kernel has kept to itself since "
        "the mount began; mount with this tracer to see them");
  }
  return warnings;
}

void PutWarnings(const WarningFacts& facts, TracerPlan* plan) {
  const std::string text = JoinWords(WarningsOf(*plan, facts), "\n");
  if (!text.empty()) plan->parts.header.Set(kWarningsProperty, text);
}

std::vector<std::string> WarningsOf(std::span<const TracerPlan> plans,
                                    const WarningFacts& facts) {
  std::vector<std::string> all;
  for (const TracerPlan& plan : plans) {
    for (std::string& warning : WarningsOf(plan, facts)) {
      if (std::find(all.begin(), all.end(), warning) == all.end()) {
        all.push_back(std::move(warning));
      }
    }
  }
  return all;
}

}  // namespace tracefs
