// Indices in traces: their messages, and which part of a file they were made
// from, by the headers of its frames.
#include "tracefs/format/index_piece.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/frame_places.h"
#include "tracefs/format/marks.h"
#include "tracefs/format/state_message.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::format {
namespace {

using test::TraceBuilder;

IndexPiece Every(ByteSpan data) {
  return {.of = "deps 1",
          .part = {.bytes = 0x1122334455, .frames = 2, .events = 3, .link = 4},
          .section = 5,
          .piece = 6,
          .pieces = 7,
          .data = data};
}

TEST(IndexPieceTest, ComesBackAsItWasPut) {
  const std::string data("\0data\xff", 6);
  TraceBuilder trace;
  std::vector<std::byte> memory(4096);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteIndexPiece(out, Every(AsBytes(data))));
  trace.AddBytes(AsText(out.bytes()));
  trace.EndBlock(TraceBuilder::kMonotonicNs);
  trace.Finish();
  int pieces = 0;
  TraceReader reader(std::make_unique<MemorySource>(AsBytes(trace.bytes())),
                     {});
  reader.mutable_context().index = [&](const IndexPiece& back) {
    ++pieces;
    EXPECT_EQ(back.of, "deps 1");
    EXPECT_EQ(back.part, Every({}).part);
    EXPECT_EQ(back.section, 5u);
    EXPECT_EQ(back.piece, 6u);
    EXPECT_EQ(back.pieces, 7u);
    EXPECT_EQ(AsText(back.data), data);
  };
  std::unique_ptr<BlockDecoder> block;
  for (;;) {
    const auto step = reader.NextBlock(&block);
    ASSERT_TRUE(step.ok());
    if (*step != ReadStep::kItem) break;
  }
  EXPECT_EQ(pieces, 1);
}

// Each kind of message that has its own reader, without its last byte.
TEST(IndexPieceTest, Malicious_MessagesThatEndWithinAnArgumentAreCounted) {
  std::vector<std::byte> memory(4096);
  const std::vector<std::function<bool(MessageWriter&)>> kinds = {
      [](MessageWriter& out) {
        return WriteIndexPiece(out, Every(AsBytes("data")));
      },
      [](MessageWriter& out) { return WriteAggregate(out, {.count = 5}); },
      [](MessageWriter& out) {
        return WriteState(out, {}, 1, false, true, "/path");
      },
      [](MessageWriter& out) { return WriteAlarm(out, {}, {}); },
      [](MessageWriter& out) {
        ProcessRecord record;
        record.kind = ProcessRecord::Kind::kExit;
        record.time_ns = 1;
        record.process.pid = 5;
        record.exit_code = 3;
        return WriteProcessRecord(out, record);
      }};
  for (const size_t cut : {0, 1}) {
    TraceBuilder trace;
    for (const auto& write : kinds) {
      MessageWriter out(memory);
      ASSERT_TRUE(write(out));
      std::string message(AsText(out.bytes().first(out.size() - cut)));
      StoreLe<uint32_t>(message.data() + 2,
                        static_cast<uint32_t>(message.size()));
      trace.AddBytes(message);
    }
    trace.EndBlock(TraceBuilder::kMonotonicNs);
    trace.Finish();
    TraceReader reader(std::make_unique<MemorySource>(AsBytes(trace.bytes())),
                       {});
    TraceContext& context = reader.mutable_context();
    int told = 0;
    context.index = [&](const IndexPiece&) { ++told; };
    context.aggregate = [&](const AggregateRecord&) { ++told; };
    context.state = [&](const StateRecord&) { ++told; };
    context.alarm = [&](const AlarmRecord&) { ++told; };
    context.process = [&](const ProcessRecord&) { ++told; };
    std::unique_ptr<BlockDecoder> block;
    Record record;
    while (*reader.NextBlock(&block) == ReadStep::kItem) {
      while (!block->at_end()) static_cast<void>(block->Next(&record));
    }
    EXPECT_EQ(reader.stats().malformed_messages, kinds.size() * cut) << told;
    EXPECT_GE(told, cut == 0 ? 5 : 0);
  }
}

TEST(IndexPieceTest, WhatDoesNotFitIsNotWritten) {
  std::vector<std::byte> memory(100);
  MessageWriter out(memory);
  EXPECT_FALSE(WriteIndexPiece(out, Every(memory)));
  EXPECT_TRUE(out.bytes().empty());
}

