// Groups on disk: each key once, with all that was counted for it.
#include "tracefs/query/group_spill.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <random>
#include <string>

namespace tracefs::query {
namespace {

using Entry = GroupStore::Entry;

std::deque<Entry> CopyOf(const GroupStore& store) {
  std::deque<Entry> copies;
  for (const Entry& entry : store.entries()) {
    Entry& copy = copies.emplace_back();
    copy.key = entry.key;
    copy.tally = entry.tally;
    if (entry.details != nullptr) {
      copy.details = std::make_unique<TallyDetails>();
      copy.details->Add(*entry.details);
    }
  }
  return copies;
}

TEST(GroupSpillTest, MergesWhatWasCountedOfEachKey) {
  std::mt19937_64 random(7);
  std::map<std::string, Tally> expected;
  std::map<std::string, uint64_t> median;
  GroupSpill spill;
  EXPECT_FALSE(spill.any());
  for (int run = 0; run < 20; ++run) {
    GroupStore store(size_t{64} << 20, /*details=*/true);
    for (int i = 0; i < 2000; ++i) {
      // Long keys, empty ones, and those with zeros in them.
      const uint64_t number = random() % 3000;
      const std::string key =
          number == 0         ? std::string()
          : number % 100 == 1 ? std::string(5000, 'x') + std::to_string(number)
                              : std::string(1, '\0') + std::to_string(number);
      Entry& entry = store.At(store.Find(key));
      ++entry.tally.count;
      entry.tally.bytes += number;
      entry.details->latency.Add(number * 1000);
      ++expected[key].count;
      expected[key].bytes += number;
      median[key] = number * 1000;
    }
    ASSERT_TRUE(spill.Add(CopyOf(store)).ok());
  }
  EXPECT_TRUE(spill.any());
  std::string last;
  size_t keys = 0;
  const Status merged = spill.Merge(size_t{1} << 20, [&](Entry& entry) {
    EXPECT_TRUE(keys == 0 || last < entry.key);
    last = entry.key;
    ++keys;
    ASSERT_TRUE(expected.contains(entry.key));
    EXPECT_EQ(entry.tally.count, expected[entry.key].count);
    EXPECT_EQ(entry.tally.bytes, expected[entry.key].bytes);
    ASSERT_NE(entry.details, nullptr);
    EXPECT_EQ(entry.details->latency.Count(), expected[entry.key].count);
    const uint64_t value = median[entry.key];
    EXPECT_NEAR(static_cast<double>(entry.details->latency.Quantile(0.5, {})),
                static_cast<double>(value), 0.01 * static_cast<double>(value));
  });
  EXPECT_TRUE(merged.ok()) << merged.message();
  EXPECT_EQ(keys, expected.size());
}

TEST(GroupSpillTest, WithoutAFolderForItTheErrorStays) {
  ASSERT_EQ(::setenv("TMPDIR", "/nonexistent/folder", 1), 0);
  GroupSpill spill;
  std::deque<Entry> entries(1);
  EXPECT_FALSE(spill.Add(entries).ok());
  EXPECT_TRUE(spill.any());
  ASSERT_EQ(::unsetenv("TMPDIR"), 0);
  EXPECT_FALSE(spill.Add(entries).ok());
  EXPECT_FALSE(spill.Merge(1 << 20, [](Entry&) { FAIL(); }).ok());
}

}  // namespace
}  // namespace tracefs::query
