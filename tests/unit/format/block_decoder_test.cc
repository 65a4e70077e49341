// From events to messages and back: every operation with every field, and
// blocks that lie.
#include "tracefs/format/block_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/definitions.h"
#include "tests/support/random_event.h"
#include "tests/support/trace_builder.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::format {
namespace {

using test::RandomEvent;
using test::References;
using test::TraceBuilder;

// A reader over `bytes`, which must outlive it, that keeps the reports.
class BlockDecoderTest : public testing::Test {
 protected:
  TraceMerger& Open(const std::string& bytes) {
    merger_.emplace();
    TraceReaderOptions options;
    options.report = [this](const Report& report) {
      reports_.push_back(report.Text());
      ++kinds_[report.kind];
    };
    merger_->Add(std::make_unique<TraceReader>(
        std::make_unique<MemorySource>(AsBytes(bytes)), std::move(options)));
    return *merger_;
  }
  bool Next() { return merger_->Next(&record_) == ReadStep::kItem; }
  const ReadStats& stats() { return merger_->reader(0).stats(); }
  std::string Path() { return std::string(PathOf(record_, buffer_)); }
  std::string NewPath() { return std::string(NewPathOf(record_, buffer_)); }

  std::optional<TraceMerger> merger_;
  Record record_;
  PathBuffer buffer_;
  std::vector<std::string> reports_;
  std::map<ReportKind, int> kinds_;
};

TEST_F(BlockDecoderTest, RoundTrip_EveryOperationWithEveryField) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    TraceBuilder trace;
    std::vector<std::unique_ptr<RandomEvent>> events;
    std::vector<References> references;
    const CallerInfo caller = test::RandomCaller(random);
    const uint32_t process = trace.DefineProcess(caller);
    const uint32_t root = trace.DefinePath(0, "");
    const uint32_t dir = trace.DefinePath(root, "dir");
    uint64_t time = 1000;
    for (size_t op = 0; op < kOpCount; ++op) {
      time += random() % 3;
      events.push_back(
          std::make_unique<RandomEvent>(random, static_cast<Op>(op), time));
      references.push_back({.path = random() % 2 ? dir : 0,
                            .parent = random() % 2 ? root : 0,
                            .new_parent = random() % 2 ? dir : 0,
                            .process = random() % 2 ? process : 0});
      trace.Add(events.back()->event, references.back());
    }
    trace.EndBlock();
    trace.Finish();

    Open(trace.bytes());
    for (size_t i = 0; i < events.size(); ++i) {
      ASSERT_TRUE(Next());
      const Event& in = events[i]->event;
      const Event& out = record_.event;
      const References& refs = references[i];
      ASSERT_EQ(out.op, in.op);
      ASSERT_EQ(out.before, in.before);
      uint64_t present = in.present;
      if (refs.process != 0) {
        present |= Bit(Field::kPid) | Bit(Field::kPpid) | Bit(Field::kSid) |
                   Bit(Field::kPgid);
      }
      // No success has a negative result: without an errno that was hidden.
      if (in.Has(Field::kErrno) && in.Get(Field::kErrno) == 0 &&
          static_cast<int64_t>(in.Get(Field::kResult)) < 0) {
        present &= ~Bit(Field::kErrno);
      }
      ASSERT_EQ(out.present, present);
      for (const FieldInfo& f : Fields()) {
        if (!IsNumeric(f.field) || !out.Has(f.field)) continue;
        uint64_t expected = in.Get(f.field);
        if (refs.process != 0) {
          if (f.field == Field::kPid) expected = caller.pid;
          if (f.field == Field::kPpid) expected = caller.ppid;
          if (f.field == Field::kSid) expected = caller.sid;
          if (f.field == Field::kPgid) expected = caller.pgid;
        }
        ASSERT_EQ(out.Get(f.field), expected) << f.trace_name;
      }
      ASSERT_EQ(out.name, in.name);
      ASSERT_EQ(out.new_name, in.new_name);
      ASSERT_EQ(out.target, in.target);
      ASSERT_EQ(out.xattr_name, in.xattr_name);
      ASSERT_EQ(AsText(out.data), AsText(in.data));
      ASSERT_EQ(out.node, refs.path);
      ASSERT_EQ(out.parent, refs.parent);
      ASSERT_EQ(out.new_parent, refs.new_parent);
      ASSERT_EQ(out.caller != nullptr, refs.process != 0);
      if (out.caller != nullptr) {
        ASSERT_EQ(out.caller->comm(), caller.comm());
        ASSERT_EQ(out.caller->start_time, caller.start_time);
        ASSERT_EQ(record_.HasText(Field::kComm), true);
      }
      ASSERT_EQ(record_.time_resolution_ns, 1u);
      ASSERT_EQ(record_.real_ns, TraceBuilder::kRealNs -
                                     TraceBuilder::kMonotonicNs +
                                     in.Get(Field::kTime));
      // The resolver's view, which the filter sees, and the fast one agree.
      PathBuffer buffer;
      ASSERT_EQ(Path(), tracefs::PathOf(out, buffer));
      ASSERT_EQ(NewPath(), tracefs::NewPathOf(out, buffer));
      ASSERT_TRUE(record_.extra.empty());
    }
    ASSERT_FALSE(Next());
    ASSERT_FALSE(stats().Bad());
    ASSERT_TRUE(reports_.empty()) << reports_[0];
  }
}

