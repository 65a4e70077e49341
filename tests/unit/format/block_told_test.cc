// What blocks tell besides operations: processes, changes, alarms, sums, names
// of system calls; and where reading goes on after a jump.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::format {
namespace {

using test::References;
using test::TraceBuilder;

class BlockToldTest : public testing::Test {
 protected:
  void Write(const std::function<bool(MessageWriter&)>& write) {
    std::vector<std::byte> memory(size_t{1} << 16);
    MessageWriter out(memory);
    ASSERT_TRUE(write(out));
    trace_.AddBytes(AsText(out.bytes()));
  }
  void AddProcess(const ProcessRecord& record) {
    Write([&](MessageWriter& out) { return WriteProcessRecord(out, record); });
  }
  static ProcessRecord Fork(uint32_t pid, uint32_t child) {
    ProcessRecord record;
    record.process.pid = pid;
    record.child.pid = child;
    return record;
  }
  static ProcessRecord Named(ProcessRecord::Kind kind, uint32_t pid,
                             std::string_view comm) {
    ProcessRecord record;
    record.kind = kind;
    record.process.pid = pid;
    record.comm = comm;
    return record;
  }
  static CallerInfo Caller(uint32_t pid, uint32_t ppid, std::string_view comm) {
    CallerInfo caller;
    caller.pid = pid;
    caller.ppid = ppid;
    caller.comm_size = static_cast<uint8_t>(comm.size());
    std::copy(comm.begin(), comm.end(), caller.comm_bytes.begin());
    return caller;
  }
  // An operation of that process.
  void AddOperation(uint32_t pid, uint32_t ppid, uint64_t time) {
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, time);
    event.Set(Field::kPid, pid);
    event.Set(Field::kPpid, ppid);
    trace_.Add(event);
  }

  // Reads the trace as it is; `use` gets each operation.
  ReadStats Read(const std::function<void(Record&)>& use = nullptr) {
    options_.report = [this](const Report& report) {
      reports_.push_back(report.Text());
    };
    TraceMerger merger;
    merger.Add(std::make_unique<TraceReader>(
        std::make_unique<MemorySource>(AsBytes(trace_.bytes())), options_));
    Record record;
    while (merger.Next(&record) == ReadStep::kItem) {
      if (use) use(record);
    }
    return merger.reader(0).stats();
  }

  TraceBuilder trace_;
  TraceReaderOptions options_;
  std::vector<std::string> reports_;
};

// "3 make, 2 sh, 1 init" and whether the line is known to its end.
std::string AncestorsOf(Record& record, size_t most = 100) {
  struct Line {
    std::string text;
    size_t left;
  } line = {"", most};
  const bool whole = record.event.resolver->ForEachAncestor(
      record.event, &line,
      [](void* context, uint32_t pid, std::string_view comm) {
        auto* const to = static_cast<Line*>(context);
        if (!to->text.empty()) to->text += ", ";
        to->text += std::to_string(pid) + ' ' + std::string(comm);
        return --to->left != 0;
      });
  return line.text + (whole ? "." : "?");
}

TEST_F(BlockToldTest, AncestorsAreThoseThatWereTold) {
  using Kind = ProcessRecord::Kind;
  trace_.DefineProcess(Caller(2, 1, "sh"));
  AddProcess(Fork(2, 3));
  AddProcess(Named(Kind::kExec, 3, "make"));
  AddProcess(Fork(3, 4));
  // A thread is no child, and pipes tell no names.
  AddProcess(Fork(4, 4));
  AddProcess(Named(Kind::kPipes, 4, "none"));
  // Nobody was told of 6, the parent of 7.
  ProcessRecord running = Named(Kind::kRunning, 7, "late");
  running.ppid = 6;
  AddProcess(running);
  AddOperation(9, 4, 100);
  AddOperation(9, 7, 101);
  AddOperation(9, 1, 102);
  AddOperation(9, 0, 103);
  trace_.EndBlock();
  std::vector<std::string> lines;
  const ReadStats stats = Read([&](Record& record) {
    lines.push_back(AncestorsOf(record));
    if (lines.size() == 1) {
      EXPECT_EQ(AncestorsOf(record, 2), "4 make, 3 make.");
    }
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"4 make, 3 make, 2 sh, 1 .",
                                             "7 late, 6 ?", "1 .", "0 ."}));
  EXPECT_EQ(stats.process_records, 6u);
  EXPECT_EQ(stats.events, 4u);
}

