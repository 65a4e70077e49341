// Process records, marks and the account of a reader, value by value.
#include "tracefs/format/process_message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tracefs/base/crc32c.h"
#include "tracefs/format/marks.h"
#include "tracefs/format/report.h"

namespace tracefs::format {
namespace {

using Kind = ProcessRecord::Kind;

class ProcessMessageTest : public testing::Test {
 protected:
  ProcessRecord Back(const ProcessRecord& record) {
    out_ = MessageWriter(memory_);
    EXPECT_TRUE(WriteProcessRecord(out_, record));
    MessageCursor in(out_.bytes());
    Message message;
    EXPECT_TRUE(in.Next(&message));
    EXPECT_EQ(ProcessKindOf(message.msg_id), record.kind);
    ProcessRecord read;
    read.kind = record.kind;
    EXPECT_TRUE(ReadProcessRecord(message.arguments, widths_, &read));
    return read;
  }
  static void ExpectSame(const ProcessRecord& a, const ProcessRecord& b) {
    EXPECT_EQ(a.time_ns, b.time_ns);
    EXPECT_EQ(a.process, b.process);
    EXPECT_EQ(a.tid, b.tid);
    EXPECT_EQ(a.ppid, b.ppid);
    EXPECT_EQ(a.ns_pid, b.ns_pid);
    EXPECT_EQ(a.cpu, b.cpu);
    EXPECT_EQ(a.child, b.child);
    EXPECT_EQ(a.child_tid, b.child_tid);
    EXPECT_EQ(a.child_ns_pid, b.child_ns_pid);
    EXPECT_EQ(a.clone_flags, b.clone_flags);
    EXPECT_EQ(a.program, b.program);
    EXPECT_EQ(a.exe, b.exe);
    EXPECT_EQ(a.cwd, b.cwd);
    EXPECT_EQ(a.argv, b.argv);
    EXPECT_EQ(a.environ, b.environ);
    EXPECT_EQ(a.exit_code, b.exit_code);
    EXPECT_EQ(a.signal, b.signal);
    EXPECT_EQ(a.core_dumped, b.core_dumped);
    EXPECT_EQ(a.comm, b.comm);
    EXPECT_EQ(a.cgroup, b.cgroup);
    EXPECT_EQ(a.pipes, b.pipes);
    EXPECT_EQ(a.source, b.source);
    EXPECT_EQ(a.late, b.late);
    EXPECT_EQ(a.incomplete, b.incomplete);
  }
  static ProcessRecord Full(Kind kind) {
    ProcessRecord record;
    record.kind = kind;
    record.time_ns = 1;
    record.process = {2, 3};
    record.tid = 4;
    record.ppid = 5;
    record.ns_pid = 6;
    record.cpu = 7;
    record.child = {8, 9};
    record.child_tid = 10;
    record.child_ns_pid = 11;
    record.clone_flags = uint64_t{12} << 32;
    record.program = "script";
    record.exe = "/bin/sh";
    record.cwd = "/here";
    record.argv = std::string_view("a\0b\0", 4);
    record.environ = std::string_view("K=V\0", 4);
    record.exit_code = 13;
    record.signal = 14;
    record.core_dumped = true;
    record.comm = "sh";
    record.cgroup = "/slice";
    record.source = ProcessSource::kPerf;
    record.late = true;
    record.incomplete = true;
    return record;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 17);
  MessageWriter out_ = MessageWriter(memory_);
  const ArgumentWidths widths_;
};

TEST_F(ProcessMessageTest, EveryValueOfEveryKindComesBack) {
  for (const Kind kind : {Kind::kFork, Kind::kExec, Kind::kExit, Kind::kComm,
                          Kind::kPipes, Kind::kRunning}) {
    ProcessRecord record = Full(kind);
    ExpectSame(Back(record), record);
    if (kind != Kind::kPipes) continue;
    record.pipes = {{.fd = 0, .inode = 1, .access = PipeEnd::kRead},
                    {.fd = 1, .inode = ~uint64_t{0}, .access = PipeEnd::kWrite},
                    {.fd = ~0u, .inode = 2, .access = PipeEnd::kReadWrite}};
    ExpectSame(Back(record), record);
    record.pipes.assign(ProcessRecord::kMaxPipes, record.pipes[1]);
    ExpectSame(Back(record), record);
    record.pipes.push_back(record.pipes[0]);
    EXPECT_EQ(Back(record).pipes.size(), ProcessRecord::kMaxPipes);
  }
}

// Readers of others may compare with what FORMAT.md says: 1.
TEST_F(ProcessMessageTest, FlagsAreOne) {
  ProcessRecord record;
  record.kind = ProcessRecord::Kind::kExit;
  record.late = record.incomplete = record.core_dumped = true;
  std::vector<std::byte> memory(1000);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteProcessRecord(out, record));
  MessageCursor messages(out.bytes());
  Message message;
  ASSERT_TRUE(messages.Next(&message));
  ArgumentCursor in(message.arguments, BuiltInWidths());
  Argument argument;
  int flags = 0;
  while (in.Next(&argument)) {
    if (!argument.is<uint8_t>()) continue;
    EXPECT_EQ(argument.As<uint8_t>(), 1) << argument.id;
    ++flags;
  }
  EXPECT_EQ(flags, 3);
}

TEST_F(ProcessMessageTest, WhatIsNotKnownIsNotThere) {
  ProcessRecord record;
  record.kind = Kind::kExit;
  ExpectSame(Back(record), record);
  record.exit_code = 0;
  record.signal = 0;
  record.cpu = 0;
  record.clone_flags = 0;
  ExpectSame(Back(record), record);
}

TEST_F(ProcessMessageTest, OtherMessagesAreNoProcessRecords) {
  const auto first = static_cast<uint16_t>(MessageId::kProcessFork);
  const auto last = static_cast<uint16_t>(MessageId::kProcessRunning);
  EXPECT_EQ(ProcessKindOf(first), Kind::kFork);
  EXPECT_EQ(ProcessKindOf(last), Kind::kRunning);
  EXPECT_EQ(ProcessKindOf(first - 1), std::nullopt);
  EXPECT_EQ(ProcessKindOf(last + 1), std::nullopt);
}

TEST(MarkTest, PartsAndSnapshotsComeBack) {
  Serial serial{};
  serial[0] = std::byte{1};
  const std::string part = EncodePartMark(FrameKind::kPartEnd, serial,
                                          {.part = 2, .block = 3, .link = 4});
  const auto read = DecodePartMark(AsBytes(part).subspan(kFrameHeaderBytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->part, 2u);
  EXPECT_EQ(read->block, 3u);
  EXPECT_EQ(read->link, 4u);
  const SnapshotMark mark = {.number = 1,
                             .real_ns = 2,
                             .blocks = 3,
                             .events = 4,
                             .overwritten_blocks = 5,
                             .overwritten_events = 6,
                             .reason = "command"};
  const std::string snapshot = EncodeSnapshotMark(serial, mark);
  const auto again =
      DecodeSnapshotMark(AsBytes(snapshot).subspan(kFrameHeaderBytes));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->number, 1u);
  EXPECT_EQ(again->real_ns, 2u);
  EXPECT_EQ(again->blocks, 3u);
  EXPECT_EQ(again->events, 4u);
  EXPECT_EQ(again->overwritten_blocks, 5u);
  EXPECT_EQ(again->overwritten_events, 6u);
  EXPECT_EQ(again->reason, "command");
}

TEST(MarkTest, Malicious_WhatIsNoneIsRefused) {
  const std::string part =
      EncodePartMark(FrameKind::kPart, {}, {.part = 0, .block = 1, .link = 0});
  const ByteSpan payload = AsBytes(part).subspan(kFrameHeaderBytes);
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(DecodePartMark(payload.first(size))) << size;
  }
  const std::string none =
      EncodePartMark(FrameKind::kPart, {}, {.part = 0, .block = 0, .link = 0});
  EXPECT_FALSE(DecodePartMark(AsBytes(none).subspan(kFrameHeaderBytes)));
  SnapshotMark mark;
  mark.reason.assign(SnapshotMark::kMaxReasonBytes + 9, 'r');
  std::string snapshot = EncodeSnapshotMark({}, mark);
  const auto read =
      DecodeSnapshotMark(AsBytes(snapshot).subspan(kFrameHeaderBytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reason.size(), SnapshotMark::kMaxReasonBytes);
  snapshot += 'r';
  EXPECT_FALSE(
      DecodeSnapshotMark(AsBytes(snapshot).subspan(kFrameHeaderBytes)));
  for (size_t size = 0; size < 48; ++size) {
    EXPECT_FALSE(
        DecodeSnapshotMark(AsBytes(snapshot).subspan(kFrameHeaderBytes, size)));
  }
}

TEST(MarkTest, ALinkIsTheChecksumOfChecksums) {
  PartLink link;
  EXPECT_EQ(link.value(), 0u);
  link.Add(0x04030201);
  link.Add(0x08070605);
  EXPECT_EQ(link.value(), Crc32c(AsBytes("\1\2\3\4\5\6\7\10")));
}

TEST(ReadStatsTest, EachFaultAloneIsBad) {
  ReadStats whole;
  whole.ended = true;
  whole.final_record.emplace();
  EXPECT_FALSE(whole.Bad());
  for (uint64_t ReadStats::*fault :
       {&ReadStats::damaged_ranges, &ReadStats::cut_bytes,
        &ReadStats::missing_blocks, &ReadStats::duplicate_blocks,
        &ReadStats::undecodable_blocks, &ReadStats::malformed_blocks,
        &ReadStats::malformed_messages, &ReadStats::bad_definitions,
        &ReadStats::lost_events}) {
    ReadStats stats = whole;
    stats.*fault = 1;
    EXPECT_TRUE(stats.Bad());
  }
  for (bool ReadStats::*fault :
       {&ReadStats::preamble_damaged, &ReadStats::no_header}) {
    ReadStats stats = whole;
    stats.*fault = true;
    EXPECT_TRUE(stats.Bad());
  }
  ReadStats open = whole;
  open.final_record.reset();
  EXPECT_TRUE(open.Bad());
  open.ended = false;
  EXPECT_FALSE(open.Bad()) << "it may go on";
  open.ended = true;
  open.goes_on = 1;
  EXPECT_FALSE(open.Bad()) << "in another part";
  open.goes_on = 0;
  open.snapshot.emplace();
  EXPECT_FALSE(open.Bad());
}

TEST(ReadStatsTest, EventsAreMissingWhereAllShouldBeThere) {
  ReadStats stats;
  stats.events = 7;
  EXPECT_EQ(stats.MissingEvents(), 0u);
  stats.final_record.emplace();
  stats.final_record->events = 9;
  EXPECT_EQ(stats.MissingEvents(), 2u);
  stats.final_record->events = 6;
  EXPECT_EQ(stats.MissingEvents(), 0u);
  stats.final_record->events = 9;
  stats.first_part = 1;
  EXPECT_EQ(stats.MissingEvents(), 0u);
  stats.first_part = 0;
  stats.snapshot.emplace();
  EXPECT_EQ(stats.MissingEvents(), 0u);
  stats.snapshot.reset();
  stats.jumped = true;
  EXPECT_EQ(stats.MissingEvents(), 0u);
}

TEST(ReadStatsTest, BlocksAddUpAndTooManyReasonsAreOne) {
  ReadStats one;
  one.blocks = 1;
  one.events = 2;
  one.lost_events = 3;
  one.opaque = 4;
  one.losses["queue_full"] = 5;
  one.lost_messages[6] = 7;
  one.unknown_messages[8] = 9;
  one.unknown_arguments[10] = 11;
  ReadStats sum;
  sum.opaque = 1;
  sum.AddBlocks(one);
  sum.AddBlocks(one);
  EXPECT_EQ(sum.blocks, 2u);
  EXPECT_EQ(sum.events, 4u);
  EXPECT_EQ(sum.lost_events, 6u);
  EXPECT_EQ(sum.opaque, 5u);
  EXPECT_EQ(sum.losses["queue_full"], 10u);
  EXPECT_EQ(sum.lost_messages[6], 14u);
  EXPECT_EQ(sum.unknown_messages[8], 18u);
  EXPECT_EQ(sum.unknown_arguments[10], 22u);
  ReadStats many;
  for (size_t i = 0; i < ReadStats::kMaxReasons + 2; ++i) {
    ReadStats reason;
    reason.losses["r" + std::to_string(i)] = 1;
    reason.lost_messages[static_cast<uint16_t>(i)] = 1;
    many.AddBlocks(reason);
  }
  EXPECT_EQ(many.losses.size(), ReadStats::kMaxReasons + 1);
  EXPECT_EQ(many.losses["other"], 2u);
  EXPECT_EQ(many.lost_messages.size(), ReadStats::kMaxReasons);
}

}  // namespace
}  // namespace tracefs::format
