// Sets of numbers say what a map that counts says.
#include "tracefs/tools/anon/number_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tracefs::anonymize {
namespace {

struct Counts {
  void Add(uint64_t number, NumberSet* set) {
    ++of[number];
    set->AddSoon(number);
  }
  void ExpectEqual(NumberSet* set) const {
    set->Settle();
    size_t once = 0;
    for (const auto& [number, count] : of) {
      once += count == 1;
      EXPECT_TRUE(set->Has(number)) << number;
      EXPECT_FALSE(set->Has(~number) && !of.contains(~number));
    }
    EXPECT_EQ(set->size(), of.size());
    EXPECT_EQ(set->Singletons(), once);
    size_t seen = 0;
    set->ForEach([&](uint64_t number) { seen += of.contains(number); });
    EXPECT_EQ(seen, set->not_zero());
    EXPECT_EQ(set->not_zero(), of.size() - of.contains(0));
  }

  std::map<uint64_t, size_t> of;
};

TEST(NumberSetTest, CountsAsAMapDoes) {
  std::mt19937_64 random(7);
  for (const uint64_t range : {1, 3, 1000, 1'000'000}) {
    NumberSet set;
    Counts counts;
    for (int i = 0; i < 20'000; ++i) counts.Add(random() % range, &set);
    counts.ExpectEqual(&set);
  }
}

TEST(NumberSetTest, MergedSetsCountAsOne) {
  std::mt19937_64 random(8);
  Counts counts;
  NumberSet a;
  NumberSet b;
  NumberSet both;
  for (int i = 0; i < 50'000; ++i) {
    counts.Add(random() % 60'000, i % 3 == 0 ? &a : &b);
  }
  a.Settle();
  b.Settle();
  both.AddAll(a);
  both.AddAll(b);
  counts.ExpectEqual(&both);
}

// Rows of numbers, as times are, in the order of another set, or in any: no
// heap of them may make it slow. It would take minutes.
TEST(NumberSetTest, RowsOfNumbersAreQuick) {
  for (const uint64_t step :
       {1ull, 1700ull, 1ull << 32, 0x9E3779B97F4A7C15ull}) {
    NumberSet set;
    for (uint64_t i = 1; i <= 500'000; ++i) set.AddSoon(i * step);
    set.Settle();
    NumberSet merged;
    merged.AddAll(set);
    EXPECT_EQ(merged.size(), 500'000u);
    EXPECT_EQ(merged.Singletons(), 500'000u);
  }
}

TEST(NumberSetTest, IsBoundedAndSaysSo) {
  NumberSet set;
  for (uint64_t i = 0; i < NumberSet::kMax + 1000; ++i) set.AddSoon(i);
  set.Settle();
  EXPECT_TRUE(set.full());
  EXPECT_EQ(set.not_zero(), NumberSet::kMax);
  EXPECT_TRUE(set.Has(5));
  EXPECT_FALSE(set.Has(NumberSet::kMax + 500));
}

}  // namespace
}  // namespace tracefs::anonymize