TEST_F(BlockDecoderTest, PathsAreBuiltFromDefinitions) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t usr = trace.DefinePath(root, "usr");
  const uint32_t lib = trace.DefinePath(usr, "lib");
  Event event;
  event.op = Op::lookup_;
  event.Set(Field::kTime, 1);
  event.name = "libc.so";
  trace.Add(event, {.parent = lib});
  event.op = Op::getattr_;
  event.name = {};
  trace.Add(event, {.path = root});
  trace.Add(event, {.path = lib});
  trace.Add(event, {});
  event.op = Op::rename_;
  event.name = "a";
  event.new_name = "b";
  trace.Add(event, {.parent = root, .new_parent = usr});
  trace.EndBlock();
  trace.Finish();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "/usr/lib/libc.so");
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "/");
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "/usr/lib");
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "");
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "/a");
  EXPECT_EQ(NewPath(), "/usr/b");
}

TEST_F(BlockDecoderTest, AWholePathInTheMessageTakesPrecedence) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  trace.AddRaw(0x100, [&](MessageWriter& out) {
    out.Put<uint32_t>(ArgId::kPathId, root);
    out.PutText(Info(Field::kPath).arg_id, "/whole/path");
  });
  trace.EndBlock();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path(), "/whole/path");
}

TEST_F(BlockDecoderTest, DefinitionsEndWithTheirBlock) {
  TraceBuilder trace;
  trace.DefinePath(trace.DefinePath(0, ""), "a");
  trace.EndBlock();
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  trace.Add(event, {.path = 2, .process = 1});
  trace.EndBlock();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.event.node, 0u);
  EXPECT_EQ(record_.event.caller, nullptr);
  EXPECT_EQ(Path(), "");
}

TEST_F(BlockDecoderTest, AReferenceBeforeItsDefinitionRefersToNothing) {
  TraceBuilder trace;
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  trace.Add(event, {.path = 1, .process = 1});
  trace.DefinePath(0, "");
  trace.DefineProcess({});
  trace.Add(event, {.path = 1, .process = 1});
  trace.EndBlock();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.event.node, 0u);
  EXPECT_EQ(record_.event.caller, nullptr);
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.event.node, 1u);
  EXPECT_NE(record_.event.caller, nullptr);
}