class FramePlacesTest : public testing::Test {
 protected:
  FramePlacesTest() {
    for (int i = 0; i < 3; ++i) {
      Event e;
      e.op = Op::read_;
      e.Set(Field::kTime, TraceBuilder::kMonotonicNs + i);
      for (int k = 0; k <= i; ++k) trace_.Add(e);
      trace_.EndBlock();
    }
  }
  Result<FramePlaces> Find(const std::string& bytes) {
    const std::string path = folder_.Write("t", bytes);
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return FindFrames(fd.get());
  }

  TempFolder folder_;
  TraceBuilder trace_;
};

TEST_F(FramePlacesTest, AreThoseOfTheFile) {
  const std::string bytes = trace_.bytes();
  const auto places = Find(bytes);
  ASSERT_TRUE(places.ok()) << places.status().message();
  EXPECT_EQ(places->preamble.serial, trace_.serial());
  EXPECT_EQ(places->end, bytes.size());
  ASSERT_EQ(places->frames.size(), trace_.frame_offsets().size());
  for (size_t i = 0; i < places->frames.size(); ++i) {
    EXPECT_EQ(places->frames[i].offset, trace_.frame_offsets()[i]);
    EXPECT_EQ(places->frames[i].header.sequence, i);
  }
  EXPECT_EQ(places->PartOf(0, 9),
            (IndexedPart{.bytes = 0, .frames = 0, .events = 9, .link = 0}));
  // The link is the checksum of the checksums so far, whoever works it out.
  for (size_t i = 0; i < places->frames.size(); ++i) {
    const IndexedPart part = places->PartOf(i + 1, 5);
    EXPECT_EQ(part.frames, i + 1);
    EXPECT_EQ(part.events, 5u);
    EXPECT_EQ(part.bytes, places->frames[i].end());
    PartLink link;
    for (size_t k = 0; k <= i; ++k) link.Add(places->frames[k].header.crc);
    EXPECT_EQ(part.link, link.value());
  }
}

TEST_F(FramePlacesTest, DataLoss_CutAnywhereItEndsAfterWhatIsWhole) {
  const std::string bytes = trace_.bytes();
  const size_t begin = trace_.frame_offsets()[0];
  const std::string path = folder_.Write("t", bytes);
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  for (size_t size = bytes.size(); size-- > 0;) {
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    const auto places = FindFrames(fd.get());
    ASSERT_EQ(places.ok(), size >= begin) << size;
    if (!places.ok()) {
      EXPECT_EQ(places.status().code(), StatusCode::kCorrupt);
      continue;
    }
    size_t whole = 0;
    while (whole + 1 < trace_.frame_offsets().size() &&
           trace_.frame_offsets()[whole + 1] <= size) {
      ++whole;
    }
    EXPECT_EQ(places->frames.size(), whole) << size;
    EXPECT_EQ(places->end, trace_.frame_offsets()[whole]) << size;
  }
}

TEST_F(FramePlacesTest, Malicious_AnythingButTheNextBlockIsNoPlainTrace) {
  const std::string bytes = trace_.bytes();
  const auto refused = [&](const std::string& text) {
    const auto places = Find(text);
    return places.ok() ? "" : places.status().message();
  };
  const std::string where =
      "at byte " + std::to_string(bytes.size()) + " is something else";
  EXPECT_EQ(refused(bytes), "");
  const std::string bare = EncodePreamble({.serial = trace_.serial()});
  EXPECT_EQ(refused(bare), "") << "without a block";
  EXPECT_EQ(refused(bare.substr(1)), "it is too short for a trace");
  EXPECT_THAT(refused(bytes + std::string(100, 'x')),
              testing::StartsWith(where));
  EXPECT_THAT(refused(bytes + trace_.Frame(0, "again")),
              testing::StartsWith(where));
  EXPECT_EQ(refused(bytes + trace_.Frame(trace_.sequence(), "next")), "");
  EXPECT_THAT(refused(bytes + trace_.Frame(trace_.sequence(), "next", 2)),
              testing::StartsWith(where))
      << "another kind";
  EXPECT_THAT(
      refused(bytes + EncodePartMark(FrameKind::kPartEnd, trace_.serial(), {})),
      testing::StartsWith(where));
  TraceBuilder other;
  other.serial()[3] ^= std::byte{1};
  EXPECT_THAT(refused(bytes + other.Frame(trace_.sequence(), "next")),
              testing::StartsWith(where));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(FindFrames(ends[0]).status().code(), StatusCode::kCorrupt);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(FindFrames(-1).status().error(), EBADF);
}

}  // namespace
}  // namespace tracefs::format