// Who names itself its own ancestor goes on for ever.
TEST_F(BlockToldTest, Malicious_AncestorsInACircleEnd) {
  trace_.DefineProcess(Caller(5, 6, "a"));
  trace_.DefineProcess(Caller(6, 5, "b"));
  AddOperation(9, 5, 100);
  trace_.EndBlock();
  size_t commas = 0;
  Read([&](Record& record) {
    const std::string line = AncestorsOf(record);
    EXPECT_TRUE(line.ends_with("?"));
    commas = static_cast<size_t>(std::count(line.begin(), line.end(), ','));
  });
  EXPECT_EQ(commas, 63u);
}

TEST_F(BlockToldTest, WithoutAParentProcessRecordsTellOrNothing) {
  Event event;
  event.op = Op::read_;
  event.Set(Field::kTime, 1);
  trace_.Add(event);
  trace_.EndBlock();
  AddProcess(Fork(1, 3));
  AddOperation(3, 0, 2);
  trace_.EndBlock();
  Read([&](Record& record) {
    record.event.present &= ~Bit(Field::kPpid);
    EXPECT_EQ(AncestorsOf(record), record.event.Has(Field::kPid) ? "1 ." : "?");
  });
}

TEST_F(BlockToldTest, ProcessRecordsComeBetweenTheOperations) {
  AddOperation(1, 0, TraceBuilder::kMonotonicNs + 10);
  ProcessRecord exit = Named(ProcessRecord::Kind::kExit, 1, "");
  exit.time_ns = TraceBuilder::kMonotonicNs + 20;
  AddProcess(exit);
  AddOperation(2, 0, TraceBuilder::kMonotonicNs + 30);
  trace_.EndBlock();
  std::vector<uint64_t> order;
  options_.process = [&](const ProcessRecord& record) {
    EXPECT_EQ(record.tracer_id, 1u);
    EXPECT_EQ(record.time_ns, TraceBuilder::kMonotonicNs + 20);
    order.push_back(record.real_ns - TraceBuilder::kRealNs);
  };
  Read([&](Record& record) {
    order.push_back(record.real_ns - TraceBuilder::kRealNs);
  });
  EXPECT_EQ(order, (std::vector<uint64_t>{10, 20, 30}));
}

TEST_F(BlockToldTest, ChangesAreToldEachByItself) {
  ChangeRecord change;
  change.properties = {{"filter.text", "op == read"}, {"x", ""}};
  Write([&](MessageWriter& out) { return WriteChange(out, change); });
  trace_.EndBlock();
  trace_.Finish();
  EXPECT_FALSE(Read().Bad());
  EXPECT_EQ(reports_, (std::vector<std::string>{
                          "the tracer was changed: filter.text=op == read",
                          "the tracer was changed: x="}));
}

TEST_F(BlockToldTest, ChangesRoundTripAndAreBounded) {
  ChangeRecord change;
  change.from_ns = 77;
  for (size_t i = 0; i < ChangeRecord::kMaxProperties + 3; ++i) {
    change.properties.emplace_back("k", "v=w");
  }
  std::vector<std::byte> memory(size_t{1} << 20);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteChange(out, change));
  MessageCursor in(out.bytes());
  Message message;
  ASSERT_TRUE(in.Next(&message));
  ChangeRecord back;
  ReadChange(message.arguments, &back);
  EXPECT_EQ(back.from_ns, 77u);
  ASSERT_EQ(back.properties.size(), ChangeRecord::kMaxProperties);
  EXPECT_EQ(back.properties.back().first, "k");
  EXPECT_EQ(back.properties.back().second, "v=w");
}

