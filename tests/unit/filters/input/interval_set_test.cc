#include "filters/input/interval_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace tracefs {
namespace {

// The 8 values 0..3 and the 4 largest, as bits: sets small enough to compare
// with all there are.
constexpr uint64_t kMax = IntervalSet::kMax;
constexpr uint64_t kValues[] = {0, 1, 2, 3, kMax - 3, kMax - 2, kMax - 1, kMax};

IntervalSet FromBits(unsigned bits) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < 8; ++i) {
    if ((bits >> i & 1) != 0) values.push_back(kValues[i]);
  }
  return IntervalSet::OfAll(values);
}

unsigned ToBits(const IntervalSet& set) {
  unsigned bits = 0;
  for (size_t i = 0; i < 8; ++i) {
    if (set.Contains(kValues[i])) bits |= 1u << i;
  }
  return bits;
}

bool IsNormal(const IntervalSet& set) {
  const std::vector<Interval>& v = set.intervals();
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i].first > v[i].last) return false;
    if (i > 0 &&
        (v[i].first <= v[i - 1].last || v[i].first == v[i - 1].last + 1)) {
      return false;
    }
  }
  return true;
}

TEST(IntervalSetTest, AlgebraOnTheWholeSmallWorld) {
  for (unsigned a = 0; a < 256; ++a) {
    const IntervalSet x = FromBits(a);
    ASSERT_TRUE(IsNormal(x));
    EXPECT_EQ(ToBits(x), a);
    EXPECT_EQ(ToBits(x.Complement()), 255 - a);
    EXPECT_TRUE(IsNormal(x.Complement()));
    EXPECT_EQ(x.Complement().Complement(), x);
    EXPECT_EQ(x.Complement().Contains(1000), true);
    for (unsigned b = 0; b < 256; ++b) {
      const IntervalSet y = FromBits(b);
      ASSERT_EQ(ToBits(x.Union(y)), a | b);
      ASSERT_EQ(ToBits(x.Intersect(y)), a & b);
      ASSERT_EQ(ToBits(x.Minus(y)), a & ~b);
      ASSERT_EQ(x.IsSubsetOf(y), (a & ~b) == 0);
      ASSERT_TRUE(IsNormal(x.Union(y)));
      ASSERT_EQ(x == y, a == b);
    }
  }
}

TEST(IntervalSetTest, Ends) {
  EXPECT_TRUE(IntervalSet().empty());
  EXPECT_TRUE(IntervalSet::All().full());
  EXPECT_TRUE(IntervalSet().Complement().full());
  EXPECT_TRUE(IntervalSet::All().Complement().empty());
  EXPECT_TRUE(IntervalSet::Range(5, 4).empty());
  EXPECT_FALSE(IntervalSet().Contains(0));
}

}  // namespace
}  // namespace tracefs
