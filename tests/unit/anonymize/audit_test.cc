// The audit finds each field that stands in clear although the policy hides it,
// planted alone, and none where all of it is hidden.
#include "tracefs/tools/anon/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/anonymize/anon_world.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/tools/anon/audit_walk.h"

namespace tracefs::anonymize {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Audited {
  Status status;
  std::string report;
};

class AuditTest : public testing::Test {
 protected:
  AuditTest() : original_(folder_.Write("original", SampleTrace())) {}

  static Policy Parsed(const std::string& text) {
    auto policy = ParsePolicy(text, "test");
    EXPECT_TRUE(policy.ok()) << policy.status().message();
    return *std::move(policy);
  }

  // Hidden by one policy, examined by another.
  Audited Examined(const std::string& hidden_by, const std::string& wanted,
                   bool against = true) {
    const Policy policy = Parsed(wanted);
    return ExaminedBytes(MustHide(SampleTrace(), hidden_by), policy, against);
  }
  Audited ExaminedBytes(const std::string& bytes, const Policy& policy,
                        bool against = true) {
    AuditOptions options;
    options.trace = folder_.Write("hidden", bytes);
    if (against) options.original = original_;
    options.policy = &policy;
    Audited audited;
    audited.status = Audit(options, &audited.report);
    return audited;
  }

  // The fields of the sample that a policy hides.
  std::vector<FieldPlan> HiddenFields(const std::string& policy) {
    std::vector<FieldPlan> found;
    std::shared_ptr<const Plan> plan;  // what is found points into it
    std::vector<bool> occurs;
    Container container;
    const Visitor visitor = {
        .on_header =
            [&](const format::SelfDescription& description,
                const format::Preamble&, std::shared_ptr<const Plan>* out) {
              auto made = LookupPlan(Parsed(policy), description);
              EXPECT_TRUE(made.ok());
              *out = plan = *std::move(made);
              occurs.resize(plan->fields().size());
              found = plan->fields();
              return Status::Ok();
            },
        .wants_numbers = [](const FieldPlan&) { return true; },
        .on_argument =
            [&](const format::Message& message, const format::Argument& a,
                const FieldPlan& field) {
              bool before = false;
              if (!format::OperationOf(message.msg_id, &before)) return;
              // A zero says nothing, wherever it stands.
              if (std::ranges::all_of(
                      a.value, [](std::byte b) { return b == std::byte{0}; })) {
                return;
              }
              for (size_t i = 0; i < found.size(); ++i) {
                if (found[i].arg_id == field.arg_id) occurs[i] = true;
              }
            },
        .on_block = nullptr};
    EXPECT_TRUE(Walk(original_, {}, visitor, &container).ok());
    std::vector<FieldPlan> hidden;
    for (size_t i = 0; i < found.size(); ++i) {
      if (occurs[i] && Hidden(found[i]) && found[i].arg_id != 0 &&
          found[i].shape != Shape::kProperty) {
        hidden.push_back(found[i]);
      }
    }
    return hidden;
  }

  TempFolder folder_;
  const std::string original_;
};

std::string Profiled(std::string_view name) {
  for (const Profile& profile : Profiles()) {
    if (profile.name == name) return std::string(profile.text);
  }
  return {};
}

TEST_F(AuditTest, WhatIsHiddenAsThePolicySaysIsNoLeak) {
  for (const Profile& profile : Profiles()) {
    const std::string policy(profile.text);
    const Audited audited = Examined(policy, policy);
    EXPECT_TRUE(audited.status.ok())
        << profile.name << ": " << audited.status.message() << audited.report;
    EXPECT_THAT(audited.report, HasSubstr("\nNo leak found: "));
    EXPECT_THAT(audited.report, HasSubstr(" protected texts searched for"));
  }
}

class EveryProfile : public AuditTest,
                     public testing::WithParamInterface<const char*> {};

TEST_P(EveryProfile, EachFieldInClearAloneIsALeak) {
  const std::string policy = Profiled(GetParam());
  size_t planted = 0;
  for (const FieldPlan& field : HiddenFields(policy)) {
    const Outcome made = HideTrace(
        SampleTrace(), policy + "\n" + field.name + " = keep;\n", TestKeys());
    if (!made.status.ok()) continue;  // times go together
    ++planted;
    const Audited audited = ExaminedBytes(made.bytes, Parsed(policy));
    EXPECT_FALSE(audited.status.ok()) << field.name << "\n" << audited.report;
    EXPECT_THAT(audited.report, StartsWith("LEAK  ")) << field.name;
  }
  EXPECT_GT(planted, 10u);
}

INSTANTIATE_TEST_SUITE_P(Audit, EveryProfile,
                         testing::Values("research", "public"));

}  // namespace
}  // namespace tracefs::anonymize