// A rule counts apart by what the operation says.
TEST_F(BlockToldTest, AlarmsNameTheValueThatTheyCountBy) {
  const std::pair<std::string, std::string> keys[] = {
      {"pid", "11"},      {"ppid", "12"},      {"tid", "13"},
      {"sid", "14"},      {"pgid", "15"},      {"uid", "16"},
      {"gid", "unknown"}, {"inode", "18"},     {"cname", "a \"b\""},
      {"", ""},           {"later", "unknown"}};
  for (const auto& [key, value] : keys) {
    AlarmRecord alarm;
    alarm.rule = 3;
    alarm.title = "t";
    alarm.key = key;
    alarm.op = Op::unlink_;
    Write([&](MessageWriter& out) {
      return WriteAlarm(out, alarm,
                        {.numbers = {{Field::kTime, TraceBuilder::kMonotonicNs},
                                     {Field::kPid, 11},
                                     {Field::kPpid, 12},
                                     {Field::kTid, 13},
                                     {Field::kSid, 14},
                                     {Field::kPgid, 15},
                                     {Field::kUid, 16},
                                     {Field::kInode, 18}},
                         .texts = {{Field::kComm, "a \"b\""}}});
    });
  }
  trace_.EndBlock();
  trace_.Finish();
  std::vector<std::pair<std::string, std::string>> seen;
  options_.alarm = [&](const AlarmRecord& alarm) {
    seen.emplace_back(alarm.key, alarm.KeyValue());
    EXPECT_EQ(alarm.tracer_id, 1u);
    EXPECT_EQ(alarm.operation->event.op, Op::unlink_);
    EXPECT_EQ(alarm.operation->real_ns, TraceBuilder::kRealNs);
  };
  const ReadStats stats = Read();
  EXPECT_EQ(stats.alarms, std::size(keys));
  EXPECT_FALSE(stats.Bad());
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::string>>(
                      std::begin(keys), std::end(keys))));
  options_.alarm = nullptr;
  EXPECT_EQ(Read().alarms, std::size(keys));
}

TEST_F(BlockToldTest, SumsHaveTheirTimesByTheClockOfTheirBlock) {
  AggregateRecord counted;
  counted.aggregate = 2;
  counted.from_ns = TraceBuilder::kMonotonicNs + 5;
  counted.to_ns = TraceBuilder::kMonotonicNs + 9;
  counted.count = 7;
  Write([&](MessageWriter& out) { return WriteAggregate(out, counted); });
  trace_.EndBlock();
  trace_.Finish();
  int seen = 0;
  options_.aggregate = [&](const AggregateRecord& record) {
    ++seen;
    EXPECT_EQ(record.tracer_id, 1u);
    EXPECT_EQ(record.real_from_ns, TraceBuilder::kRealNs + 5);
    EXPECT_EQ(record.real_to_ns, TraceBuilder::kRealNs + 9);
    EXPECT_EQ(record.count, 7u);
  };
  EXPECT_EQ(Read().aggregates, 1u);
  EXPECT_EQ(seen, 1);
}

// Losses after the last operation count like those before it.
TEST_F(BlockToldTest, DataLoss_WhatIsLostAfterTheLastOperationCounts) {
  AddOperation(1, 0, 100);
  trace_.EndBlock();
  trace_.AddLoss({.reason = "queue_full",
                  .count = 5,
                  .op_totals = {{.msg_id = 300, .count = 2},
                                {.msg_id = 301, .count = 3}}});
  trace_.EndBlock();
  trace_.AddLoss({.reason = std::string(100, 'r'),
                  .count = 1,
                  .op_totals = {{.msg_id = 300, .count = 1}}});
  trace_.Finish();
  const ReadStats stats = Read();
  EXPECT_EQ(stats.lost_events, 6u);
  EXPECT_EQ(stats.losses.at("queue_full"), 5u);
  EXPECT_EQ(stats.losses.at(std::string(64, 'r')), 1u);
  EXPECT_EQ(stats.lost_messages.at(300), 3u);
  EXPECT_EQ(stats.lost_messages.at(301), 3u);
  EXPECT_TRUE(stats.Bad());
}

TEST_F(BlockToldTest, SystemCallsHaveTheNamesOfTheirMachine) {
  const std::string longest(64, 'n');
  trace_.header().Set("syscalls",
                      "0 read\n257 openat\nx bad\n7\n8 \n9 B\n10 a b\n"
                      "\n11 _9z\n12 " +
                          longest + "\n13 " + longest +
                          "n\n4294967296 large\n14 last\n15 a{b");
  AddOperation(1, 0, 100);
  trace_.EndBlock();
  int seen = 0;
  Read([&](Record& record) {
    ++seen;
    const TraceContext& trace = *record.trace;
    const std::pair<uint64_t, std::string> expected[] = {
        {0, "read"},   {257, "openat"}, {7, ""},      {8, ""},
        {9, ""},       {15, ""},        {10, ""},     {11, "_9z"},
        {12, longest}, {13, ""},        {14, "last"}, {uint64_t{1} << 32, ""}};
    for (const auto& [number, name] : expected) {
      EXPECT_EQ(trace.CallName(number), name) << number;
    }
  });
  EXPECT_EQ(seen, 1);
}

