// The clauses of an aggregate driver, and what is said of wrong ones.
#include "drivers/assembly/aggregate_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "tracefs/event/field.h"
#include "tracefs/format/constants.h"

namespace tracefs {
namespace {

using From = AggregateKey::From;

Result<AggregateSpec> Parse(std::string_view text) {
  return ParseAggregateSpec(text, "f", {.line = 3, .column = 10});
}

TEST(AggregateSpecTest, KeysAreToldAsTheyAreWritten) {
  EXPECT_EQ(KeysText(*Parse("by op, uid, cname, dir(2)")),
            "op uid comm dir(2)");
  EXPECT_EQ(KeysText(*Parse("by dir")), "dir");
  EXPECT_EQ(KeysText(*Parse("every 1s")), "");
}

TEST(AggregateSpecTest, TheExampleOfTheReference) {
  const auto spec = Parse(
      " by op, uid, pid, cname, ext, dir(2) ; values count bytes errors "
      "latency size ; every 10s ; top 100 ");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  ASSERT_EQ(spec->keys.size(), 6u);
  EXPECT_EQ(spec->keys[0].from, From::kOp);
  EXPECT_EQ(spec->keys[1].arg_id, Info(Field::kUid).arg_id);
  EXPECT_EQ(spec->keys[3].from, From::kComm);
  EXPECT_EQ(spec->keys[5].from, From::kDir);
  EXPECT_EQ(spec->keys[5].depth, 2u);
  EXPECT_TRUE(spec->errors && spec->bytes && spec->latency && spec->size);
  EXPECT_EQ(spec->every_ns, 10'000'000'000u);
  EXPECT_EQ(spec->top, 100u);
}

TEST(AggregateSpecTest, NothingIsNeeded) {
  const auto spec = Parse("");
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->keys.empty());
  EXPECT_EQ(spec->every_ns, 0u);
  EXPECT_TRUE(Parse("# nothing but a comment\n;;").ok());
}

TEST(AggregateSpecTest, KeysMayBeSortedByWhatIsCounted) {
  auto spec = Parse("by op");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->sort, AggregateSort::kCount);
  EXPECT_FALSE(spec->ascending);
  spec = Parse("sort -max ; by op ; values count latency");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->sort, AggregateSort::kMax);
  EXPECT_TRUE(spec->ascending);
  // The sizes of transfers add up to their bytes.
  spec = Parse("values size ; sort bytes");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->sort, AggregateSort::kBytes);
}

TEST(AggregateSpecTest, CommasMayBeLeftOut) {
  const auto spec = Parse("by op uid dir\n # why\n; values count, size");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->keys.size(), 3u);
  EXPECT_EQ(spec->keys[2].depth, 0u);
  EXPECT_FALSE(spec->errors || spec->bytes || spec->latency);
  EXPECT_TRUE(spec->size);
}

struct Bad {
  std::string_view text;
  std::string_view message;
};

TEST(AggregateSpecTest, Malicious_WrongClausesAreNamedWithTheirPlace) {
  const Bad cases[] = {
      {"bye op",
       "f:3:10: aggregate: 'bye' is no clause; did you mean 'by'? (known: by "
       "values every sort top memory)"},
      {"sort",
       "f:3:14: aggregate: expected what to sort by (count, errors, "
       "bytes, time, mean, max), found the end"},
      {"sort tiem",
       "f:3:15: aggregate: keys cannot be sorted by 'tiem'; did you mean "
       "'time'? (known: count errors bytes time mean max)"},
      {"sort time bytes",
       "f:3:20: aggregate: expected ';' after sort, found 'b'"},
      {"sort time; values count bytes",
       "f:3:15: aggregate: to sort by this, say 'latency' among the values"},
      {"values count; sort -errors",
       "f:3:29: aggregate: to sort by this, say 'errors' among the values"},
      {"values latency; sort bytes",
       "f:3:31: aggregate: to sort by this, say 'bytes' among the values"},
      {"by", "f:3:12: aggregate: expected what to count by, found the end"},
      {"by op,",
       "f:3:16: aggregate: expected what else to count by, found "
       "the end"},
      {"by op, cnam",
       "f:3:17: aggregate: nothing can be counted by 'cnam'; did you mean "
       "'cname'? (known: op uid gid pid tid ppid sid pgid cname ext name dir "
       "path inode type errno)"},
      {"by op, op", "f:3:17: aggregate: by 'op' is given twice"},
      {"by op by uid",
       "f:3:16: aggregate: nothing can be counted by 'by' (known: op"},
      {"by uid gid pid tid ppid sid pgid op ext",
       "f:3:46: aggregate: more than 8 parts of a key"},
      {"by dir(0)",
       "f:3:17: aggregate: dir(N) needs a depth of 1 to 64, not '0'"},
      {"by dir(", "f:3:17: aggregate: dir(N) needs a depth of 1 to 64, not ''"},
      {"by dir(2", "f:3:18: aggregate: expected ')', found the end"},
      {"by op; by uid", "f:3:17: aggregate: 'by' is given twice"},
      {"values cuont",
       "f:3:17: aggregate: 'cuont' is no value; did you mean 'count'? (known: "
       "count errors bytes latency size)"},
      {"values ;",
       "f:3:17: aggregate: expected a value (count, errors, bytes, "
       "latency, size), found ';'"},
      {"every 10",
       "f:3:16: aggregate: every needs a duration of 1s to 24h, not '10'"},
      {"every 10ms",
       "f:3:16: aggregate: every needs a duration of 1s to 24h, not '10ms'"},
      {"every 10s 5s",
       "f:3:20: aggregate: expected ';' after every, found "
       "'5'"},
      {"top 0", "f:3:14: aggregate: top needs a number of 1 to 10000, not '0'"},
      {"top many",
       "f:3:14: aggregate: top needs a number of 1 to 10000, not 'many'"},
      {"memory 1K",
       "f:3:17: aggregate: memory needs a size of 256K to 256M, not '1K'"},
      {"= 5",
       "f:3:10: aggregate: expected a clause (by, values, every, sort, "
       "top, memory), found '='"},
      {"top 10000", "f:3:10: aggregate: there is memory for "},
  };
  for (const Bad& bad : cases) {
    const auto spec = Parse(bad.text);
    ASSERT_FALSE(spec.ok()) << bad.text;
    EXPECT_EQ(spec.status().code(), StatusCode::kInvalid);
    EXPECT_TRUE(spec.status().message().starts_with(bad.message))
        << bad.text << "\n"
        << spec.status().message();
  }
}

TEST(AggregateSpecTest, ManyKeysNeedMemoryAndTheAdviceIsRight) {
  const auto spec = Parse("top 1000; values latency size");
  ASSERT_FALSE(spec.ok());
  const std::string message = spec.status().message();
  const std::string_view say = "say memory ";
  const size_t at = message.find(say);
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_TRUE(Parse("top 1000; values latency size; memory " +
                    message.substr(at + say.size()))
                  .ok());
}

}  // namespace
}  // namespace tracefs
