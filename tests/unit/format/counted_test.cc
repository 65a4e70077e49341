// AGGREGATE and ALARM come back as written, each argument by itself, too.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

class CountedTest : public testing::Test {
 protected:
  // The arguments of what was written last.
  ByteSpan Arguments() {
    MessageCursor in(out_.bytes());
    Message message;
    EXPECT_TRUE(in.Next(&message));
    return message.arguments;
  }
  AggregateRecord Back(const AggregateRecord& record) {
    out_ = MessageWriter(memory_);
    EXPECT_TRUE(WriteAggregate(out_, record));
    AggregateRecord read;
    EXPECT_TRUE(ReadAggregate(Arguments(), widths_, &read));
    return read;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kAggregateMaxBytes);
  MessageWriter out_ = MessageWriter(memory_);
  const ArgumentWidths widths_;
};

TEST_F(CountedTest, AggregateRoundTrip) {
  const AggregateRecord record = {
      .aggregate = 2,
      .total = true,
      .from_ns = 3,
      .to_ns = 4,
      .other = true,
      .key = {{.arg_id = static_cast<uint16_t>(ArgId::kKeyOp),
               .number = 5,
               .text = {}},
              {.arg_id = static_cast<uint16_t>(ArgId::kDirectory),
               .text = "a/b"},
              {.arg_id = Info(Field::kComm).arg_id, .text = "cat"},
              {.arg_id = Info(Field::kUid).arg_id,
               .number = 0xfffffffe,
               .text = {}},
              {.arg_id = Info(Field::kInode).arg_id,
               .number = 0x123456789abcdef0,
               .text = {}}},
      .count = 6,
      .missed = 7,
      .errors = 8,
      .bytes = 9,
      .latency = {true, 10, 11, {{1, 12}, {2, 13}, {200, 14}}},
      .size = {true, 9, 15, {{3, 16}, {4, 17}}}};
  const AggregateRecord read = Back(record);
  EXPECT_EQ(read.aggregate, 2u);
  EXPECT_TRUE(read.total);
  EXPECT_EQ(read.from_ns, 3u);
  EXPECT_EQ(read.to_ns, 4u);
  EXPECT_TRUE(read.other);
  ASSERT_EQ(read.key.size(), record.key.size());
  for (size_t i = 0; i < read.key.size(); ++i) {
    EXPECT_EQ(read.key[i].arg_id, record.key[i].arg_id) << i;
    EXPECT_EQ(read.key[i].number, record.key[i].number) << i;
    EXPECT_EQ(read.key[i].text, record.key[i].text) << i;
  }
  EXPECT_EQ(read.count, 6u);
  EXPECT_EQ(read.missed, 7u);
  EXPECT_EQ(read.errors, 8u);
  EXPECT_EQ(read.bytes, 9u);
  const auto same = [](const HistogramRecord& a, const HistogramRecord& b) {
    EXPECT_TRUE(a.present);
    EXPECT_EQ(a.sum, b.sum);
    EXPECT_EQ(a.max, b.max);
    ASSERT_EQ(a.buckets.size(), b.buckets.size());
    for (size_t i = 0; i < a.buckets.size(); ++i) {
      EXPECT_EQ(a.buckets[i].bucket, b.buckets[i].bucket);
      EXPECT_EQ(a.buckets[i].count, b.buckets[i].count);
    }
  };
  same(read.latency, record.latency);
  same(read.size, record.size);
  const tally::TimedSums sums = SumsOf(read);
  EXPECT_EQ(sums.count, 6u);
  EXPECT_EQ(sums.errors, 8u);
  EXPECT_EQ(sums.bytes, 9u);
  EXPECT_EQ(sums.timed, 6u);
  EXPECT_EQ(sums.time_ns, 10u);
  EXPECT_EQ(sums.max_ns, 11u);
}

TEST_F(CountedTest, WhatWasNotCountedIsNotThere) {
  const AggregateRecord read = Back({.count = 1});
  EXPECT_FALSE(read.total || read.other || read.errors || read.bytes ||
               read.latency.present || read.size.present);
  EXPECT_EQ(read.missed, 0u);
  EXPECT_TRUE(read.key.empty());
  EXPECT_EQ(SumsOf(read).timed, 0u);
}

TEST_F(CountedTest, FlagsAreOne) {
  out_ = MessageWriter(memory_);
  ASSERT_TRUE(WriteAggregate(out_, {.total = true, .other = true, .count = 1}));
  ArgumentCursor in(Arguments(), widths_);
  Argument argument;
  int flags = 0;
  while (in.Next(&argument)) {
    if (!argument.is<uint8_t>()) continue;
    EXPECT_EQ(argument.As<uint8_t>(), 1) << argument.id;
    ++flags;
  }
  EXPECT_EQ(flags, 2);
}

