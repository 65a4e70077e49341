// The language of rules: what is understood, and what is refused where.
#include "tracefs/rules/rule.h"

#include <gtest/gtest.h>

#include <map>

namespace tracefs {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class RuleTest : public ::testing::Test {
 protected:
  Result<Rule> Parse(std::string_view text) {
    return ParseRule(text, {.file = "x.conf", .position = {3, 9}},
                     SystemNameService(), names_);
  }
  std::string Error(std::string_view text) {
    const Result<Rule> rule = Parse(text);
    return rule.ok() ? "none" : rule.status().message();
  }
  static bool MayKeep(const Rule& rule, Op op) {
    return rule.what.Needs(op).constant != Verdict::kDrop;
  }

  NameTable names_;
};

TEST_F(RuleTest, RateByKeyForATime) {
  const auto rule = Parse(
      "rate(unlink by pid) > 100/s for 5s then { snapshot 2; raise detail for "
      "10m }");
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  EXPECT_EQ(rule->key, RuleKey::kPid);
  EXPECT_EQ(rule->limit, 100u);
  EXPECT_EQ(rule->window_ns, kSecond);
  EXPECT_EQ(rule->windows, 5u);
  EXPECT_TRUE(MayKeep(*rule, Op::unlink_));
  EXPECT_FALSE(MayKeep(*rule, Op::rmdir_));
  EXPECT_EQ(rule->title, "rate(unlink by pid) > 100/s for 5s");
  ASSERT_EQ(rule->actions.size(), 2u);
  EXPECT_EQ(rule->actions[0].kind, RuleAction::Kind::kSnapshot);
  EXPECT_EQ(rule->actions[0].tracer, "2");
  EXPECT_EQ(rule->actions[1].kind, RuleAction::Kind::kRaise);
  EXPECT_EQ(rule->actions[1].tracer, "detail");
  EXPECT_EQ(rule->actions[1].duration_ns, 600 * kSecond);
  // Raised, it records everything.
  EXPECT_EQ(rule->actions[1].filter->Needs(Op::read_).constant, Verdict::kKeep);
}

TEST_F(RuleTest, Hold_ForAMinuteAndThenFailUnlessSaid) {
  const auto action = [&](std::string_view text) {
    const auto rule =
        Parse("rate(write by pid) > 9/s then { " + std::string(text) + " }");
    EXPECT_TRUE(rule.ok()) << rule.status().message();
    EXPECT_EQ(rule->actions.size(), 1u);
    EXPECT_EQ(rule->actions[0].kind, RuleAction::Kind::kHold);
    EXPECT_EQ(rule->actions[0].tracer, "");
    return std::pair(rule->actions[0].duration_ns, rule->actions[0].fails);
  };
  EXPECT_EQ(action("hold"), std::pair(60 * kSecond, true));
  EXPECT_EQ(action("hold for 5s"), std::pair(5 * kSecond, true));
  EXPECT_EQ(action("hold then go on"), std::pair(60 * kSecond, false));
  EXPECT_EQ(action("hold for 10m then fail;"), std::pair(600 * kSecond, true));
}

TEST_F(RuleTest, Hold_WithoutABoundOrOfNobodyInParticularIsRefused) {
  const auto error = [&](const std::string& key, const std::string& text) {
    return Error("seen(write" + key + ") then { " + text + " }");
  };
  EXPECT_NE(error(" by pid", "hold for 11m").find("lasts 10m at most"),
            std::string::npos);
  EXPECT_NE(error(" by pid", "hold then").find("'fail' or 'go on'"),
            std::string::npos);
  EXPECT_NE(error(" by pid", "hold then go").find("'on'"), std::string::npos);
  EXPECT_NE(error(" by pid", "hold 2").find("';' or '}'"), std::string::npos);
  for (const char* key :
       {"", " by inode", " by cname", " by gid", " by ppid"}) {
    EXPECT_NE(error(key, "hold").find("count by pid or tree"),
              std::string::npos)
        << key;
  }
  for (const char* key : {" by pid", " by tree", " by uid"}) {
    EXPECT_EQ(error(key, "hold"), "none") << key;
  }
}

TEST_F(RuleTest, OperationsAreNamesOrAFilter) {
  const auto names = Parse("seen(rename, unlink) then { }");
  ASSERT_TRUE(names.ok()) << names.status().message();
  EXPECT_TRUE(MayKeep(*names, Op::rename_));
  EXPECT_TRUE(MayKeep(*names, Op::unlink_));
  EXPECT_FALSE(MayKeep(*names, Op::link_));
  EXPECT_TRUE(names->actions.empty());
  const auto filter = Parse(
      "seen((op = open AND path ~ \"/a)b\") OR op IN { link by } # )\n by uid) "
      "then { alarm \"hands off\" }");
  // `by` is not an operation: the filter is read whole, string and comment.
  EXPECT_FALSE(filter.ok());
  const auto good = Parse(
      "seen((op = open AND path ~ \"/a)b\") OR name = by # )\n by uid) then { "
      "alarm \"hands off\" }");
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(good->key, RuleKey::kUid);
  EXPECT_EQ(good->title, "hands off");
}

TEST_F(RuleTest, RatesArePerSecondMinuteOrHour) {
  const std::map<std::string, std::pair<uint64_t, uint64_t>> cases = {
      {"3/s", {kSecond, 1}},
      {"3/m for 1s", {60 * kSecond, 1}},
      {"3/m for 61s", {60 * kSecond, 2}},
      {"3/h", {3600 * kSecond, 1}},
      {"3/s for 1500ms", {kSecond, 2}},
      {"100/10s", {10 * kSecond, 1}},
      {"100 / 10s", {10 * kSecond, 1}},
      {"5/500ms", {kSecond / 2, 1}},
      {"3/2m for 3m", {120 * kSecond, 2}},
      {"1/24h", {24 * 3600 * kSecond, 1}},
  };
  for (const auto& [text, want] : cases) {
    const auto rule = Parse("rate(unlink) > " + text + " then { }");
    ASSERT_TRUE(rule.ok()) << rule.status().message();
    EXPECT_EQ(std::make_pair(rule->window_ns, rule->windows), want) << text;
  }
}

TEST_F(RuleTest, ErrorsNameThePlaceAndTheNearestWord) {
  const std::map<std::string, std::string> cases = {
      {"rte(unlink) > 1/s then { }",
       "x.conf:3:9: expected rate(…) or seen(…) after 'when', found 'rte'; "
       "did you mean 'rate'?"},
      {"rate(unlnk) > 1/s then { }",
       "x.conf:3:14: unknown operation 'unlnk'; did you mean 'unlink'?"},
      {"rate(unlink by pidd) > 1/s then { }", "did you mean 'pid'?"},
      {"rate() > 1/s then { }", "x.conf:3:14: which operations?"},
      {"rate(unlink) < 1/s then { }", "expected '>' and a rate"},
      {"rate(unlink) > x/s then { }", "expected a number after '>'"},
      {"rate(unlink) > 1/d then { }", "a rate is per s, m, h or a time"},
      {"rate(unlink) > 1/10 then { }", "such as 10s, not '10'"},
      {"rate(unlink) > 1/10ms then { }", "from 100ms to 24h"},
      {"rate(unlink) > 1/25h then { }", "from 100ms to 24h"},
      {"rate(unlink) > 1/ then { }", "not 'then'"},
      {"rate(unlink by tre) > 1/s then { }", "did you mean 'tree'?"},
      {"rate(unlink) > 1/s for 0 then { }", "expected a time such as 5s"},
      {"rate(unlink) > 1/s for 25h then { }", "longer than a day"},
      {"rate(unlink) > 1/s", "expected 'then'"},
      {"rate(unlink) > 1/s then { snapsot 2 }", "did you mean 'snapshot'?"},
      {"rate(unlink) > 1/s then { snapshot }", "expected a tracer"},
      {"rate(unlink) > 1/s then { raise 2 }", "expected 'for' and a time"},
      {"rate(unlink) > 1/s then { raise 2 to \"opp = 3\" for 1s }",
       "did you mean 'op'?"},
      {"rate(unlink) > 1/s then { stop 2", "expected ';' or '}'"},
      {"rate(unlink) > 1/s then { } now", "expected the end of the rule"},
      {"rate(unlink > 1/s then { }", "expected ')'"},
      {"", "expected rate(…) or seen(…)"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_NE(Error(text).find(message), std::string::npos)
        << text << ": " << Error(text);
  }
}

TEST_F(RuleTest, WhatCanNeverFireIsRefused) {
  for (const char* text : {"seen(op = unlink AND op = rename) then { }",
                           "seen(op = unlink AND offset > 3) then { }",
                           "rate(cuid > 5 AND cuid < 3) > 1/s then { }",
                           "rate(unlink) > 10000000/s then { }"}) {
    EXPECT_NE(Error(text).find("can never fire"), std::string::npos)
        << text << ": " << Error(text);
  }
}

TEST_F(RuleTest, Malicious_NoTextDoesHarm) {
  const std::string good =
      "rate((op = unlink) by pid) > 100/s for 5s then { snapshot 2; raise 2 to "
      "\"op = read\" for 10m; alarm \"x\" }";
  ASSERT_EQ(Error(good), "none");
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_NE(Error(good.substr(0, cut)), "none") << cut;
    std::string changed = good;
    for (const char c : {'(', '}', '"', '\0', '\xff', '#'}) {
      changed[cut] = c;
      static_cast<void>(Parse(changed));
    }
  }
  static_cast<void>(Parse("rate(" + std::string(100000, '(')));
  static_cast<void>(Parse("seen(unlink) then {" + std::string(100000, ';')));
}

TEST_F(RuleTest, OneFilterKeepsWhatAnyRuleCounts) {
  std::vector<Rule> rules;
  for (const char* text : {"seen(unlink) then { }",
                           "seen(op = open AND name = x # why\n) then { }"}) {
    auto rule = Parse(text);
    ASSERT_TRUE(rule.ok()) << rule.status().message();
    rules.push_back(std::move(*rule));
  }
  const auto filter = FilterOf(rules, SystemNameService(), names_);
  ASSERT_TRUE(filter.ok()) << filter.status().message();
  EXPECT_EQ(filter->Needs(Op::unlink_).constant, Verdict::kKeep);
  EXPECT_EQ(filter->Needs(Op::open_).constant, Verdict::kUndecided);
  EXPECT_EQ(filter->Needs(Op::read_).constant, Verdict::kDrop);
}

}  // namespace
}  // namespace tracefs
