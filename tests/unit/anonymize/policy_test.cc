#include "anonymize/policy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "anonymize/sizes.h"
#include "tests/unit/anonymize/anon_world.h"
#include "tracefs/format/names.h"

namespace tracefs::anonymize {
namespace {

std::string ErrorOf(const std::string& policy) {
  const Result<Policy> parsed = ParsePolicy(policy, "p");
  return parsed.ok() ? "" : parsed.status().message();
}

// What applying a policy to the sample trace complains about.
std::string PlanErrorOf(const std::string& policy) {
  const Outcome outcome = HideTrace(SampleTrace(), policy, TestKeys());
  EXPECT_EQ(outcome.status.code(), StatusCode::kInvalid) << policy;
  return outcome.status.message();
}

TEST(Policy, ErrorsNamePlaceWordAndTheNearestKnownOne) {
  EXPECT_EQ(ErrorOf("uid = fpe;\nuidd = keep;").substr(0, 54),
            "p:2:1: there is no class of fields 'uidd'; did you mea");
  EXPECT_EQ(ErrorOf("uid = encypt;"),
            "p:1:7: there is no action 'encypt'; did you mean 'encrypt'?");
  EXPECT_EQ(ErrorOf("use reserch;"),
            "p:1:5: there is no profile 'reserch'; did you mean 'research'?");
  EXPECT_EQ(ErrorOf("name = encrypt keep-dotz;"),
            "p:1:16: 'keep-dotz' is no option of 'encrypt'; did you mean "
            "'keep-dots'?");
  EXPECT_EQ(ErrorOf("uid keep;"), "p:1:5: expected '=' after the fields");
  EXPECT_EQ(ErrorOf("uid = keep"),
            "p:1:11: expected an option or ';', found the end");
  EXPECT_EQ(ErrorOf("uid = fpe keep { 1"),
            "p:1:19: expected a value or '}', found the end");
  EXPECT_EQ(ErrorOf("time = quantise 0;"),
            "p:1:17: '0' is no step: write 1ms, 4096 or 4K, for example");
}

TEST(Policy, RefusesTwoActionsForOneField) {
  EXPECT_EQ(ErrorOf("uid = keep;\nuid = drop;"),
            "p:2:1: 'uid' already has an action (p:1): one of them must go");
  EXPECT_EQ(ErrorOf("uid, uid = keep;").substr(0, 7), "p:1:6: ");
  EXPECT_EQ(ErrorOf("uid = keep; use research;").substr(0, 8), "p:1:13: ");
}

TEST(Policy, StatementsOverrideTheProfileTheyUse) {
  const Result<Policy> policy = ParsePolicy("use research; uid = drop;", "p");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy->Find(PolicyStatement::Target::kClass, "uid")->action,
            Action::kDrop);
  EXPECT_EQ(policy->Find(PolicyStatement::Target::kClass, "gid")->action,
            Action::kFpe);
}

TEST(Policy, TextParsesToTheSame) {
  for (const Profile& profile : Profiles()) {
    const Result<Policy> policy = ParsePolicy(profile.text, profile.name);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    const std::string text = PolicyText(*policy, false);
    const Result<Policy> again = ParsePolicy(text, "again");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(PolicyText(*again, false), text);
  }
}

TEST(Policy, TextSaysEachOption) {
  const std::string text =
      "keys daily;\n"
      "name = encrypt keep { \"a b\" \"caf\\xc3\\xa9\" \"q\\x22\" x \"~\\x7f\" "
      "} "
      "keep-dots keep-marks keep-digits tree pad 16 ext join;\n"
      "xattr = hmac keep-namespace;\n"
      "ARG_TARGET = encrypt ext keep;\n"
      "time = shift quantise 5;\n"
      "size = quantise 4096;\n"
      "uid = keep-values { 0 1000 };\n"
      "property host = drop;\n"
      "message MSG_LATER = keep;\n";
  const Result<Policy> policy = ParsePolicy(text, "p");
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  EXPECT_EQ(PolicyText(*policy, false), text);
}

TEST(Policy, TextForTheTraceHasNoWordLists) {
  const Result<Policy> policy = ParsePolicy(
      "name = encrypt keep { salaries } ext { payroll }; "
      "uid = fpe keep { 0 1000 };",
      "p");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(PolicyText(*policy, true),
            "name = encrypt;\nuid = fpe keep { 0 1000 };\n");
}

TEST(Policy, WhatItDoesNotCoverIsNamed) {
  std::string policy = KeepAllBut("uid = keep;\n");
  policy.replace(policy.find("comm = keep;"), 12, "");
  EXPECT_EQ(PlanErrorOf(policy),
            "trace: policy policy does not say what becomes of ARG_COMM, "
            "ARG_TTY, ARG_ANCESTOR, ARG_ANCESTOR_COMM; add a statement for "
            "each, 'drop' if in "
            "doubt");
}

// Only what tracefs-anon itself writes needs no rule.
TEST(Policy, APropertyThatNoRuleNamesIsRefused) {
  std::string policy = KeepAllBut("uid = keep;\n");
  const std::string all = "property * = drop;";
  ASSERT_NE(policy.find(all), std::string::npos);
  policy.replace(policy.find(all), all.size(), "property anon.policy = keep;");
  for (const char* name : {"anonymous", "anon", "a.b", "host.name"}) {
    test::TraceBuilder trace;
    trace.header().properties.clear();
    trace.header().Set(name, "value");
    trace.EndBlock();
    trace.Finish();
    const Outcome outcome = HideTrace(trace.bytes(), policy, TestKeys());
    EXPECT_EQ(outcome.status.code(), StatusCode::kInvalid) << name;
    EXPECT_NE(outcome.status.message().find("'" + std::string(name) + "'"),
              std::string::npos)
        << outcome.status.message();
  }
}

TEST(Policy, FieldsThatNoTraceHasAreRefused) {
  EXPECT_EQ(PlanErrorOf(KeepAllBut("ARG_UUID = drop;\n")),
            "trace: policy:1: no trace has a field 'ARG_UUID'; did you mean "
            "'ARG_UID'?");
}

TEST(Policy, ContradictionsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"time = fpe;\n", "would destroy the order"},
      {"time = random;\n", "would destroy the order"},
      {"time = quantise 1ms;\n", "so must be durations"},
      {"time = quantise 1ms;\nduration = quantise 1us;\n",
       "so must be durations"},
      {"ARG_TIME_NS = shift;\n", "need the same action"},
      {"structure = drop;\n", "can only be kept"},
      {"totals = zero;\n", "can only be kept"},
      {"name = fpe;\n", "needs an integer"},
      {"mode = fpe;\n", "needs an integer"},  // ARG_INODE_TYPE has one byte
      {"size = bucket;\n", "would still be told by ARG_OFFSET"},
      {"size = bucket;\nio = bucket;\n", "would still be told by ARG_RESULT"},
      {"size = bucket;\nio = bucket;\nresult = bucket;\n",
       "would still be told by ARG_TARGET"},
      {"size = bucket;\nio = bucket;\nresult = bucket;\nARG_TARGET = drop;\n",
       "would still be told by ARG_DATA"},
      {"size = bucket;\nio = bucket;\nresult = bucket;\nARG_TARGET = drop;\n"
       "data = zero;\n",
       "would still be told by ARG_DATA"},
      {"size = bucket;\nio = bucket;\nresult = bucket;\nARG_TARGET = drop;\n"
       "data = encrypt;\n",
       "would still be told by ARG_DATA"},
      {"size = drop;\nio = quantise 1;\nresult = bucket;\ndata = drop;\n"
       "ARG_TARGET = drop;\n",
       "would still be told by ARG_OFFSET"},
      {"size = bucket;\nio = shift;\nresult = bucket;\ndata = drop;\n"
       "ARG_TARGET = drop;\n",
       "would still be told by ARG_OFFSET"},
      {"size = drop;\nio = bucket;\nresult = shift quantise 1;\n"
       "data = drop;\nARG_TARGET = drop;\n",
       "would still be told by ARG_RESULT"},
      {"size = fpe;\nio = fpe;\nresult = fpe;\ndata = drop;\n"
       "ARG_TARGET = drop;\nARG_LENGTH = keep;\n",
       "would still be told by ARG_LENGTH"},
      {"uid = keep keep-dots;\n", "options of names"},
      {"comm = encrypt tree;\n", "'tree' is an option"},
      {"uid = fpe pad 16;\n", "'pad' is an option"},
      {"uid = fpe keep { root };\n", "cannot be kept"},
      {"property * = keep;\n", "must be named one by one"},
      {"property x = fpe;\n", "properties can be"},
      {"message MSG_OPEN = drop;\n", "is known"},
      {"message MSG_FUTURE = drop;\n", "has no message"},
  };
  for (const auto& [statement, message] : cases) {
    EXPECT_NE(PlanErrorOf(KeepAllBut(statement)).find(message),
              std::string::npos)
        << statement << PlanErrorOf(KeepAllBut(statement));
  }
}

