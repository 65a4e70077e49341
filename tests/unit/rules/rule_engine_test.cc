// When rules fire, compared with a plain recount of all operations.
#include "tracefs/rules/rule_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tracefs {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

class RuleEngineTest : public ::testing::Test {
 protected:
  void Use(std::initializer_list<const char*> texts) {
    for (const char* text : texts) {
      auto rule = ParseRule(text, {}, SystemNameService(), names_);
      ASSERT_TRUE(rule.ok()) << rule.status().message();
      rules_.push_back(std::move(*rule));
    }
    engine_ = std::make_unique<RuleEngine>(rules_);
  }
  // An operation; how many alarms it raises.
  size_t Do(Op op, uint64_t time_ns, uint32_t pid = 7) {
    CallerInfo caller;
    caller.pid = pid;
    const std::string_view comm = "worker";
    comm.copy(caller.comm_bytes.data(), comm.size());
    caller.comm_size = static_cast<uint8_t>(comm.size());
    Event event;
    event.op = op;
    event.caller = &caller;
    event.caller_resolved = event.attributes_resolved = true;
    event.Set(Field::kTime, time_ns);
    event.Set(Field::kPid, pid);
    event.Set(Field::kUid, 1000);
    const size_t before = alarms_.size();
    engine_->Observe(event, RuleMatches::Of(rules_, event), &alarms_);
    return alarms_.size() - before;
  }

  NameTable names_;
  std::vector<Rule> rules_;
  std::unique_ptr<RuleEngine> engine_;
  std::vector<Alarm> alarms_;
};

// Refused or not, what was done before the end of a hold is no reason for the
// next one; what comes after it is, without a pause.
TEST_F(RuleEngineTest, WhomAHoldDidNotLetGoMakesItFireAgain) {
  Use({"rate(unlink by tree) > 3/s then { hold for 60s }"});
  const auto burst = [&](uint64_t from_ns, uint32_t pid = 7) {
    size_t alarms = 0;
    for (uint64_t i = 0; i < 8; ++i) {
      alarms += Do(Op::unlink_, from_ns + i * 100 * kMs, pid);
    }
    return alarms;
  };
  EXPECT_EQ(burst(kSecond), 1u);
  EXPECT_EQ(burst(kSecond, 8), 1u);
  EXPECT_EQ(burst(2 * kSecond), 0u) << "it is held";
  engine_->Rearm({.rule = 0, .pid = 7, .uid = 1000, .at_ns = 3 * kSecond});
  EXPECT_EQ(Do(Op::unlink_, 3 * kSecond - 1), 0u);
  EXPECT_EQ(Do(Op::unlink_, 3 * kSecond), 0u) << "the first of the next four";
  EXPECT_EQ(burst(3 * kSecond + kMs), 1u);
  EXPECT_EQ(burst(4 * kSecond, 8), 0u) << "another, who is held";
  // A user who was held for having too many processes.
  engine_->Rearm({.rule = 0, .pid = 0, .uid = 1000, .at_ns = 5 * kSecond});
  EXPECT_EQ(burst(5 * kSecond), 1u);
  EXPECT_EQ(burst(5 * kSecond, 8), 1u);
  engine_->Rearm({.rule = 1, .pid = 7, .uid = 1000, .at_ns = 6 * kSecond});
}

TEST_F(RuleEngineTest, SeenFiresOnceUntilItIsCalmAgain) {
  Use({"seen(unlink) then { }"});
  EXPECT_EQ(Do(Op::rename_, kSecond), 0u);
  EXPECT_EQ(Do(Op::unlink_, kSecond), 1u);
  for (uint64_t t = 2; t < 20; ++t) EXPECT_EQ(Do(Op::unlink_, t * kSecond), 0u);
  EXPECT_EQ(Do(Op::unlink_, 19 * kSecond + RuleEngine::kCalmNs), 1u);
  EXPECT_EQ(engine_->standing(0).matched, 20u);
  EXPECT_EQ(engine_->standing(0).alarms, 2u);
  EXPECT_EQ(alarms_[0].command, "worker");
  EXPECT_EQ(alarms_[0].pid, 7u);
  EXPECT_EQ(alarms_[0].key, "");
}

TEST_F(RuleEngineTest, RateFiresWithTheFirstOperationBeyondIt) {
  Use({"rate(unlink by pid) > 10/s then { }"});
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(Do(Op::unlink_, kSecond + i * kMs, 1), 0u);
    EXPECT_EQ(Do(Op::unlink_, kSecond + i * kMs, 2), 0u);
  }
  EXPECT_EQ(Do(Op::unlink_, kSecond + 10 * kMs, 2), 1u);
  EXPECT_EQ(alarms_[0].key, "pid 2");
  EXPECT_EQ(alarms_[0].count, 11u);
}