TEST_F(BlockToldTest, DetailsOfTheCallerComeWithEachOfItsOperations) {
  // More processes than are kept decoded at a time.
  constexpr uint32_t kProcesses = 20;
  for (uint32_t id = 1; id <= kProcesses; ++id) {
    trace_.AddRaw(static_cast<uint16_t>(MessageId::kDefProcess),
                  [&](MessageWriter& out) {
                    const std::string n = std::to_string(id);
                    out.Put<uint32_t>(ArgId::kProcessId, id);
                    out.Put<uint32_t>(Info(Field::kPid).arg_id, 100 + id);
                    out.Put<uint32_t>(Info(Field::kPpid).arg_id, 200 + id);
                    out.Put<uint32_t>(Info(Field::kSid).arg_id, 300 + id);
                    out.Put<uint32_t>(Info(Field::kPgid).arg_id, 400 + id);
                    out.PutText(Info(Field::kComm).arg_id, "c" + n);
                    out.PutText(Info(Field::kExe).arg_id, "/e" + n);
                    out.PutText(Info(Field::kCgroup).arg_id, "/g" + n);
                    out.PutText(Info(Field::kTty).arg_id, "pts/" + n);
                    out.PutText(Info(Field::kCmdline).arg_id, "c " + n);
                    out.Put<uint64_t>(ArgId::kStartTime, 500 + id);
                  });
  }
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 200; ++i) {
    ids.push_back(1 + i * i % kProcesses);
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, 100 + i);
    event.Set(Field::kTid, 600 + i);
    trace_.Add(event, {.process = ids.back()});
  }
  trace_.EndBlock();
  size_t at = 0;
  Read([&](Record& record) {
    ASSERT_LT(at, ids.size());
    const uint32_t id = ids[at];
    const std::string n = std::to_string(id);
    ASSERT_NE(record.event.caller, nullptr);
    const CallerInfo& caller = *record.event.caller;
    EXPECT_EQ(caller.pid, 100 + id);
    EXPECT_EQ(caller.ppid, 200 + id);
    EXPECT_EQ(caller.sid, 300 + id);
    EXPECT_EQ(caller.pgid, 400 + id);
    EXPECT_EQ(caller.start_time, 500 + id);
    EXPECT_EQ(caller.tid, 600 + at);
    EXPECT_EQ(caller.comm(), "c" + n);
    EXPECT_EQ(record.event.Get(Field::kPpid), 200 + id);
    EXPECT_EQ(record.Text(Field::kComm), "c" + n);
    EXPECT_EQ(record.Text(Field::kExe), "/e" + n);
    EXPECT_EQ(record.Text(Field::kCgroup), "/g" + n);
    EXPECT_EQ(record.Text(Field::kTty), "pts/" + n);
    EXPECT_EQ(record.Text(Field::kCmdline), "c " + n);
    ++at;
  });
  EXPECT_EQ(at, ids.size());
}

// What is understood of one operation is nothing of the next.
TEST_F(BlockToldTest, WhatIsNotUnderstoodBelongsToItsOperationAlone) {
  const auto number = Info(Field::kUid).arg_id;
  trace_.AddRaw(0x10b, [&](MessageWriter& out) {
    out.Put<uint64_t>(Info(Field::kTime).arg_id, 1);
    out.PutText(998, "text");
    out.PutText(number, "hidden");
  });
  AddOperation(1, 0, 2);
  trace_.EndBlock();
  int seen = 0;
  Read([&](Record& record) {
    if (++seen == 1) {
      ASSERT_EQ(record.extra.size(), 2u);
      EXPECT_EQ(AsText(record.extra[0].value), "text");
      const ExtraArgument* const hidden = OpaqueValue(record, Field::kUid);
      ASSERT_NE(hidden, nullptr);
      EXPECT_EQ(AsText(hidden->value), "hidden");
    } else {
      EXPECT_TRUE(record.extra.empty());
      EXPECT_EQ(OpaqueValue(record, Field::kUid), nullptr);
    }
    EXPECT_EQ(OpaqueValue(record, Field::kGid), nullptr);
  });
  EXPECT_EQ(seen, 2);
}

