#include "filters/input/name_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "filters/input/filter.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using Kind = TextMatch::Kind;

TEST(NameTableTest, EachPredicateHasItsBit) {
  NameTable table;
  const auto tex = table.Register(Field::kExt, {Kind::kAnyOf, {"tex"}});
  const auto make = table.Register(Field::kName, {Kind::kAnyOf, {"Makefile"}});
  const auto other =
      table.Register(Field::kName, {Kind::kNoneOf, {"Makefile"}});
  const auto ext = table.Register(Field::kExt, {Kind::kNoneOf, {"tex"}});
  const auto glob = table.Register(Field::kName, {Kind::kGlob, {"*.t*"}});
  const auto ext_glob = table.Register(Field::kExt, {Kind::kGlob, {"t*"}});
  const auto set = table.Register(Field::kName, {Kind::kAnyOf, {"a", "b"}});
  EXPECT_EQ(table.Match("foo.tex"),
            tex.bit() | other.bit() | glob.bit() | ext_glob.bit());
  EXPECT_EQ(table.Match("Makefile"), make.bit());
  EXPECT_EQ(table.Match("Makefile.in"), other.bit() | ext.bit());
  EXPECT_EQ(table.Match(".tex"), other.bit() | glob.bit());  // no extension
  EXPECT_EQ(table.Match("x."), other.bit());
  EXPECT_EQ(table.Match("b"), set.bit() | other.bit());
  EXPECT_EQ(table.Match(""), 0u);
  EXPECT_EQ(table.size(), 7u);
}

TEST(NameTableTest, EqualPredicatesShareABitUntilTheLastOneGoes) {
  NameTable table;
  const uint32_t before = table.generation();
  auto first = std::make_unique<NameTable::Handle>(
      table.Register(Field::kExt, {Kind::kAnyOf, {"c"}}));
  EXPECT_GT(table.generation(), before);
  const uint32_t generation = table.generation();
  const auto second = table.Register(Field::kExt, {Kind::kAnyOf, {"c"}});
  EXPECT_EQ(table.generation(), generation);  // cached bits stay right
  EXPECT_EQ(first->bit(), second.bit());
  EXPECT_EQ(second.since(), first->since());
  first.reset();
  EXPECT_EQ(table.Match("x.c"), second.bit());
  EXPECT_EQ(table.size(), 1u);
}

TEST(NameTableTest, AFreedBitIsGivenAgainWithANewGeneration) {
  NameTable table;
  uint64_t bit = 0;
  uint32_t since = 0;
  {
    const auto c = table.Register(Field::kExt, {Kind::kAnyOf, {"c"}});
    bit = c.bit();
    since = c.since();
  }
  EXPECT_EQ(table.Match("x.c"), 0u);
  const auto h = table.Register(Field::kExt, {Kind::kAnyOf, {"h"}});
  EXPECT_EQ(h.bit(), bit);
  EXPECT_GT(h.since(), since);
  EXPECT_EQ(table.Match("x.h"), bit);
}

TEST(NameTableTest, PredicatesBeyondTheLastBitHaveNone) {
  NameTable table;
  std::vector<NameTable::Handle> handles;
  uint64_t all = 0;
  for (int i = 0; i < 100; ++i) {
    handles.push_back(table.Register(
        Field::kName, {Kind::kAnyOf, {"n" + std::to_string(i)}}));
    EXPECT_EQ(handles.back().bit() & all, 0u);
    all |= handles.back().bit();
  }
  EXPECT_EQ(all, ~uint64_t{0});
  EXPECT_NE(handles[63].bit(), 0u);
  EXPECT_EQ(handles[64].bit(), 0u);
  EXPECT_EQ(table.Match("n64"), 0u);
  EXPECT_TRUE(handles[64].matcher()->Matches("n64"));
}

