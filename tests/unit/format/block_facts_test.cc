// What else is true of blocks and of their parts: each message is counted as
// what it is alone, what is unknown is named, and numbers have their widths.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"
#include "tracefs/format/record.h"
#include "tracefs/format/state_message.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs::format {
namespace {

using test::TraceBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

Event Read(uint64_t at) {
  Event e;
  e.op = Op::read_;
  e.Set(Field::kTime, TraceBuilder::kMonotonicNs + at);
  return e;
}

// Reads it, and looks at each operation.
ReadStats ReadAll(TraceBuilder& trace,
                  const std::function<void(Record&)>& look = {},
                  std::vector<std::string>* reports = nullptr) {
  trace.EndBlock();
  trace.Finish();
  TraceReaderOptions options;
  options.report = [reports](const Report& report) {
    if (reports != nullptr) reports->push_back(report.Text());
  };
  TraceMerger merger;
  auto reader = std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(trace.bytes())),
      std::move(options));
  TraceReader& kept = *reader;
  merger.Add(std::move(reader));
  Record record;
  while (merger.Next(&record) == ReadStep::kItem) {
    if (look) look(record);
  }
  return kept.stats();
}

TEST(BlockFactsTest, AMessageIsCountedAsWhatItIsAlone) {
  using Counters = std::map<std::string, uint64_t>;
  const auto counted = [](const std::function<void(TraceBuilder&)>& add) {
    TraceBuilder trace;
    add(trace);
    const ReadStats stats = ReadAll(trace);
    Counters found = {{"events", stats.events},
                      {"changes", stats.changes},
                      {"alarms", stats.alarms},
                      {"sums", stats.aggregates},
                      {"states", stats.states},
                      {"files", stats.files},
                      {"index", stats.index_pieces},
                      {"processes", stats.process_records},
                      {"lost", stats.lost_events},
                      {"bad", stats.bad_definitions},
                      {"unknown", stats.unknown_messages.size()},
                      {"malformed", stats.malformed_messages}};
    std::erase_if(found, [](const auto& each) { return each.second == 0; });
    return found;
  };
  EXPECT_EQ(counted([](TraceBuilder&) {}), Counters());
  EXPECT_EQ(
      counted([](TraceBuilder& t) { t.DefinePath(t.DefinePath(0, ""), "f"); }),
      Counters());
  EXPECT_EQ(counted([](TraceBuilder& t) { t.DefineProcess({}); }), Counters());
  EXPECT_EQ(counted([](TraceBuilder& t) { t.Add(Read(1)); }),
            (Counters{{"events", 1}}));
  EXPECT_EQ(counted([](TraceBuilder& t) {
              LossRecord loss;
              loss.count = 3;
              loss.reason = "queue_full";
              t.AddLoss(loss);
            }),
            (Counters{{"lost", 3}}));
  const std::pair<MessageId, const char*> kinds[] = {
      {MessageId::kChange, "changes"},       {MessageId::kAlarm, "alarms"},
      {MessageId::kAggregate, "sums"},       {MessageId::kState, "states"},
      {MessageId::kFile, "files"},           {MessageId::kIndex, "index"},
      {MessageId::kProcessExit, "processes"}};
  for (const auto& [id, name] : kinds) {
    EXPECT_EQ(counted([&](TraceBuilder& t) {
                t.AddRaw(static_cast<uint16_t>(id), [](MessageWriter&) {});
              }),
              (Counters{{name, 1}}));
  }
  EXPECT_EQ(counted([](TraceBuilder& t) {
              t.AddRaw(0x7001, [](MessageWriter&) {});
              t.AddRaw(0x7001, [](MessageWriter&) {});
            }),
            (Counters{{"unknown", 1}}));
}

TEST(BlockFactsTest, WhatIsUnknownIsNamedAsTheTraceDoes) {
  std::vector<std::string> reports;
  TraceBuilder trace;
  trace.AddRaw(0x7001, [](MessageWriter&) {});
  trace.AddRaw(0x10b, [](MessageWriter& out) { out.PutText(0x3001, "x"); });
  ReadAll(trace, {}, &reports);
  EXPECT_THAT(reports, ElementsAre(testing::HasSubstr("MSG_28673"),
                                   testing::HasSubstr("ARG_12289")));
}

