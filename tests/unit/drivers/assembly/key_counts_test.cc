// Counting by key in bounded memory, against a map that has no bound.
#include "drivers/assembly/key_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs {
namespace {

struct Exact {
  Counts counts;
  std::map<uint16_t, uint64_t> latency;  // count by bucket
};

std::map<uint16_t, uint64_t> ByBucket(const std::vector<uint64_t>& histogram) {
  std::map<uint16_t, uint64_t> counts;
  for (size_t b = 0; b < histogram.size(); ++b) {
    if (histogram[b] != 0) counts[static_cast<uint16_t>(b)] = histogram[b];
  }
  return counts;
}

KeyCountsOptions Small() {
  return {
      .bytes = KeyCounts::kMinBytes, .latency = true, .size = true, .seed = 42};
}

// The slow way beside the bounded one.
class Both {
 public:
  explicit Both(const KeyCountsOptions& options) : table(options) {}

  void Add(const std::string& key, const CountSample& sample) {
    table.Add(key, sample);
    Exact& e = exact[key];
    e.counts.Add(sample);
    ++e.latency[tally::HistogramBucket(sample.latency_ns)];
    ++events;
  }

  KeyCounts table;
  std::map<std::string, Exact> exact;
  uint64_t events = 0;
};

// All that holds whatever was added.
void Check(const KeyCounts& table, const std::map<std::string, Exact>& exact,
           uint64_t events, size_t capacity) {
  Counts sum = table.Other();
  std::vector<uint64_t> latency;
  table.AddOtherHistogram(KeyCounts::kLatency, &latency);
  std::map<std::string, uint64_t> found;
  for (const KeyCounts::Entry& entry : table.entries()) {
    const std::string key(table.KeyOf(entry));
    ASSERT_EQ(exact.count(key), 1u) << key;
    const uint64_t truth = exact.at(key).counts.count;
    ASSERT_LE(entry.counts.count, truth) << key;
    ASSERT_GE(entry.counts.count + entry.missed, truth) << key;
    if (entry.missed == 0) {
      ASSERT_EQ(entry.counts.latency_sum, exact.at(key).counts.latency_sum);
      std::vector<uint64_t> own;
      table.AddHistogram(KeyCounts::kLatency, entry, &own);
      ASSERT_EQ(ByBucket(own), exact.at(key).latency) << key;
    }
    ASSERT_TRUE(found.emplace(key, entry.counts.count).second) << key;
    sum.Add(entry.counts);
    table.AddHistogram(KeyCounts::kLatency, entry, &latency);
  }
  Counts whole;
  std::map<uint16_t, uint64_t> whole_latency;
  for (const auto& [key, e] : exact) {
    whole.Add(e.counts);
    for (const auto& [b, count] : e.latency) whole_latency[b] += count;
    // Nobody with a fair share of the events is missed.
    if (e.counts.count > 2 * events / capacity + 1) {
      ASSERT_EQ(found.count(key), 1u) << key;
    }
  }
  EXPECT_EQ(sum.count, whole.count);
  EXPECT_EQ(sum.errors, whole.errors);
  EXPECT_EQ(sum.bytes, whole.bytes);
  EXPECT_EQ(sum.latency_sum, whole.latency_sum);
  EXPECT_EQ(sum.latency_max, whole.latency_max);
  EXPECT_EQ(ByBucket(latency), whole_latency);
}

TEST(KeyCountsTest, FewKeysAreCountedExactly) {
  KeyCountsOptions options = Small();
  options.bytes = size_t{1} << 20;
  Both both(options);
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < 20'000; ++i) {
    both.Add("key" + std::to_string(random() % 50),
             {.bytes = random() % 100,
              .failed = random() % 10 == 0,
              .has_size = true,
              .latency_ns = 1000 + random() % 5'000});
  }
  EXPECT_EQ(both.table.entries().size(), 50u);
  EXPECT_EQ(both.table.Other().count, 0u);
  Check(both.table, both.exact, both.events, KeyCounts::Capacity(options));
}

TEST(KeyCountsTest, ManyKeysKeepTheHeavyOnesAndTheSums) {
  for (const uint64_t seed : {1, 2, 3}) {
    Both both(Small());
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; i < 60'000; ++i) {
      // A few heavy keys among ever new ones of all lengths.
      const std::string key = random() % 3 == 0
                                  ? "heavy" + std::to_string(random() % 10)
                                  : std::string(random() % 200, 'x') +
                                        std::to_string(random() % 40'000);
      both.Add(key, {.bytes = random() % 100,
                     .failed = random() % 7 == 0,
                     .has_size = random() % 2 == 0,
                     .latency_ns = random() >> (20 + random() % 40)});
    }
    // Long keys and wide histograms may take the room of keys: half of what
    // was planned is there in any case.
    Check(both.table, both.exact, both.events,
          KeyCounts::Capacity(Small()) / 4);
    EXPECT_GT(both.table.Other().count, 0u);
    EXPECT_LE(both.table.footprint(), Small().bytes);
  }
}

// A table with much in it, of which `both` knows the truth.
void Fill(Both& both) {
  std::mt19937_64 random(5);
  for (uint64_t i = 0; i < 30'000; ++i) {
    both.Add("key" + std::to_string(random() % 3'000),
             {.bytes = random() % 10'000,
              .failed = random() % 7 == 0,
              .has_size = random() % 2 == 0,
              .latency_ns = random() >> (20 + random() % 40)});
  }
}

bool IsAnyKey(std::string_view) { return true; }

TEST(KeyCountsTest, WhatWasSavedGoesOn) {
  Both both(Small());
  Fill(both);
  std::string saved;
  both.table.Save(&saved);
  KeyCountsOptions other_hash = Small();
  other_hash.seed = 43;
  KeyCounts table(other_hash);
  ByteCursor bytes(AsBytes(saved));
  ASSERT_TRUE(table.Load(bytes, IsAnyKey));
  EXPECT_EQ(bytes.left(), 0u);
  EXPECT_EQ(table.total(), both.events);
  Check(table, both.exact, both.events, KeyCounts::Capacity(Small()) / 4);
  std::string again;
  table.Save(&again);
  EXPECT_EQ(again, saved);
  // It counts on, and keys that were there keep what they had.
  const KeyCounts::Entry before = table.entries().front();
  const std::string key(table.KeyOf(before));
  table.Add(key, {.bytes = 1, .latency_ns = 2});
  EXPECT_EQ(table.entries().front().counts.count, before.counts.count + 1);
}

TEST(KeyCountsTest, Malicious_WhatWasNotSavedIsRefused) {
  Both both(Small());
  Fill(both);
  std::string saved;
  both.table.Save(&saved);
  const auto loads = [](const std::string& text) {
    KeyCounts table(Small());
    ByteCursor bytes(AsBytes(text));
    const bool loaded = table.Load(bytes, IsAnyKey);
    if (!loaded) {
      EXPECT_TRUE(table.empty());
    }
    // Whatever was read, it works.
    for (int i = 0; i < 2000; ++i) {
      table.Add("k" + std::to_string(i), {.latency_ns = 5});
    }
    return loaded && bytes.left() == 0;
  };
  std::mt19937_64 random(9);
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(loads(saved.substr(0, random() % saved.size())));
    std::string wrong = saved;
    wrong[random() % 4'000] = static_cast<char>(random());
    static_cast<void>(loads(wrong));
    wrong.replace(random() % (saved.size() - 8), 4, "\xff\xff\xff\xff");
    static_cast<void>(loads(wrong));
  }
  EXPECT_FALSE(loads(""));
  KeyCounts table(Small());
  ByteCursor bytes(AsBytes(saved));
  const std::string last(both.table.KeyOf(both.table.entries().back()));
  EXPECT_FALSE(
      table.Load(bytes, [&](std::string_view key) { return key != last; }));
  EXPECT_TRUE(table.empty());
}

TEST(KeyCountsTest, AddingTablesIsLikeCountingInOne) {
  for (const bool crowded : {false, true}) {
    std::map<std::string, Exact> exact;
    uint64_t events = 0;
    KeyCounts sum(Small());
    std::mt19937_64 random(7);
    for (int t = 0; t < 6; ++t) {
      Both part(Small());
      for (uint64_t i = 0; i < 10'000; ++i) {
        const uint64_t n =
            crowded && random() % 2 == 0 ? random() % 20'000 : random() % 20;
        part.Add("k" + std::to_string(n), {.latency_ns = random() % 10'000});
      }
      for (const auto& [key, e] : part.exact) {
        exact[key].counts.Add(e.counts);
        for (const auto& [b, count] : e.latency) {
          exact[key].latency[b] += count;
        }
      }
      events += part.events;
      sum.Add(part.table);
    }
    Check(sum, exact, events, KeyCounts::Capacity(Small()) / 2);
    EXPECT_EQ(sum.Other().count != 0, crowded);
  }
}

// Keys that come, go and come back: what is counted for them and what they may
// have missed are together never less than the truth, and what they may have
// missed is bounded itself.
void AddInRounds(Both* both, size_t keys, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < keys; ++i) both->Add("k" + std::to_string(i), {});
  }
}

TEST(KeyCountsTest, AKeyThatComesBackSaysWhatItMayHaveMissed) {
  const KeyCountsOptions options = {.bytes = KeyCounts::kMinBytes,
                                    .latency = true};
  const size_t capacity = KeyCounts::Capacity(options);
  Both both(options);
  AddInRounds(&both, 3 * capacity, 5);
  ASSERT_FALSE(both.table.entries().empty());
  uint64_t behind = 0;
  for (const KeyCounts::Entry& entry : both.table.entries()) {
    // The truth is 5 of each.
    EXPECT_GE(entry.counts.count + entry.missed, 5u);
    EXPECT_LE(entry.missed, both.events / (capacity / 2));
    behind += entry.counts.count < 5 ? 1 : 0;
  }
  EXPECT_GT(behind, 0u);  // or the test has no key of the kind
  Check(both.table, both.exact, both.events, capacity);
}

TEST(KeyCountsTest, WhatATableMissedIsSaidInASumToo) {
  const KeyCountsOptions options = {.bytes = KeyCounts::kMinBytes};
  const size_t capacity = KeyCounts::Capacity(options);
  KeyCounts sum(options);
  std::map<std::string, Exact> exact;
  uint64_t events = 0;
  for (int part = 0; part < 4; ++part) {
    Both both(options);
    AddInRounds(&both, 2 * capacity, 2);
    sum.Add(both.table);
    for (const auto& [key, e] : both.exact) exact[key].counts.Add(e.counts);
    events += both.events;
  }
  uint64_t behind = 0;
  for (const KeyCounts::Entry& entry : sum.entries()) {
    EXPECT_GE(entry.counts.count + entry.missed, 8u);
    // Each of the tables and the sum may have shed its share.
    EXPECT_LE(entry.missed, 2 * events / (capacity / 2));
    behind += entry.counts.count < 8 ? 1 : 0;
  }
  EXPECT_GT(behind, 0u);
}

TEST(KeyCountsTest, AClearedTableIsAsGoodAsNew) {
  KeyCounts table(Small());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5'000; ++i) {
      table.Add(std::to_string(i), {.latency_ns = static_cast<uint64_t>(i)});
    }
    EXPECT_FALSE(table.empty());
    table.Clear();
    EXPECT_TRUE(table.empty());
  }
  table.Add("a", {.latency_ns = 5});
  ASSERT_EQ(table.entries().size(), 1u);
  EXPECT_EQ(table.entries()[0].missed, 0u);
  std::vector<uint64_t> latency;
  table.AddHistogram(KeyCounts::kLatency, table.entries()[0], &latency);
  EXPECT_EQ(std::accumulate(latency.begin(), latency.end(), uint64_t{0}), 1u);
}

TEST(KeyCountsTest, KeysOfEveryLengthAreKeptApart) {
  KeyCounts table(Small());
  const std::string nul(1, '\0');
  for (const std::string& key :
       {std::string(), nul, nul + nul, std::string("a"), "a" + nul,
        std::string(KeyCounts::kMaxKeyBytes, 'y')}) {
    table.Add(key, {});
  }
  EXPECT_EQ(table.entries().size(), 6u);
}

TEST(KeyCountsTest, TakesNoMoreMemoryThanItWasGiven) {
  for (const size_t bytes : {KeyCounts::kMinBytes, size_t{2} << 20,
                             size_t{64} << 20, size_t{256} << 20}) {
    for (const int histograms : {0, 1, 2}) {
      const KeyCountsOptions options{
          .bytes = bytes, .latency = histograms > 0, .size = histograms > 1};
      EXPECT_LE(KeyCounts(options).footprint(), bytes) << histograms;
      EXPECT_GT(KeyCounts::Capacity(options), 30u);
    }
  }
}

}  // namespace
}  // namespace tracefs