// Filters on more than 64 names: those with a bit and those without.
TEST(NameTableTest, FiltersAnswerNamesBeyondTheBits) {
  NameTable table;
  testing::FilterWorld world;
  std::vector<Filter> filters;
  for (int i = 0; i < 80; ++i) {
    const std::string text =
        "name = n" + std::to_string(i) + " OR ext = e" + std::to_string(i);
    auto filter = Filter::Compile(text, {}, testing::FakeNames(), table);
    ASSERT_TRUE(filter.ok());
    filters.push_back(*filter);
  }
  for (int i = 0; i < 80; ++i) {
    for (int n = 0; n < 80; ++n) {
      for (const std::string& name :
           {"n" + std::to_string(n), "x.e" + std::to_string(n)}) {
        Event event;
        event.op = Op::lookup_;
        event.resolver = &world;
        event.name = name;
        world.SetNameBits(table, event);
        ASSERT_EQ(filters[i].Keep(event), i == n) << name;
      }
    }
  }
}

// An event made before a filter came, or whose bit meant another predicate.
TEST(NameTableTest, StaleBitsAreNotBelieved) {
  NameTable table;
  testing::FilterWorld world;
  Event event;
  event.op = Op::open_;
  event.resolver = &world;
  event.node = 3;  // a.c and b.h
  {
    const auto first =
        Filter::Compile("ext = c", {}, testing::FakeNames(), table);
    ASSERT_TRUE(first.ok());
    world.SetNameBits(table, event);
    EXPECT_TRUE(first->Keep(event));
  }
  EXPECT_NE(event.name_bits, 0u);
  const auto other =
      Filter::Compile("ext = tex", {}, testing::FakeNames(), table);
  const auto same = Filter::Compile("ext = h", {}, testing::FakeNames(), table);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(same.ok());
  EXPECT_FALSE(other->Keep(event));
  EXPECT_TRUE(same->Keep(event));
  Event without = event;
  without.name_generation = 0;
  without.name_bits = ~uint64_t{0};
  EXPECT_FALSE(other->Keep(without));
}

TEST(NameTableTest, Race_MatchingWhileFiltersComeAndGo) {
  NameTable table;
  const auto fixed = table.Register(Field::kExt, {Kind::kAnyOf, {"c"}});
  const auto glob = table.Register(Field::kName, {Kind::kGlob, {"*.c"}});
  const uint64_t expected = fixed.bit() | glob.bit();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        if ((table.Match("x.c") & expected) != expected) ++wrong;
        if ((table.Match("x.h") & expected) != 0) ++wrong;
      }
    });
  }
  for (int round = 0; round < 3000; ++round) {
    const auto a = table.Register(
        Field::kName, {Kind::kAnyOf, {"n" + std::to_string(round)}});
    const auto b = table.Register(Field::kExt, {Kind::kGlob, {"q*"}});
    EXPECT_NE(table.Match("n" + std::to_string(round)) & a.bit(), 0u);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
}

struct Counted {
  explicit Counted(std::atomic<int>* live) : live_(live) { ++*live_; }
  ~Counted() { --*live_; }
  std::atomic<int>* live_;
};

TEST(SnapshotTest, AReaderKeepsWhatItReadsAndNothingElseIsKept) {
  std::atomic<int> live{0};
  {
    Snapshot<Counted> snapshot(std::make_unique<const Counted>(&live));
    for (int i = 0; i < 100; ++i) {
      snapshot.Publish(std::make_unique<const Counted>(&live));
    }
    EXPECT_EQ(live, 1);
    {
      const auto reader = snapshot.Read();
      for (int i = 0; i < 100; ++i) {
        snapshot.Publish(std::make_unique<const Counted>(&live));
      }
      EXPECT_EQ(snapshot.retired(), 100u);
      EXPECT_EQ(reader->live_, &live);
    }
    snapshot.Publish(std::make_unique<const Counted>(&live));
    EXPECT_EQ(snapshot.retired(), 0u);
    EXPECT_EQ(live, 1);
  }
  EXPECT_EQ(live, 0);
}

}  // namespace
}  // namespace tracefs