TEST(BlockFactsTest, AnOpaqueNumberIsFoundWhereverItStands) {
  TraceBuilder trace;
  const Field fields[] = {Field::kUid, Field::kGid, Field::kPid};
  trace.AddRaw(0x10b, [&](MessageWriter& out) {
    for (const Field f : fields) {
      out.PutText(Info(f).arg_id,
                  std::string("of ") + Info(f).predicate.data());
    }
  });
  trace.Add(Read(1));
  int seen = 0;
  const ReadStats stats = ReadAll(trace, [&](Record& record) {
    for (const Field f : fields) {
      const ExtraArgument* const value = OpaqueValue(record, f);
      ASSERT_EQ(value != nullptr, seen == 0);
      if (value != nullptr) {
        EXPECT_EQ(AsText(value->value),
                  std::string("of ") + Info(f).predicate.data());
      }
    }
    EXPECT_EQ(OpaqueValue(record, Field::kTid), nullptr);
    ++seen;
  });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(stats.opaque,
            Bit(Field::kUid) | Bit(Field::kGid) | Bit(Field::kPid));
}

TEST(BlockFactsTest, TheRootHasNoName) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t file = trace.DefinePath(root, "f \"1\" ");
  trace.Add(Read(1), {.path = file, .parent = root});
  std::vector<std::string> of_file;
  std::vector<std::string> of_root;
  ReadAll(trace, [&](Record& record) {
    const auto visit = [](void* context, std::string_view name) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(name);
    };
    Event& e = record.event;
    e.resolver->ForEachName(e.node, &of_file, visit);
    e.resolver->ForEachName(e.parent, &of_root, visit);
  });
  EXPECT_THAT(of_file, ElementsAre("f \"1\" "));
  EXPECT_THAT(of_root, IsEmpty());
}

TEST(BlockFactsTest, AProcessAfterItsUseIsNobody) {
  TraceBuilder trace;
  CallerInfo caller;
  caller.pid = 5;
  trace.Add(Read(1), {.process = 1});
  trace.DefineProcess(caller);
  trace.Add(Read(2), {.process = 1});
  std::vector<bool> known;
  ReadAll(trace, [&](Record& record) {
    known.push_back(record.event.Has(Field::kPid));
    // Nobody has to be asked for what a trace does not tell.
    const Event& e = record.event;
    EXPECT_TRUE(e.caller_resolved && e.attributes_resolved &&
                e.syscall_resolved && e.details_resolved);
    if (!known.back()) return;
    EXPECT_EQ(e.caller->pid, 5u);
    EXPECT_EQ(e.caller->tid, 0u) << "it was not told";
  });
  EXPECT_THAT(known, ElementsAre(false, true));
}

TEST(BlockFactsTest, CallersHaveTheNumbersOfTheirOperation) {
  // Whether its process is defined or only named.
  for (const bool defined : {false, true}) {
    TraceBuilder trace;
    CallerInfo caller;
    caller.serial = 1;
    const uint32_t process = trace.DefineProcess(caller);
    trace.AddRaw(0x10b, [&](MessageWriter& out) {
      uint32_t number = 10;
      for (const Field f : {Field::kTid, Field::kPid, Field::kPpid, Field::kSid,
                            Field::kPgid}) {
        out.Put<uint32_t>(Info(f).arg_id, number++);
      }
      if (defined) {
        out.Put<uint32_t>(ArgId::kProcessId, process);
      } else {
        out.PutText(Info(Field::kComm).arg_id, "sh \"");
      }
    });
    int seen = 0;
    ReadAll(trace, [&](Record& record) {
      ++seen;
      EXPECT_EQ(record.msg_id, 0x10bu);
      ASSERT_NE(record.event.caller, nullptr);
      const CallerInfo& found = *record.event.caller;
      EXPECT_EQ(found.tid, 10u);
      EXPECT_EQ(found.pid, 11u);
      EXPECT_EQ(found.ppid, 12u);
      EXPECT_EQ(found.sid, 13u);
      EXPECT_EQ(found.pgid, 14u);
      EXPECT_EQ(found.comm(), defined ? "" : "sh \"");
    });
    EXPECT_EQ(seen, 1);
  }
  // Without a caller nothing is left of the one before.
  TraceBuilder trace;
  trace.AddRaw(0x10b, [&](MessageWriter& out) {
    out.Put<uint32_t>(Info(Field::kPid).arg_id, 5);
  });
  ReadAll(trace, [](Record& record) {
    EXPECT_EQ(record.event.caller, nullptr);
    EXPECT_EQ(record.event.Get(Field::kPid), 5u);
  });
}