TEST_F(BlockDecoderTest, Malicious_DefinitionsOutOfOrderAreSkipped) {
  TraceBuilder trace;
  const auto path = [&](uint32_t id, uint32_t parent) {
    trace.AddRaw(5, [&](MessageWriter& out) {
      out.Put<uint32_t>(ArgId::kPathId, id);
      if (parent != UINT32_MAX) {
        out.Put<uint32_t>(ArgId::kParentPathId, parent);
      }
      out.PutText(Info(Field::kName).arg_id, "x");
    });
  };
  path(7, UINT32_MAX);  // not 1
  path(0, UINT32_MAX);  // never
  path(1, 1);           // its own parent: unknown
  path(1, UINT32_MAX);  // again
  path(2, 0xfffffffe);  // a parent that does not exist
  path(3, 2);
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  for (uint32_t id : {0u, 1u, 2u, 3u, 4u, 0xffffffffu}) {
    trace.Add(event, {.path = id});
  }
  trace.EndBlock();
  Open(trace.bytes());
  for (const char* expected : {"", "/x", "/x", "/x/x", "", ""}) {
    ASSERT_TRUE(Next());
    EXPECT_EQ(Path(), expected);
    PathBuffer buffer;
    EXPECT_EQ(tracefs::PathOf(record_.event, buffer), expected);
  }
  EXPECT_EQ(stats().bad_definitions, 3u);
  EXPECT_TRUE(stats().Bad());
}

TEST_F(BlockDecoderTest, Malicious_AVeryDeepPathKeepsItsTail) {
  TraceBuilder trace;
  uint32_t id = trace.DefinePath(0, "");
  for (int i = 0; i < 10000; ++i) id = trace.DefinePath(id, "d");
  const uint32_t no_name = trace.DefinePath(id, "");
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  trace.Add(event, {.path = id});
  trace.Add(event, {.path = no_name});
  trace.EndBlock();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  EXPECT_EQ(Path().size(), 4096u);
  EXPECT_TRUE(Path().ends_with("/d/d"));
  ASSERT_TRUE(Next());
  EXPECT_TRUE(Path().ends_with("/d/"));
}

TEST_F(BlockDecoderTest,
       Malicious_AMillionDefinitionsCostOnlyMemoryTheyOccupy) {
  TraceBuilder trace;
  std::string definitions;
  for (uint32_t id = 1; id <= 1'000'000; ++id) {
    char message[12];
    StoreLe<uint16_t>(message, 5);
    StoreLe<uint32_t>(message + 2, 12);
    StoreLe<uint16_t>(message + 6, 130);
    StoreLe<uint32_t>(message + 8, id);
    definitions.append(message, sizeof message);
  }
  trace.AddBytes(definitions);
  trace.EndBlock();
  TraceContext context;
  BlockDecoder block(&context);
  const std::string& bytes = trace.bytes();
  const ByteSpan payload =
      AsBytes(bytes).subspan(trace.frame_offsets()[1] + kFrameHeaderBytes);
  ASSERT_TRUE(
      block.Open(std::vector<std::byte>(payload.begin(), payload.end()), 1, 0));
  EXPECT_LT(block.footprint(), 4 * payload.size());
  NodeLink link;
  EXPECT_TRUE(block.LinkOf(1'000'000, &link));
}

TEST_F(BlockDecoderTest, UnknownMessagesAreSkippedCountedAndReportedOnce) {
  TraceBuilder trace;
  for (int i = 0; i < 5; ++i) {
    trace.AddRaw(0x7777, [](MessageWriter& out) { out.PutText(99, "text"); });
    trace.AddRaw(0x100 + kOpCount, [](MessageWriter&) {});
  }
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  trace.Add(event);
  trace.EndBlock();
  trace.Finish();
  Open(trace.bytes());
  EXPECT_TRUE(Next());
  EXPECT_FALSE(Next());
  EXPECT_EQ(stats().unknown_messages.at(0x7777), 5u);
  EXPECT_EQ(stats().unknown_messages.at(0x100 + kOpCount), 5u);
  EXPECT_EQ(kinds_[ReportKind::kUnknownMessage], 2);
  EXPECT_FALSE(stats().Bad());
}

