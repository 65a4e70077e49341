// What the audit is made of: sets of numbers, their forms, the search for
// protected values; each against something plainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tracefs/tools/anon/audit_walk.h"
#include "tracefs/tools/anon/distinct.h"
#include "tracefs/tools/anon/leak_scan.h"
#include "tracefs/tools/anon/number_form.h"
#include "tracefs/tools/anon/number_set.h"
#include "tracefs/tools/anon/own_words.h"

namespace tracefs::anonymize {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NumberSetTest, CountsAsAMapDoes) {
  std::mt19937_64 random(1);
  NumberSet set;
  NumberSet soon;
  NumberSet first_half;
  NumberSet second_half;
  std::map<uint64_t, int> model;
  for (int i = 0; i < 5000; ++i) {
    // Zero, small ones and any.
    const uint64_t number = i % 3 == 0   ? random() % 50
                            : i % 3 == 1 ? random()
                                         : random() % 5000;
    ASSERT_EQ(set.Add(number), ++model[number] == 1) << number;
    soon.AddSoon(number);
    (i < 2500 ? first_half : second_half).Add(number);
  }
  soon.Settle();
  NumberSet all;
  all.AddAll(first_half);
  all.AddAll(second_half);
  const auto once = static_cast<size_t>(std::ranges::count_if(
      model, [](const auto& row) { return row.second == 1; }));
  for (const NumberSet* each : {&set, &soon, &all}) {
    EXPECT_EQ(each->size(), model.size());
    EXPECT_EQ(each->not_zero(), model.size() - 1);
    EXPECT_EQ(each->Singletons(), once);
    EXPECT_FALSE(each->full());
    std::set<uint64_t> seen;
    each->ForEach([&](uint64_t number) {
      EXPECT_TRUE(seen.insert(number).second);
      EXPECT_TRUE(model.contains(number));
    });
    EXPECT_EQ(seen.size(), model.size() - 1);
    for (uint64_t number = 0; number < 6000; ++number) {
      ASSERT_EQ(each->Has(number), model.contains(number)) << number;
    }
  }
}

TEST(NumberSetTest, ZeroIsANumber) {
  NumberSet set;
  EXPECT_FALSE(set.Has(0));
  EXPECT_TRUE(set.Add(0));
  EXPECT_TRUE(set.Has(0));
  EXPECT_EQ(set.Singletons(), 1u);
  EXPECT_FALSE(set.Add(0));
  EXPECT_FALSE(set.Add(0));
  EXPECT_EQ(set.size(), 1u);
  EXPECT_EQ(set.Singletons(), 0u);
  NumberSet other;
  other.AddAll(set);
  EXPECT_EQ(other.size(), 1u);
  EXPECT_EQ(other.Singletons(), 0u);
}

TEST(NumberSetTest, IsFullAtItsMostAndSaysSo) {
  NumberSet set;
  for (uint64_t i = 1; i <= NumberSet::kMax; ++i) set.Add(i);
  EXPECT_FALSE(set.full());
  EXPECT_EQ(set.size(), NumberSet::kMax);
  set.Add(NumberSet::kMax);  // known
  EXPECT_FALSE(set.full());
  set.Add(NumberSet::kMax + 1);
  EXPECT_TRUE(set.full());
  EXPECT_EQ(set.size(), NumberSet::kMax);
  EXPECT_FALSE(set.Has(NumberSet::kMax + 1));
  NumberSet other;
  other.AddAll(set);
  EXPECT_TRUE(other.full());
}

TEST(DistinctTest, CountsEachValue) {
  Distinct values;
  EXPECT_EQ(values.Add("a"), 0u);
  EXPECT_EQ(values.Add("b"), 1u);
  EXPECT_EQ(values.Add("a"), 0u);
  values.AddAgain(0);
  EXPECT_THAT(values.counts(), ElementsAre(3u, 1u));
  EXPECT_EQ(values.size(), 2u);
  EXPECT_EQ(values.Singletons(), 1u);
  EXPECT_TRUE(values.Has("b"));
  EXPECT_FALSE(values.Has("c"));
  EXPECT_FALSE(values.full());
}

NumberForm FormOf(const Rule& rule, uint16_t width = 8) {
  FieldPlan field;
  field.width = width;
  field.per_second = 1'000'000'000;
  return {field, rule};
}