TEST(BlockFactsTest, LossesHaveTheirTimes) {
  for (const bool timed : {false, true}) {
    std::vector<Report> reports;
    TraceBuilder trace;
    LossRecord loss;
    loss.count = 3;
    loss.reason = "queue_full";
    if (timed) {
      loss.first_ns = TraceBuilder::kMonotonicNs + 5;
      loss.last_ns = TraceBuilder::kMonotonicNs + 9;
    }
    trace.AddLoss(loss);
    trace.EndBlock();
    trace.Finish();
    TraceReaderOptions options;
    options.report = [&](const Report& report) { reports.push_back(report); };
    TraceReader reader(std::make_unique<MemorySource>(AsBytes(trace.bytes())),
                       std::move(options));
    std::unique_ptr<BlockDecoder> block;
    while (*reader.NextBlock(&block) == ReadStep::kItem) {
    }
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].count, 3u);
    EXPECT_EQ(reports[0].begin_ns, timed ? TraceBuilder::kRealNs + 5 : 0);
    EXPECT_EQ(reports[0].end_ns, timed ? TraceBuilder::kRealNs + 9 : 0);
  }
}

TEST(BlockFactsTest, NothingIsLeftOfTheStateBefore) {
  std::vector<std::byte> memory(4096);
  StateRecord state;
  for (const bool full : {true, false}) {
    MessageWriter out(memory);
    FileState file;
    file.incomplete = full;
    if (full) {
      file.xattrs = {{"user.a", "1"}};
      file.data = {{.offset = 1, .length = 2}};
    }
    ASSERT_TRUE(WriteState(out, file, 1, /*late=*/full, /*at_end=*/full, ""));
    MessageCursor messages(out.bytes());
    Message message;
    ASSERT_TRUE(messages.Next(&message));
    ASSERT_TRUE(ReadState(message.arguments, BuiltInWidths(), &state));
    EXPECT_EQ(state.late, full);
    EXPECT_EQ(state.at_end, full);
    EXPECT_EQ(state.incomplete, full);
    EXPECT_EQ(state.has_ranges, full);
    EXPECT_EQ(state.xattrs.empty(), !full);
    EXPECT_EQ(state.ranges.empty(), !full);
  }
}

// Each number of an alarm, one by one, as a stranger would read it.
TEST(AlarmTest, NumbersHaveTheWidthsOfTheirFields) {
  for (const FieldInfo& field : Fields()) {
    if (field.arg_id == 0 || !IsNumeric(field.field)) continue;
    std::vector<std::byte> memory(4096);
    const auto arguments = [&](const AlarmValues& values) {
      MessageWriter out(memory);
      EXPECT_TRUE(WriteAlarm(out, {}, values));
      MessageCursor messages(out.bytes());
      Message message;
      EXPECT_TRUE(messages.Next(&message));
      ArgumentCursor in(message.arguments, BuiltInWidths());
      std::map<uint16_t, std::vector<size_t>> widths;
      Argument argument;
      while (in.Next(&argument)) {
        widths[argument.id].push_back(argument.value.size());
      }
      EXPECT_FALSE(in.malformed());
      return widths;
    };
    auto expected = arguments({});
    expected[field.arg_id].push_back(field.width);
    EXPECT_EQ(arguments({.numbers = {{field.field, 5}}, .texts = {}}), expected)
        << field.json_key;
  }
}

TEST(StartTest, AClockIsBothItsTimes) {
  for (const bool monotonic : {false, true}) {
    for (const bool real : {false, true}) {
      std::vector<std::byte> memory(100);
      MessageWriter out(memory);
      out.Begin(static_cast<uint16_t>(MessageId::kStart));
      if (monotonic) out.Put<uint64_t>(ArgId::kClockMonotonic, 1);
      if (real) out.Put<uint64_t>(ArgId::kClockReal, 2);
      ASSERT_TRUE(out.End());
      MessageCursor messages(out.bytes());
      Message message;
      ASSERT_TRUE(messages.Next(&message));
      SelfDescription read;
      ASSERT_TRUE(ReadStart(message.arguments, &read));
      EXPECT_EQ(read.has_clock, monotonic && real);
    }
  }
}

}  // namespace
}  // namespace tracefs::format