TEST_F(BlockDecoderTest, UnknownArgumentsAreKeptCountedAndNamedByTheTrace) {
  TraceBuilder trace;
  // A later version's self-description: one constant and one variable argument.
  std::vector<std::byte> memory(100000);
  MessageWriter out(memory);
  WriteStart(out, TraceBuilder::DefaultHeader());
  std::string start(AsText(out.bytes()));
  const auto describe = [&start](uint16_t id, uint16_t width, uint8_t type,
                                 std::string_view name) {
    std::byte value[64];
    MessageWriter one(value);
    one.Begin(0);
    std::string description(5, '\0');
    StoreLe<uint16_t>(description.data(), id);
    StoreLe<uint16_t>(description.data() + 2, width);
    description[4] = static_cast<char>(type);
    description += name;
    one.PutText(ArgId::kArgumentName, description);
    one.End();
    start += AsText(one.bytes().subspan(kMessageHeaderBytes));
  };
  describe(1000, 2, 0, "ARG_PRIORITY");
  describe(1001, 0, 13, "ARG_MOOD");
  StoreLe<uint32_t>(start.data() + 2, static_cast<uint32_t>(start.size()));
  std::string bytes = EncodePreamble({.serial = trace.serial()});
  bytes += trace.Frame(0, start);
  trace.SkipSequence();
  trace.AddRaw(0x10b, [](MessageWriter& w) {
    w.Put<uint16_t>(1000, 7);
    w.PutText(1001, "good");
    w.Put<uint32_t>(Info(Field::kUid).arg_id, 5);
  });
  const std::string& block = trace.bytes();
  const size_t before = block.size();
  trace.EndBlock();
  // Only the frame of the second block, numbered 1.
  std::string frame = trace.bytes().substr(trace.frame_offsets()[1]);
  bytes += trace.Frame(1, std::string_view(frame).substr(kFrameHeaderBytes));
  EXPECT_LE(before, trace.bytes().size());

  Open(bytes);
  ASSERT_TRUE(Next());
  ASSERT_EQ(record_.extra.size(), 2u);
  EXPECT_EQ(record_.extra[0].id, 1000);
  EXPECT_EQ(LoadLe<uint16_t>(record_.extra[0].value.data()), 7);
  EXPECT_EQ(AsText(record_.extra[1].value), "good");
  EXPECT_EQ(record_.event.Get(Field::kUid), 5u);
  EXPECT_EQ(record_.trace->NameOfArgument(1000), "ARG_PRIORITY");
  EXPECT_EQ(stats().unknown_arguments.at(1000), 1u);
  EXPECT_EQ(kinds_[ReportKind::kUnknownArgument], 2);
}

// A number of which nothing is left but bytes is in no place of the record.
TEST_F(BlockDecoderTest, ANumberReplacedByBytesIsOpaque) {
  const auto id_of = [](ArgId id) { return static_cast<uint16_t>(id); };
  const uint16_t ids[] = {
      Info(Field::kUid).arg_id,    id_of(ArgId::kTimeUsec),
      id_of(ArgId::kTimeSec),      id_of(ArgId::kPathId),
      id_of(ArgId::kParentPathId), id_of(ArgId::kNewParentPathId),
      id_of(ArgId::kProcessId)};
  TraceBuilder trace;
  for (const uint16_t id : ids) {
    trace.AddRaw(0x10b, [&](MessageWriter& out) {
      out.PutText(id, "secret12");
      out.Put<uint32_t>(Info(Field::kGid).arg_id, 6);
    });
  }
  trace.EndBlock();
  Open(trace.bytes());
  for (const uint16_t id : ids) {
    ASSERT_TRUE(Next());
    const Event& e = record_.event;
    EXPECT_EQ(e.present & ~Bit(Field::kErrno), Bit(Field::kGid));
    EXPECT_EQ(e.Get(Field::kGid), 6u);
    EXPECT_EQ(record_.time_resolution_ns, 0u);
    EXPECT_EQ(e.node + e.parent + e.new_parent, 0u);
    EXPECT_EQ(e.caller, nullptr);
    ASSERT_EQ(record_.extra.size(), 1u) << id;
    EXPECT_EQ(AsText(record_.extra[0].value), "secret12");
  }
  EXPECT_TRUE(stats().unknown_arguments.empty());
}