TEST(Policy, KeysAreAskedForByName) {
  const Outcome outcome =
      HideTrace(SampleTrace(), KeepAllBut("gid = fpe;\n"), KeySet());
  EXPECT_NE(
      outcome.status.message().find("ARG_GID needs the key of domain gid"),
      std::string::npos)
      << outcome.status.message();
}

// A field that is added must say what it tells.
TEST(Policy, OfEveryFieldItIsKnownWhatItTellsOfSizes) {
  std::ifstream page(POLICY_PAGE);
  std::stringstream text;
  text << page.rdbuf();
  for (const format::ArgumentInfo& argument : format::BuiltInArguments()) {
    const SizeTell tells = TellsOfSize(argument.arg_id);
    EXPECT_NE(tells, SizeTell::kUnknown) << argument.name;
    if (tells == SizeTell::kNothing) continue;
    EXPECT_NE(text.str().find("`" + std::string(argument.name) + "`"),
              std::string::npos)
        << argument.name << " is not in the table of POLICY.md";
  }
}

// The names that people are told are those that are taken.
TEST(Policy, ProfilesOfThePagesAreThoseThereAre) {
  std::set<std::string> known;
  for (const Profile& profile : Profiles()) known.emplace(profile.name);
  const auto read = [](const char* name) {
    std::ifstream file(name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  std::string page = read(POLICY_PAGE);
  page = page.substr(page.find("## Profiles"));
  page = page.substr(0, page.find("## ", 3));
  std::set<std::string> told;
  const std::regex row("\n\\| `([a-z-]+)` \\|");
  for (std::sregex_iterator i(page.begin(), page.end(), row), end; i != end;
       ++i) {
    told.insert((*i)[1]);
  }
  EXPECT_EQ(told, known);
  std::string manual = read(MANUAL_PAGE);
  manual = manual.substr(manual.find("is the name of a profile"));
  manual = manual.substr(0, manual.find("or a file in the language"));
  told.clear();
  const std::regex word("[a-z][a-z-]+");
  const std::string list = manual.substr(manual.find(".RB"));
  for (std::sregex_iterator i(list.begin(), list.end(), word), end; i != end;
       ++i) {
    told.insert((*i)[0]);
  }
  EXPECT_EQ(told, known);
}

TEST(Policy, ProfilesCoverEverythingThisVersionWrites) {
  for (const Profile& profile : Profiles()) {
    const Outcome outcome =
        HideTrace(SampleTrace(), std::string(profile.text), TestKeys());
    EXPECT_TRUE(outcome.status.ok())
        << profile.name << ": " << outcome.status.message();
  }
}

}  // namespace
}  // namespace tracefs::anonymize