// Arguments of later versions are what the trace says that they are.
TEST_F(BlockToldTest, ATraceDescribesItsOwnArguments) {
  const auto described = [](uint16_t id, uint16_t width, FieldType type) {
    std::string text(5, '\0');
    StoreLe<uint16_t>(text.data(), id);
    StoreLe<uint16_t>(text.data() + 2, width);
    text[4] = static_cast<char>(type);
    return text + "ARG_NEW";
  };
  std::vector<std::byte> memory(1 << 16);
  MessageWriter out(memory);
  out.Begin(static_cast<uint16_t>(MessageId::kStart));
  out.Put<uint64_t>(ArgId::kClockMonotonic, 1000);
  out.Put<uint64_t>(ArgId::kClockReal, 9000);
  out.PutText(ArgId::kArgumentName, described(990, 4, FieldType::kSigned));
  out.PutText(ArgId::kArgumentName, described(991, 4, FieldType::kUnsigned));
  out.PutText(ArgId::kArgumentName, described(992, 0, FieldType::kText));
  ASSERT_TRUE(out.End());
  // In the same block: its clock is that of START.
  out.Begin(0x10b);
  out.Put<uint64_t>(Info(Field::kTime).arg_id, 1007);
  out.Put<uint32_t>(990, static_cast<uint32_t>(-5));
  out.Put<uint32_t>(991, static_cast<uint32_t>(-5));
  out.PutText(992, "\xff");
  out.PutText(991, "abcd");
  ASSERT_TRUE(out.End());
  const std::string bytes =
      EncodePreamble({.serial = trace_.serial(), .chain = "file"}) +
      trace_.Frame(0, AsText(out.bytes()));
  TraceReader reader(std::make_unique<MemorySource>(AsBytes(bytes)),
                     TraceReaderOptions());
  std::unique_ptr<BlockDecoder> block;
  ASSERT_TRUE(reader.NextBlock(&block).ok());
  ASSERT_FALSE(block->at_end());
  Record record;
  block->Next(&record);
  EXPECT_EQ(record.real_ns, 9007u);
  EXPECT_EQ(reader.stats().malformed_messages, 0u);
  ASSERT_EQ(record.extra.size(), 4u);
  const auto meaning = [&](size_t i) {
    return Interpret(*record.trace, record.extra[i]);
  };
  EXPECT_EQ(meaning(0).kind, ExtraValue::Kind::kSigned);
  EXPECT_EQ(static_cast<int64_t>(meaning(0).number), -5);
  EXPECT_EQ(meaning(1).kind, ExtraValue::Kind::kUnsigned);
  EXPECT_EQ(meaning(1).number, 0xfffffffbu);
  EXPECT_EQ(meaning(2).kind, ExtraValue::Kind::kText);
  EXPECT_NE(meaning(3).kind, ExtraValue::Kind::kUnsigned)
      << "four bytes of text are no number";
}

TEST_F(BlockToldTest, TimesThatAreNoneAndCoarseOnesKeepTheOrder) {
  const auto add = [&](uint32_t pid, const auto& time) {
    trace_.AddRaw(0x10b, [&](MessageWriter& out) {
      time(out);
      out.Put<uint32_t>(Info(Field::kPid).arg_id, pid);
    });
  };
  // Beyond 2^31 s: no negative number.
  add(1, [](MessageWriter& out) {
    out.Put<uint32_t>(ArgId::kTimeSec, 0x90000000);
  });
  add(2, [](MessageWriter& out) { out.Put<uint32_t>(ArgId::kTimeSec, 5); });
  // Hidden: it stays with the one before it.
  add(3, [](MessageWriter& out) {
    out.PutText(Info(Field::kTime).arg_id, "hidden!!");
  });
  add(4, [](MessageWriter& out) {
    out.Put<uint64_t>(ArgId::kTimeUsec, 4'000'000);
  });
  trace_.EndBlock();
  std::vector<uint64_t> pids;
  Read([&](Record& record) { pids.push_back(record.event.Get(Field::kPid)); });
  EXPECT_EQ(pids, (std::vector<uint64_t>{4, 2, 3, 1}));
}