TEST_F(BlockDecoderTest, ThreeResolutionsOfTime) {
  TraceBuilder trace;
  trace.AddRaw(
      0x10b, [](MessageWriter& out) { out.Put<uint32_t>(ArgId::kTimeSec, 2); });
  trace.AddRaw(0x10b, [](MessageWriter& out) {
    out.Put<uint64_t>(ArgId::kTimeUsec, 2'000'001);
  });
  trace.AddRaw(0x10b, [](MessageWriter& out) {
    out.Put<uint64_t>(Info(Field::kTime).arg_id, 2'000'001'001);
  });
  trace.AddRaw(0x10b, [](MessageWriter&) {});
  trace.EndBlock();
  Open(trace.bytes());
  const uint64_t offset = TraceBuilder::kRealNs - TraceBuilder::kMonotonicNs;
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.time_resolution_ns, 1'000'000'000u);
  EXPECT_EQ(record_.real_ns, offset + 2'000'000'000);
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.time_resolution_ns, 1000u);
  EXPECT_EQ(record_.real_ns, offset + 2'000'001'000);
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.time_resolution_ns, 1u);
  EXPECT_EQ(record_.real_ns, offset + 2'000'001'001);
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.time_resolution_ns, 0u);
  EXPECT_FALSE(record_.event.Has(Field::kTime));
}

// The clocks differ by no whole number of seconds: its fraction is not shown.
TEST_F(BlockDecoderTest, ACoarseTimeHasNoDigitsThatWereNotRecorded) {
  TraceBuilder trace;
  trace.header().clock.real_ns += 123'456'789;
  trace.AddRaw(
      0x10b, [](MessageWriter& out) { out.Put<uint32_t>(ArgId::kTimeSec, 2); });
  trace.AddRaw(0x10b, [](MessageWriter& out) {
    out.Put<uint64_t>(ArgId::kTimeUsec, 2'000'001);
  });
  trace.EndBlock();
  Open(trace.bytes());
  const uint64_t offset = TraceBuilder::kRealNs - TraceBuilder::kMonotonicNs;
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.real_ns, offset + 2'000'000'000);
  ASSERT_TRUE(Next());
  EXPECT_EQ(record_.real_ns, offset + 2'123'457'000);
}

TEST_F(BlockDecoderTest, OperationsOfABlockComeInOrderOfTheirBegin) {
  TraceBuilder trace;
  Event event;
  event.op = Op::open_;
  const std::vector<uint64_t> times = {50, 10, 40, 10, 60, 20};
  for (size_t i = 0; i < times.size(); ++i) {
    event.Set(Field::kTime, times[i]);
    event.Set(Field::kFh, i);
    trace.Add(event);
  }
  trace.EndBlock();
  Open(trace.bytes());
  for (const uint64_t expected : {1, 3, 5, 2, 0, 4}) {
    ASSERT_TRUE(Next());
    EXPECT_EQ(record_.event.Get(Field::kFh), expected);
  }
  EXPECT_FALSE(Next());
}

TEST_F(BlockDecoderTest, LossesAreReportedAndSummed) {
  TraceBuilder trace;
  trace.AddLoss({.reason = "queue_full", .count = 3});
  trace.AddLoss({.reason = "too_large", .count = 1});
  trace.AddLoss({.reason = "queue_full", .count = 4});
  trace.EndBlock();
  trace.Finish();
  Open(trace.bytes());
  EXPECT_FALSE(Next());
  EXPECT_EQ(stats().lost_events, 8u);
  EXPECT_EQ(stats().losses.at("queue_full"), 7u);
  EXPECT_EQ(stats().losses.at("too_large"), 1u);
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[0], "3 operations were not recorded: queue_full");
  EXPECT_TRUE(stats().Bad());
}

TEST_F(BlockDecoderTest, Malicious_ManyLossReasonsAreCountedTogether) {
  TraceBuilder trace;
  for (int i = 0; i < 1000; ++i) {
    trace.AddLoss({.reason = std::to_string(i), .count = 1});
  }
  trace.EndBlock();
  Open(trace.bytes());
  EXPECT_FALSE(Next());
  EXPECT_LE(stats().losses.size(), ReadStats::kMaxReasons + 1);
  EXPECT_EQ(stats().lost_events, 1000u);
}

TEST_F(BlockDecoderTest, Malicious_MessageLengthsThatLieEndTheBlock) {
  for (const uint32_t lie :
       {0u, 1u, 5u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 1000u}) {
    TraceBuilder trace;
    Event event;
    event.op = Op::open_;
    event.Set(Field::kTime, 1);
    trace.Add(event);
    char head[6];
    StoreLe<uint16_t>(head, 0x10b);
    StoreLe<uint32_t>(head + 2, lie);
    trace.AddBytes(std::string_view(head, 6));
    trace.EndBlock();
    trace.Add(event);
    trace.EndBlock();
    trace.Finish();
    Open(trace.bytes());
    EXPECT_TRUE(Next());
    EXPECT_TRUE(Next());  // of the next block
    EXPECT_FALSE(Next());
    EXPECT_EQ(stats().malformed_blocks, 1u) << lie;
  }
}

TEST_F(BlockDecoderTest, Malicious_ArgumentLengthsThatLieEndTheMessage) {
  for (const uint32_t lie : {5u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    TraceBuilder trace;
    trace.AddRaw(0x10b, [lie](MessageWriter& out) {
      out.Put<uint32_t>(Info(Field::kUid).arg_id, 7);
      out.Put<uint32_t>(Info(Field::kName).arg_id | kHasLength, lie);
    });
    trace.AddRaw(0x10b, [](MessageWriter& out) {
      out.Put<uint32_t>(Info(Field::kUid).arg_id, 8);
      out.Put<uint8_t>(999, 0);  // unknown, of unknown width
    });
    trace.AddRaw(0x10b, [](MessageWriter& out) {
      out.Put<uint32_t>(Info(Field::kUid).arg_id, 9);
    });
    trace.EndBlock();
    Open(trace.bytes());
    for (const uint64_t uid : {7, 8, 9}) {
      ASSERT_TRUE(Next());
      EXPECT_EQ(record_.event.Get(Field::kUid), uid);
    }
    EXPECT_EQ(stats().malformed_messages, 2u);
  }
}

TEST_F(BlockDecoderTest, ABlockWithoutItsHeadIsNotUsed) {
  TraceBuilder trace;
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, 1);
  trace.Add(event);
  trace.EndBlock();
  trace.AppendFrame("");
  trace.AppendFrame("gibberish, but with a right CRC");
  trace.Finish();
  Open(trace.bytes());
  EXPECT_TRUE(Next());
  EXPECT_FALSE(Next());
  EXPECT_EQ(stats().undecodable_blocks, 2u);
  EXPECT_EQ(std::ranges::count_if(reports_,
                                  [](const std::string& report) {
                                    return report.ends_with(
                                        "does not start with a BLOCK message");
                                  }),
            2);
  EXPECT_TRUE(stats().final_record.has_value());
}

TEST_F(BlockDecoderTest, FilterSeesNamesThroughTheResolver) {
  TraceBuilder trace;
  const uint32_t file = trace.DefinePath(trace.DefinePath(0, ""), "a.c");
  Event event;
  event.op = Op::read_;
  event.Set(Field::kTime, 1);
  trace.Add(event, {.path = file});
  trace.EndBlock();
  Open(trace.bytes());
  ASSERT_TRUE(Next());
  std::vector<std::string> names;
  record_.event.resolver->ForEachName(
      record_.event.node, &names, [](void* context, std::string_view name) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(name);
      });
  EXPECT_EQ(names, std::vector<std::string>{"a.c"});
}

}  // namespace
}  // namespace tracefs::format