TEST_F(CountedTest, Malicious_MorePartsAndBucketsThanThereAre) {
  AggregateRecord record;
  for (size_t i = 0; i < AggregateRecord::kMaxKeyParts + 3; ++i) {
    record.key.push_back(
        {.arg_id = Info(Field::kPid).arg_id, .number = i, .text = {}});
  }
  record.latency.present = true;
  record.latency.buckets = {{0xffff, 1}, {1, 2}};
  const AggregateRecord read = Back(record);
  EXPECT_EQ(read.key.size(), AggregateRecord::kMaxKeyParts);
  EXPECT_EQ(read.key.back().number, AggregateRecord::kMaxKeyParts - 1);
  ASSERT_EQ(read.latency.buckets.size(), 1u);
  EXPECT_EQ(read.latency.buckets[0].count, 2u);
}

TEST_F(CountedTest, KeysHaveTheNamesAndTypesOfTheirFields) {
  const auto op = static_cast<uint16_t>(ArgId::kKeyOp);
  const auto dir = static_cast<uint16_t>(ArgId::kDirectory);
  EXPECT_EQ(AggregateKeyLabel(op), "op");
  EXPECT_EQ(AggregateKeyLabel(dir), "dir");
  EXPECT_EQ(AggregateKeyLabel(Info(Field::kPid).arg_id), "pid");
  EXPECT_EQ(AggregateKeyLabel(0x7fff), "");
  EXPECT_TRUE(AggregateKeyIsText(dir));
  EXPECT_TRUE(AggregateKeyIsText(Info(Field::kComm).arg_id));
  EXPECT_FALSE(AggregateKeyIsText(op));
  EXPECT_FALSE(AggregateKeyIsText(Info(Field::kPid).arg_id));
  EXPECT_FALSE(AggregateKeyIsText(0x7fff));
}

TEST_F(CountedTest, AlarmRoundTrip) {
  const AlarmRecord record = {.rule = 1,
                              .title = "deletes",
                              .key = "tree",
                              .key_pid = 2,
                              .other = true,
                              .count = 3,
                              .limit = 4,
                              .window_ns = 5,
                              .windows = 6,
                              .op = Op::unlink_,
                              .actions = {"snapshot 2: done", "stop"},
                              .ancestors = {{9, "sh"}, {10, ""}, {1, "init"}},
                              .paths = {"/b", "/a"},
                              .not_known = {"exe"}};
  ASSERT_TRUE(WriteAlarm(out_, record,
                         {.numbers = {{Field::kTime, 7}, {Field::kPid, 8}},
                          .texts = {{Field::kComm, "rm"}}}));
  AlarmRecord read;
  ASSERT_TRUE(ReadAlarm(Arguments(), widths_, &read));
  EXPECT_EQ(read.rule, 1u);
  EXPECT_EQ(read.title, "deletes");
  EXPECT_EQ(read.key, "tree");
  EXPECT_EQ(read.key_pid, 2u);
  EXPECT_TRUE(read.other);
  EXPECT_EQ(read.count, 3u);
  EXPECT_EQ(read.limit, 4u);
  EXPECT_EQ(read.window_ns, 5u);
  EXPECT_EQ(read.windows, 6u);
  EXPECT_EQ(read.op, Op::unlink_);
  EXPECT_EQ(read.actions, record.actions);
  ASSERT_EQ(read.ancestors.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.ancestors[i].pid, record.ancestors[i].pid);
    EXPECT_EQ(read.ancestors[i].comm, record.ancestors[i].comm);
  }
  EXPECT_EQ(read.paths, record.paths);
  EXPECT_EQ(read.not_known, record.not_known);
  EXPECT_EQ(read.KeyValue(), "(other)");
  read.other = false;
  EXPECT_EQ(read.KeyValue(), "2");
  // The values of the operation are arguments as those of operations are.
  std::map<uint16_t, std::string> values;
  ArgumentCursor in(Arguments(), widths_);
  Argument argument;
  while (in.Next(&argument)) {
    if (!IsAlarmArgument(argument.id)) {
      values[argument.id] = std::string(AsText(argument.value));
    }
  }
  EXPECT_EQ(values.size(), 3u);
  EXPECT_EQ(values[Info(Field::kComm).arg_id], "rm");
  EXPECT_EQ(values[Info(Field::kTime).arg_id],
            std::string("\7\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(values[Info(Field::kPid).arg_id], std::string("\10\0\0\0", 4));

  out_ = MessageWriter(memory_);
  ASSERT_TRUE(WriteAlarm(out_, AlarmRecord(), {}));
  ASSERT_TRUE(ReadAlarm(Arguments(), widths_, &read));
  EXPECT_TRUE(read.key.empty() && !read.other && read.key_pid == 0 &&
              !read.op && read.actions.empty());
  EXPECT_EQ(read.KeyValue(), "");
}

}  // namespace
}  // namespace tracefs::format