TEST(NumberFormTest, ABucketIsAPowerOfTwoWhateverItsSign) {
  Rule rule;
  rule.action = Action::kBucket;
  rule.keep = {"12", "no number"};
  const NumberForm form = FormOf(rule);
  EXPECT_EQ(form.Text(), "a power of two");
  for (const int64_t number : {0L, 1L, 2L, 4096L, 12L, -1L, -64L}) {
    EXPECT_TRUE(form.Fits(static_cast<uint64_t>(number))) << number;
  }
  for (const int64_t number : {3L, 13L, -3L, 4097L}) {
    EXPECT_FALSE(form.Fits(static_cast<uint64_t>(number))) << number;
  }
  // No number of four bytes is negative.
  EXPECT_FALSE(FormOf(rule, 4).Fits(static_cast<uint64_t>(-64)));
}

TEST(NumberFormTest, AQuantisedOneIsAMultipleAndFailuresStay) {
  Rule rule;
  rule.action = Action::kQuantise;
  rule.step = 100;
  const NumberForm form = FormOf(rule);
  const uint64_t step = StepOf(rule, 1'000'000'000);
  EXPECT_EQ(form.Text(), "a multiple of " + std::to_string(step));
  EXPECT_TRUE(form.Fits(0));
  EXPECT_TRUE(form.Fits(7 * step));
  EXPECT_FALSE(form.Fits(7 * step + 1));
  EXPECT_FALSE(form.Fits(step - 1));
  EXPECT_TRUE(form.Fits(static_cast<uint64_t>(-5)));
}

TEST(NumberFormTest, ZeroAndListsAreThemselves) {
  Rule rule;
  rule.action = Action::kZero;
  EXPECT_EQ(FormOf(rule).Text(), "zero");
  EXPECT_TRUE(FormOf(rule).Fits(0));
  EXPECT_FALSE(FormOf(rule).Fits(1));
  rule.action = Action::kKeepValues;
  EXPECT_TRUE(FormOf(rule).Fits(1)) << "the list is not known";
  rule.keep = {"7"};
  EXPECT_EQ(FormOf(rule).Text(), "one of the policy's list");
  EXPECT_TRUE(FormOf(rule).Fits(7));
  EXPECT_FALSE(FormOf(rule).Fits(8));
  rule.action = Action::kFpe;
  EXPECT_TRUE(FormOf(rule).Fits(8)) << "may be any";
  EXPECT_TRUE(NumberForm().Fits(8));
}

std::string HexOf(std::string_view text, const char* digits) {
  std::string hex;
  for (const char c : text) {
    hex += digits[static_cast<unsigned char>(c) >> 4];
    hex += digits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

// RFC 4648, bit by bit, without padding.
std::string Base64Of(std::string_view text, const char* last) {
  const std::string letters =
      std::string(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
          "0123456789") +
      last;
  std::string out;
  for (size_t bit = 0; bit < text.size() * 8; bit += 6) {
    unsigned value = 0;
    for (size_t i = bit; i < bit + 6; ++i) {
      const unsigned byte =
          i / 8 < text.size() ? static_cast<unsigned char>(text[i / 8]) : 0;
      value = value << 1 | (byte >> (7 - i % 8) & 1);
    }
    out += letters[value];
  }
  return out;
}

std::vector<LeakScan::Hit> Found(const std::string& value,
                                 const std::string& bytes,
                                 size_t min_bytes = 0) {
  LeakScan scan;
  scan.AddText("something else", "other");
  scan.AddText(value, "name");
  std::vector<LeakScan::Hit> hits;
  scan.Find(AsBytes(bytes), min_bytes, &hits);
  return hits;
}

TEST(LeakScanTest, FindsAValueInEachFormWhereverItStands) {
  const std::string value = "sec\xfcret?>k\xff!";
  std::string wide;
  for (const char c : value) (wide += c) += '\0';
  std::vector<std::pair<std::string, std::string>> forms = {
      {"as it is", value},
      {"as UTF-16", wide},
      {"in hex", HexOf(value, "0123456789abcdef")},
      {"in hex", HexOf(value, "0123456789ABCDEF")}};
  for (const auto& [form, text] : forms) {
    for (size_t at = 0; at < 9; ++at) {
      const std::string before(at, '.');
      for (const std::string& after : {std::string(), std::string("..")}) {
        const auto hits = Found(value, before + text + after);
        ASSERT_EQ(hits.size(), 1u) << form;
        EXPECT_EQ(hits[0].value, value);
        EXPECT_EQ(hits[0].what, "name");
        EXPECT_EQ(hits[0].form, form);
        EXPECT_EQ(hits[0].offset, at);
      }
      EXPECT_THAT(Found(value, before + text.substr(0, text.size() - 1)),
                  IsEmpty());
    }
  }
  for (const char* last : {"-_", "+/"}) {
    for (size_t at = 0; at < 6; ++at) {
      const std::string text =
          Base64Of(std::string(at, 'x') + value + "yyy", last);
      const auto hits = Found(value, text);
      ASSERT_EQ(hits.size(), 1u) << at << last;
      EXPECT_EQ(hits[0].form, "in base64");
    }
  }
}

TEST(LeakScanTest, TextIsAWordAndDataIsAnywhere) {
  EXPECT_THAT(Found("alice", "malice"), IsEmpty());
  EXPECT_THAT(Found("alice", "alices"), IsEmpty());
  EXPECT_THAT(Found("alice", "x_alice"), IsEmpty());
  EXPECT_EQ(Found("alice", "/alice/").size(), 1u);
  EXPECT_EQ(Found("alice", "alice").size(), 1u);
  LeakScan scan;
  scan.AddData("alice", "data");
  std::vector<LeakScan::Hit> hits;
  scan.Find(AsBytes(std::string_view("malices")), 0, &hits);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].offset, 1u);
  scan.Find(AsBytes(std::string_view("malices")), 0, &hits);
  EXPECT_EQ(hits.size(), 1u) << "each value once";
}

TEST(LeakScanTest, WhatIsShortIsFoundByChanceAndNotLookedFor) {
  EXPECT_THAT(Found("abc", "abc"), IsEmpty());
  EXPECT_EQ(Found("abcd", "abcd").size(), 1u);
  EXPECT_THAT(Found("abcd", "abcd", 5), IsEmpty());
  EXPECT_EQ(Found("abcd", "abcd", 4).size(), 1u);
  EXPECT_THAT(Found("abcde", HexOf("abcde", "0123456789abcdef")), IsEmpty());
  EXPECT_EQ(Found("abcdef", HexOf("abcdef", "0123456789abcdef")).size(), 1u);
  LeakScan scan;
  scan.AddText("one\x01value", "a");
  scan.AddData("one\x01value", "b");
  EXPECT_EQ(scan.values(), 1u);
  EXPECT_FALSE(scan.full());
}

TEST(OwnWordsTest, EveryOtherWordTellsSomething) {
  using format::ArgId;
  const std::map<ArgId, std::vector<std::string>> words = {
      {ArgId::kLossReason,
       {"output_error", "too_large", "queue_full", "throttled", "degraded",
        "refused", "overrun", "died"}},
      {ArgId::kEndReason,
       {"unmount", "stop", "signal", "error", "exit", "destroyed",
        "end of the iolog", "end of the strace"}},
      {ArgId::kRuleKey,
       {"pid", "ppid", "tree", "tid", "sid", "pgid", "uid", "gid", "cname",
        "inode"}}};
  for (const auto& [argument, own] : words) {
    for (const std::string& word : own) {
      EXPECT_TRUE(IsOwnWord(argument, word)) << word;
      EXPECT_FALSE(IsOwnWord(argument, word + "x")) << word;
    }
    EXPECT_FALSE(IsOwnWord(argument, ""));
    EXPECT_FALSE(IsOwnWord(argument, "alice"));
  }
  EXPECT_TRUE(IsOwnWord(ArgId::kLossTotal, "12345678queue_full"));
  EXPECT_FALSE(IsOwnWord(ArgId::kLossTotal, "12345678alice"));
  EXPECT_FALSE(IsOwnWord(ArgId::kLossTotal, "1234"));
  EXPECT_TRUE(IsOwnWord(ArgId::kProperty, "alice")) << "has rules of its own";
  EXPECT_TRUE(IsOfTheMachine("os.name"));
  EXPECT_TRUE(IsOfTheMachine("time.zone_offset_s"));
  EXPECT_FALSE(IsOfTheMachine("host.name"));
  EXPECT_FALSE(IsOfTheMachine("mount.point"));
}

TEST(GroupTest, NumbersAreOneWithinClassUnitAndWidth) {
  FieldPlan field;
  field.name = "ARG_X";
  field.width = 4;
  field.per_second = 7;
  EXPECT_EQ(GroupOf(field), (NumberGroup{"ARG_X", 7, 4}));
  field.class_name = "uid";
  EXPECT_EQ(GroupOf(field), (NumberGroup{"uid", 7, 4}));
  const auto load = [](std::string_view text) {
    return LoadWide(AsBytes(text));
  };
  EXPECT_EQ(load("\x01\x02\x03\x04\x05\x06\x07\x08"), 0x0807060504030201u);
  EXPECT_EQ(load("\x01\x02\x03\xff"), 0xff030201u);
  EXPECT_EQ(load("\x01\xff"), 0xff01u);
  EXPECT_EQ(load("\x80"), 0x80u);
  EXPECT_NE(load("123456789"), load("123456780"));
  EXPECT_NE(load("12345678a"), load("12345679a"));
}

}  // namespace
}  // namespace tracefs::anonymize