TEST_F(RuleEngineTest, SustainedMeansEachOfTheSeconds) {
  Use({"rate(unlink by pid) > 10/s for 3s then { }"});
  // A second of calm in between begins anew.
  uint64_t fired = 0;
  for (const uint64_t second : {1, 2, 4, 5}) {
    for (uint64_t i = 0; i < 100; ++i) {
      fired += Do(Op::unlink_, second * kSecond + i * 10 * kMs);
    }
  }
  EXPECT_EQ(fired, 0u);
  for (uint64_t i = 0; i < 100; ++i) {
    fired += Do(Op::unlink_, 6 * kSecond + i * 10 * kMs);
  }
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(alarms_[0].time_ns, 6 * kSecond + 100 * kMs);
}

// More than `limit` in each of `windows` windows, the first of which begins
// with an operation: tried with every operation as the first one.
bool Oracle(const std::vector<uint64_t>& times, uint64_t limit,
            uint64_t windows) {
  for (const uint64_t start : times) {
    uint64_t over = 0;
    for (uint64_t w = 0; w < windows; ++w) {
      uint64_t count = 0;
      for (const uint64_t t : times) {
        if (t >= start + w * kSecond && t < start + (w + 1) * kSecond) ++count;
      }
      if (count > limit) ++over;
    }
    if (over == windows) return true;
  }
  return false;
}

TEST_F(RuleEngineTest, Random_NeverFiresWithoutAndAlwaysAtTwiceTheRate) {
  Use({"rate(unlink by pid) > 20/s for 3s then { }"});
  std::mt19937_64 random(1);
  int without = 0;
  int twice = 0;
  for (int round = 0; round < 300; ++round) {
    const uint64_t mean = 5 + random() % 60;  // a second
    std::vector<uint64_t> times;
    uint64_t now = kSecond;
    while (now < 6 * kSecond) {
      times.push_back(now);
      now += random() % (2 * kSecond / mean);
    }
    engine_ = std::make_unique<RuleEngine>(rules_);
    size_t fired = 0;
    for (const uint64_t t : times) fired += Do(Op::unlink_, t);
    if (!Oracle(times, 20, 3)) {
      EXPECT_EQ(fired, 0u);
      ++without;
    }
    // Twice the rate everywhere: any window sees it.
    if (mean >= 55) {
      EXPECT_EQ(fired, 1u);
      ++twice;
    }
  }
  EXPECT_GT(without, 20);
  EXPECT_GT(twice, 10);
}

TEST_F(RuleEngineTest, TimesMayGoBackALittle) {
  Use({"rate(unlink) > 10/s for 2s then { }"});
  size_t fired = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t t = 5 * kSecond + i * 10 * kMs;
    fired += Do(Op::unlink_, i % 7 == 0 ? t - 200 * kMs : t);
  }
  EXPECT_EQ(fired, 1u);
}

TEST_F(RuleEngineTest, Malicious_KeysWithoutNumberTakeBoundedMemoryAndTime) {
  Use({"rate(unlink by pid) > 3/s then { }"});
  for (uint32_t pid = 1; pid < 200000; ++pid) {
    Do(Op::unlink_, kSecond + pid * 1000, pid);
  }
  // What found no room is counted together.
  ASSERT_GE(alarms_.size(), 1u);
  EXPECT_LE(alarms_.size(), Rule::kMaxAlarmsPerMinute);
}

TEST_F(RuleEngineTest, Malicious_AlarmsAreBounded) {
  Use({"seen(unlink by pid) then { }"});
  for (uint32_t pid = 1; pid <= 1000; ++pid) Do(Op::unlink_, kSecond, pid);
  EXPECT_EQ(alarms_.size(), Rule::kMaxAlarmsPerMinute);
  EXPECT_EQ(engine_->standing(0).alarms, 1000u);
  EXPECT_EQ(engine_->standing(0).suppressed, 1000 - Rule::kMaxAlarmsPerMinute);
  EXPECT_EQ(Do(Op::unlink_, 62 * kSecond, 1), 1u);
}

TEST_F(RuleEngineTest, Malicious_WhatIsToBeHeldIsToldHoweverManyFire) {
  Use({"seen(unlink by pid) then { hold for 5s }"});
  for (uint32_t pid = 1; pid <= 1000; ++pid) Do(Op::unlink_, kSecond, pid);
  ASSERT_EQ(alarms_.size(), 1000u);
  EXPECT_FALSE(alarms_[Rule::kMaxAlarmsPerMinute - 1].quiet);
  EXPECT_TRUE(alarms_[Rule::kMaxAlarmsPerMinute].quiet);
  EXPECT_EQ(alarms_.back().pid, 1000u);
  EXPECT_EQ(engine_->standing(0).suppressed, 1000 - Rule::kMaxAlarmsPerMinute);
}