TEST_F(BlockToldTest, Malicious_AReferenceToNothingIsNone) {
  trace_.DefinePath(0, "");
  trace_.AddRaw(0x10b, [&](MessageWriter& out) {
    out.Put<uint64_t>(Info(Field::kTime).arg_id, 1);
    out.Put<uint32_t>(ArgId::kPathId, 0);
    out.Put<uint32_t>(ArgId::kParentPathId, 2);
    out.Put<uint32_t>(ArgId::kNewParentPathId, 1);
    out.Put<uint32_t>(ArgId::kProcessId, 1);
  });
  trace_.EndBlock();
  int seen = 0;
  Read([&](Record& record) {
    ++seen;
    EXPECT_EQ(record.event.node, 0u);
    EXPECT_EQ(record.event.parent, 0u);
    EXPECT_EQ(record.event.new_parent, 1u);
    EXPECT_EQ(record.event.caller, nullptr);
  });
  EXPECT_EQ(seen, 1);
}

// --- Going elsewhere --------------------------------------------------------

class JumpTest : public BlockToldTest {
 protected:
  static constexpr uint64_t kBlocks = 300;
  static constexpr uint64_t kStep = 50'000'000;

  void SetUp() override {
    for (uint64_t block = 1; block <= kBlocks; ++block) {
      if (block == 77) trace_.SkipSequence();
      AddOperation(static_cast<uint32_t>(block), 0,
                   TraceBuilder::kMonotonicNs + block * kStep);
      trace_.AddRaw(999, [](MessageWriter& out) {
        out.PutText(998, std::string(3000, 'x'));
      });
      trace_.EndBlock();
    }
    trace_.Finish();
  }
  std::unique_ptr<TraceReader> Opened() {
    auto reader = std::make_unique<TraceReader>(
        std::make_unique<MemorySource>(AsBytes(trace_.bytes())),
        TraceReaderOptions());
    std::unique_ptr<BlockDecoder> first;
    EXPECT_TRUE(reader->CanSeek());
    EXPECT_TRUE(reader->NextBlock(&first).ok());
    EXPECT_EQ(first->sequence(), 0u);
    return reader;
  }
  // The pid of the first operation that is still to come, 0 for none, and the
  // number of its block.
  static std::pair<uint64_t, uint64_t> First(TraceReader& reader) {
    for (;;) {
      std::unique_ptr<BlockDecoder> block;
      const auto step = reader.NextBlock(&block);
      EXPECT_TRUE(step.ok());
      if (!step.ok() || *step != ReadStep::kItem) return {0, 0};
      if (block->at_end()) continue;
      Record record;
      block->Next(&record);
      return {record.event.Get(Field::kPid), block->sequence()};
    }
  }
};

TEST_F(JumpTest, ToEveryBlockByItsNumber) {
  for (uint64_t wanted = 1; wanted <= kBlocks + 3; wanted += 4) {
    const auto reader = Opened();
    ASSERT_TRUE(reader->SeekBlock(wanted).ok());
    const auto [pid, block] = First(*reader);
    if (wanted > kBlocks + 1) {
      EXPECT_EQ(pid, 0u) << wanted;
      continue;
    }
    // Number 77 is of no block.
    EXPECT_EQ(block, wanted == 77 ? 78 : wanted);
    EXPECT_EQ(pid, block - (block > 77 ? 1 : 0));
    EXPECT_EQ(reader->stats().jumped, wanted > 1);
  }
}

// Blocks that are over before the moment are passed over, not decoded.
TEST_F(JumpTest, ToEveryMoment) {
  for (uint64_t at = 0; at <= kBlocks; at += 3) {
    const auto reader = Opened();
    const uint64_t moment = TraceBuilder::kRealNs + at * kStep;
    ASSERT_TRUE(reader->SeekTime(moment).ok());
    EXPECT_EQ(First(*reader).first, std::max<uint64_t>(at, 1));
    EXPECT_EQ(reader->stats().MissingEvents(), 0u);
    // What is passed over is not missing; between 76 and 78 one is.
    EXPECT_LE(reader->stats().missing_blocks, at > 200 ? 0u : 1u);
  }
  const auto reader = Opened();
  const auto span = reader->TimeSpan();
  ASSERT_TRUE(span.ok() && *span);
  EXPECT_EQ((*span)->first_ns, TraceBuilder::kRealNs + kStep);
  EXPECT_EQ((*span)->last_ns, TraceBuilder::kRealNs + kBlocks * kStep);
  // That asked, and went nowhere.
  EXPECT_EQ(First(*reader).first, 1u);
}

}  // namespace
}  // namespace tracefs::format
