// HashTable and HashIndex against the containers of the library.
#include "tracefs/base/hash_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tracefs {
namespace {

// `bits`: of hashes; few make all of them meet.
class HashTableTest : public testing::TestWithParam<int> {
 protected:
  uint64_t HashOf(uint64_t value) const {
    const uint64_t hash = value * 0x9e3779b97f4a7c15;
    return hash >> (64 - GetParam());
  }
};

TEST_P(HashTableTest, IsASet) {
  std::mt19937_64 random(1);
  HashTable<uint64_t> table;
  std::unordered_set<uint64_t> model;
  const auto hash_of = [this](uint64_t v) { return HashOf(v); };
  for (int i = 0; i < 6000; ++i) {
    const uint64_t value = 1 + random() % 500;
    const size_t place =
        table.Find(HashOf(value), [=](uint64_t v) { return v == value; });
    ASSERT_EQ(table.IsFree(place), !model.contains(value)) << i;
    if (table.IsFree(place)) {
      table.PutIn(place, value, hash_of);
      model.insert(value);
    } else if (random() % 2 == 0) {
      table.TakeOut(place, hash_of);
      model.erase(value);
    }
    ASSERT_EQ(table.size(), model.size());
    ASSERT_LE(3 * table.size(), 2 * table.slots().size());
  }
  std::unordered_set<uint64_t> left;
  for (const uint64_t value : table.slots()) {
    if (value == 0) continue;
    EXPECT_TRUE(left.insert(value).second) << value;
  }
  EXPECT_EQ(left, model);
  table.Clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_TRUE(
      table.IsFree(table.Find(HashOf(3), [](uint64_t) { return true; })));
}

// Things, numbered as their owners do: the last one takes the place of one that
// goes.
TEST_P(HashTableTest, AnIndexFindsNumbers) {
  std::mt19937_64 random(2);
  HashIndex index;
  std::vector<uint64_t> things;
  std::unordered_map<uint64_t, uint32_t> model;
  const auto is = [&](uint64_t value) {
    return
        [&things, value](uint32_t number) { return things[number] == value; };
  };
  for (int i = 0; i < 6000; ++i) {
    const uint64_t value = random() % 400;
    const auto known = model.find(value);
    const uint32_t number = index.Find(HashOf(value), is(value));
    ASSERT_EQ(number, known == model.end() ? HashIndex::kNone : known->second);
    const auto fresh = static_cast<uint32_t>(things.size());
    if (known == model.end()) {
      ASSERT_EQ(index.FindOrAdd(HashOf(value), fresh, is(value)), fresh);
      things.push_back(value);
      model[value] = fresh;
    } else if (random() % 2 == 0) {
      index.Remove(HashOf(value), number);
      model.erase(known);
      if (number + 1 != fresh) {
        index.Renumber(HashOf(things.back()), fresh - 1, number);
        things[number] = things.back();
        model[things.back()] = number;
      }
      things.pop_back();
    } else {
      ASSERT_EQ(index.FindOrAdd(HashOf(value), fresh, is(value)), number);
    }
    ASSERT_EQ(index.size(), model.size());
  }
  index.Clear();
  for (uint64_t value = 0; value < 400; ++value) {
    EXPECT_EQ(index.Find(HashOf(value), [](uint32_t) { return true; }),
              HashIndex::kNone);
  }
}

INSTANTIATE_TEST_SUITE_P(Hashes, HashTableTest, testing::Values(1, 3, 8, 40));

TEST(HashIndexTest, HasRoomForWhatItIsMadeFor) {
  for (const size_t count : {0, 1, 2, 41, 42, 43, 1000, 100000}) {
    HashIndex index(count);
    const size_t bytes = index.bytes();
    EXPECT_LE(bytes, HashIndex::MostBytesFor(count) + 64) << count;
    for (uint32_t i = 0; i < count; ++i) index.Add(i * 0x9e3779b1u, i);
    EXPECT_EQ(index.bytes(), bytes) << count;
  }
}

TEST(HashIndexTest, GuessesWhatIsWhereItIsLookedForFirst) {
  HashIndex index;
  EXPECT_EQ(index.Guess(5), HashIndex::kNone);
  index.Add(5, 17);
  index.Add(5, 18);
  EXPECT_EQ(index.Guess(5), 17u);
  EXPECT_EQ(index.Guess(5 + 64), HashIndex::kNone);
  index.Fetch(5);
}

}  // namespace
}  // namespace tracefs