// A key in alarm is not forgotten for want of room: it would fire at once
// again.
TEST_F(RuleEngineTest, KeysInAlarmAreKeptHoweverManyOthersCome) {
  Use({"rate(unlink by pid) > 1/s then { }"});
  Do(Op::unlink_, kSecond, 1);
  EXPECT_EQ(Do(Op::unlink_, kSecond, 1), 1u);
  // Quiet keys, as many as there is room for; two windows later one more.
  for (uint32_t pid = 2; pid <= RuleEngine::kMaxKeys; ++pid) {
    Do(Op::unlink_, kSecond, pid);
  }
  Do(Op::unlink_, 4 * kSecond, 888'888);
  alarms_.clear();
  Do(Op::unlink_, 5 * kSecond, 1);
  EXPECT_EQ(Do(Op::unlink_, 5 * kSecond, 1), 0u);
  // What was quiet did make room.
  Do(Op::unlink_, 8 * kSecond, 999'999);
  EXPECT_EQ(Do(Op::unlink_, 8 * kSecond, 999'999), 1u);
  EXPECT_EQ(alarms_.back().key, "pid 999999");
}

// Parents, as /proc has them; those that are gone are not there.
class FakeParents final : public ProcessParents {
 public:
  uint32_t ParentOf(uint32_t pid) override {
    const auto found = parents.find(pid);
    return found == parents.end() ? 0 : found->second;
  }
  std::map<uint32_t, uint32_t> parents;
};

class TreeTest : public RuleEngineTest {
 protected:
  void UseTrees(const char* text) {
    auto rule = ParseRule(text, {}, SystemNameService(), names_);
    ASSERT_TRUE(rule.ok()) << rule.status().message();
    rules_.push_back(std::move(*rule));
    engine_ = std::make_unique<RuleEngine>(rules_, &parents_);
  }
  size_t DoAs(uint32_t pid, uint32_t ppid, uint64_t time_ns) {
    Event event;
    event.op = Op::unlink_;
    event.caller_resolved = event.attributes_resolved = true;
    event.Set(Field::kTime, time_ns);
    event.Set(Field::kPid, pid);
    event.Set(Field::kPpid, ppid);
    event.Set(Field::kSid, 50);
    const size_t before = alarms_.size();
    engine_->Observe(event, RuleMatches::Of(rules_, event), &alarms_);
    return alarms_.size() - before;
  }
  FakeParents parents_;
};

TEST_F(TreeTest, ManyShortLivedProcessesAreCountedForTheirParent) {
  UseTrees("rate(unlink by ppid) > 100/10s then { }");
  size_t fired = 0;
  for (uint32_t i = 0; i < 150; ++i) {
    fired += DoAs(1000 + i, 40, kSecond + i * 50 * kMs);
  }
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(alarms_[0].key, "ppid 40");
  EXPECT_EQ(alarms_[0].count, 101u);
}

TEST_F(TreeTest, AndForAllTheirAncestorsOfWhomTheLowestIsTold) {
  UseTrees("rate(unlink by tree) > 100/10s then { }");
  parents_.parents = {{40, 30}, {30, 20}, {20, 1}};
  size_t fired = 0;
  // A child of each shell, which is a child of 40 itself.
  for (uint32_t i = 0; i < 150; ++i) {
    const uint32_t shell = 2000 + 2 * i;
    parents_.parents[shell] = 40;
    fired += DoAs(shell + 1, shell, kSecond + i * 50 * kMs);
    parents_.parents.erase(shell);
  }
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(alarms_[0].key, "tree 40");
  EXPECT_EQ(alarms_[0].key_pid, 40u);
}

TEST_F(TreeTest, ParentsThatAreGoneAreThoseThatDidSomething) {
  UseTrees("rate(unlink by tree) > 2/10s then { }");
  DoAs(60, 59, kSecond);  // its parent is 59, which nobody can ask any more
  DoAs(61, 60, kSecond);
  EXPECT_EQ(DoAs(62, 60, kSecond), 1u);
  EXPECT_EQ(alarms_[0].key, "tree 60");
}

TEST_F(TreeTest, Malicious_LoopsAndTheFirstProcessOfAllEndTheWay) {
  UseTrees("rate(unlink by tree) > 1/10s then { }");
  parents_.parents = {{7, 8}, {8, 7}};
  DoAs(70, 7, kSecond);
  DoAs(71, 1, kSecond);
  EXPECT_EQ(DoAs(72, 1, kSecond), 0u);  // 1 is no tree
}

TEST_F(RuleEngineTest, AlarmsHaveAllThatIsKnownOfTheOperation) {
  Use({"seen(unlink) then { }"});
  Do(Op::unlink_, kSecond);
  const format::AlarmValues& values = alarms_.at(0).values;
  const auto has = [&](Field field, uint64_t number) {
    return std::count(values.numbers.begin(), values.numbers.end(),
                      std::pair{field, number}) == 1;
  };
  EXPECT_TRUE(has(Field::kTime, kSecond));
  EXPECT_TRUE(has(Field::kPid, 7));
  EXPECT_TRUE(has(Field::kUid, 1000));
  ASSERT_EQ(values.texts.size(), 1u);
  EXPECT_EQ(values.texts[0], (std::pair{Field::kComm, std::string("worker")}));
}

TEST_F(RuleEngineTest, EachRuleCountsForItself) {
  Use({"seen(unlink) then { }", "seen(unlink rename) then { }"});
  EXPECT_EQ(Do(Op::unlink_, kSecond), 2u);
  EXPECT_EQ(Do(Op::rename_, kSecond), 0u);
  EXPECT_EQ(engine_->standing(0).matched, 1u);
  EXPECT_EQ(engine_->standing(1).matched, 2u);
}

}  // namespace
}  // namespace tracefs
