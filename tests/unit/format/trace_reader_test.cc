// Damage: traces cut at every byte, with every byte flipped, spliced, hostile,
// or still growing. Whole blocks before and after the damage stay readable and
// everything else is reported.
#include "tracefs/format/trace_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/marks.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs::format {
namespace {

using test::TraceBuilder;

// Grows when the test says so.
class GrowingSource : public ByteSource {
 public:
  explicit GrowingSource(std::string* bytes) : bytes_(bytes) {}
  Result<size_t> Read(std::span<std::byte> out) override {
    const size_t n = std::min(out.size(), bytes_->size() - at_);
    if (n != 0) std::memcpy(out.data(), bytes_->data() + at_, n);
    at_ += n;
    return n;
  }
  bool MayGrow() override { return true; }

 private:
  std::string* bytes_;
  size_t at_ = 0;
};

class FailingSource : public ByteSource {
 public:
  FailingSource(std::string bytes, int error)
      : bytes_(std::move(bytes)), memory_(AsBytes(bytes_)), error_(error) {}
  Result<size_t> Read(std::span<std::byte> out) override {
    const Result<size_t> n = memory_.Read(out);
    if (*n == 0) return Status::System(error_, "cannot read the trace");
    return n;
  }

 private:
  std::string bytes_;
  MemorySource memory_;
  int error_;
};

// Three blocks of three operations; operation n has kFh = n.
struct SampleTrace {
  SampleTrace() {
    Event event;
    event.op = Op::write_;
    for (uint64_t n = 0; n < 9; ++n) {
      const uint32_t root = n % 3 == 0 ? trace.DefinePath(0, "") : 1;
      const uint32_t file =
          n % 3 == 0 ? trace.DefinePath(root, "file" + std::to_string(n)) : 2;
      event.Set(Field::kTime, 100 + n);
      event.Set(Field::kFh, n);
      event.SetResult(4096, 0);
      trace.Add(event, {.path = file});
      if (n % 3 == 2) trace.EndBlock();
    }
    trace.Finish();
    bytes = trace.bytes();
  }
  TraceBuilder trace;
  std::string bytes;
};

struct ReadResult {
  Status status;
  std::vector<uint64_t> handles;  // kFh of the operations
  std::map<ReportKind, std::vector<std::string>> reports;
  ReadStats stats;
  size_t Count(ReportKind kind) const {
    const auto found = reports.find(kind);
    return found == reports.end() ? 0 : found->second.size();
  }
};

ReadResult Read(const std::string& bytes, size_t read_size = SIZE_MAX) {
  ReadResult result;
  TraceReaderOptions options;
  options.report = [&result](const Report& report) {
    result.reports[report.kind].push_back(report.Text());
  };
  TraceReader reader(std::make_unique<MemorySource>(AsBytes(bytes), read_size),
                     std::move(options));
  for (;;) {
    std::unique_ptr<BlockDecoder> block;
    const Result<ReadStep> step = reader.NextBlock(&block);
    if (!step.ok()) {
      result.status = step.status();
      break;
    }
    if (*step != ReadStep::kItem) break;
    Record record;
    while (!block->at_end()) {
      block->Next(&record);
      PathBuffer buffer;
      PathOf(record, buffer);
      if (record.event.Has(Field::kFh)) {
        result.handles.push_back(record.event.Get(Field::kFh));
      }
    }
  }
  result.stats = reader.stats();
  return result;
}

std::vector<uint64_t> Handles(uint64_t from, uint64_t to) {
  std::vector<uint64_t> handles;
  for (uint64_t n = from; n < to; ++n) handles.push_back(n);
  return handles;
}

TEST(TraceReaderTest, AWholeTraceIsReadWithoutAWord) {
  const SampleTrace sample;
  for (const size_t read_size : {size_t{1}, size_t{7}, SIZE_MAX}) {
    const ReadResult result = Read(sample.bytes, read_size);
    EXPECT_TRUE(result.status.ok());
    EXPECT_EQ(result.handles, Handles(0, 9));
    EXPECT_TRUE(result.reports.empty());
    EXPECT_FALSE(result.stats.Bad());
    EXPECT_EQ(result.stats.blocks, 5u);
    EXPECT_EQ(result.stats.bytes, sample.bytes.size());
    ASSERT_TRUE(result.stats.final_record);
    EXPECT_EQ(result.stats.final_record->events, 9u);
  }
}

TEST(TraceReaderTest, DataLoss_CutAtEveryByteKeepsAllBlocksBefore) {
  const SampleTrace sample;
  const std::vector<size_t>& frames = sample.trace.frame_offsets();
  for (size_t size = 0; size < sample.bytes.size(); ++size) {
    const ReadResult result = Read(sample.bytes.substr(0, size));
    if (size < frames[0]) {
      EXPECT_EQ(result.status.code(), StatusCode::kCorrupt) << size;
      continue;
    }
    ASSERT_TRUE(result.status.ok()) << size;
    size_t whole = 0;  // frames
    while (whole < frames.size() &&
           (whole + 1 < frames.size() ? frames[whole + 1]
                                      : sample.bytes.size()) <= size) {
      ++whole;
    }
    const uint64_t events =
        whole < 2 ? 0 : (std::min<size_t>(whole, 4) - 1) * 3;
    EXPECT_EQ(result.handles, Handles(0, events)) << size;
    EXPECT_TRUE(result.stats.Bad()) << size;
    const bool inside = size != frames[whole];
    EXPECT_EQ(result.Count(ReportKind::kCut), inside ? 1u : 0u) << size;
    EXPECT_EQ(result.Count(ReportKind::kNoFinal), inside ? 0u : 1u) << size;
    EXPECT_EQ(result.Count(ReportKind::kDamaged), 0u) << size;
    EXPECT_EQ(result.stats.cut_bytes, inside ? size - frames[whole] : 0u);
  }
}

TEST(TraceReaderTest, DataLoss_EveryByteFlippedCostsOneBlock) {
  const SampleTrace sample;
  const std::vector<size_t>& frames = sample.trace.frame_offsets();
  for (size_t at = 0; at < sample.bytes.size(); ++at) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string bytes = sample.bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      const ReadResult result = Read(bytes);
      ASSERT_TRUE(result.status.ok()) << at << ": " << result.status.message();
      EXPECT_TRUE(result.stats.Bad()) << at;
      // The frame that holds the byte; frames.size() = the preamble.
      size_t hit = frames.size();
      for (size_t i = 0; i < frames.size() && frames[i] <= at; ++i) hit = i;
      std::vector<uint64_t> expected;
      for (uint64_t n = 0; n < 9; ++n) {
        if (n / 3 + 1 != hit) expected.push_back(n);
      }
      EXPECT_EQ(result.handles, expected) << at;
      EXPECT_EQ(result.stats.preamble_damaged, hit == frames.size()) << at;
      const size_t size = hit == frames.size() ? frames[0]
                          : hit + 1 < frames.size()
                              ? frames[hit + 1] - frames[hit]
                              : bytes.size() - frames[hit];
      EXPECT_EQ(result.stats.damaged_bytes + result.stats.cut_bytes, size)
          << at;
      EXPECT_EQ(result.stats.missing_blocks, hit + 1 < frames.size() ? 1u : 0u)
          << at;
    }
  }
}

TEST(TraceReaderTest, DataLoss_AMissingBlockIsAGap) {
  const SampleTrace sample;
  const auto& frames = sample.trace.frame_offsets();
  const std::string bytes =
      sample.bytes.substr(0, frames[1]) + sample.bytes.substr(frames[3]);
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.handles, Handles(6, 9));
  EXPECT_EQ(result.stats.missing_blocks, 2u);
  ASSERT_EQ(result.Count(ReportKind::kGap), 1u);
  EXPECT_EQ(result.reports.at(ReportKind::kGap)[0],
            "2 blocks from block 1 on are missing before byte " +
                std::to_string(frames[1]));
  EXPECT_EQ(result.stats.MissingEvents(), 6u);
}

TEST(TraceReaderTest, DataLoss_TheHeaderBlockMayBeMissing) {
  const SampleTrace sample;
  const auto& frames = sample.trace.frame_offsets();
  const ReadResult result =
      Read(sample.bytes.substr(0, frames[0]) + sample.bytes.substr(frames[1]));
  EXPECT_EQ(result.handles, Handles(0, 9));
  EXPECT_EQ(result.Count(ReportKind::kNoHeader), 1u);
}

TEST(TraceReaderTest, DuplicatesAreReportedAndSkipped) {
  const SampleTrace sample;
  const auto& frames = sample.trace.frame_offsets();
  const std::string bytes =
      sample.bytes.substr(0, frames[3]) +
      sample.bytes.substr(frames[1], frames[2] - frames[1]) +
      sample.bytes.substr(frames[3]);
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.handles, Handles(0, 9));
  EXPECT_EQ(result.Count(ReportKind::kDuplicate), 1u);
  EXPECT_TRUE(result.stats.Bad());
}

TEST(TraceReaderTest, ABlockThatComesTwiceInARowIsReadOnce) {
  const SampleTrace sample;
  const auto& frames = sample.trace.frame_offsets();
  for (size_t i = 1; i < 4; ++i) {
    const std::string twice =
        sample.bytes.substr(frames[i], frames[i + 1] - frames[i]);
    const ReadResult result =
        Read(std::string(sample.bytes).insert(frames[i], twice));
    EXPECT_EQ(result.handles, Handles(0, 9)) << i;
    EXPECT_EQ(result.Count(ReportKind::kDuplicate), 1u) << i;
  }
}

TEST(TraceReaderTest, Malicious_ABlockOfAnotherTraceIsDamage) {
  SampleTrace sample;
  TraceBuilder other;
  other.serial()[3] = std::byte{0};
  Event event;
  event.op = Op::read_;
  event.Set(Field::kTime, 1);
  event.Set(Field::kFh, 99);
  other.Add(event);
  other.EndBlock();
  const size_t at = sample.trace.frame_offsets()[2];
  const std::string foreign = other.bytes().substr(other.frame_offsets()[1]);
  std::string bytes = sample.bytes;
  bytes.insert(at, foreign);
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.handles, Handles(0, 9));
  ASSERT_EQ(result.Count(ReportKind::kDamaged), 1u);
  EXPECT_EQ(result.reports.at(ReportKind::kDamaged)[0],
            "damaged at byte " + std::to_string(at) + ": " +
                std::to_string(foreign.size()) +
                " bytes skipped (a block of another trace)");
}

// Parts that follow each other have the same preamble. Another one may say
// anything, so it is not part of the trace.
TEST(TraceReaderTest, Malicious_APreambleOfAnotherTraceIsDamage) {
  const SampleTrace sample;
  const size_t at = sample.trace.frame_offsets()[2];
  const std::string own =
      sample.bytes.substr(0, sample.trace.frame_offsets()[0]);
  Preamble mine = *DecodePreamble(AsBytes(own));
  Preamble foreign = mine;
  foreign.serial[3] ^= std::byte{1};
  Preamble other_chain = mine;
  other_chain.chain = "tcp";
  const std::pair<std::string, bool> preambles[] = {
      {own, true},
      {EncodePreamble(foreign), false},
      {EncodePreamble(other_chain), false}};
  for (const auto& [preamble, is_of_this_trace] : preambles) {
    std::string bytes = sample.bytes;
    bytes.insert(at, preamble);
    const ReadResult result = Read(bytes);
    EXPECT_EQ(result.handles, Handles(0, 9));
    EXPECT_EQ(result.Count(ReportKind::kDamaged), is_of_this_trace ? 0u : 1u);
    EXPECT_EQ(result.stats.damaged_bytes,
              is_of_this_trace ? 0u : preamble.size());
    EXPECT_EQ(result.stats.Bad(), !is_of_this_trace);
  }
}

// In a snapshot blocks are missing by design. Whoever could make a trace one
// with a mark in its middle could take blocks out unseen.
TEST(TraceReaderTest, Malicious_AMarkOfASnapshotBehindABlockHidesNoGap) {
  SampleTrace sample;
  const auto& frames = sample.trace.frame_offsets();
  const std::string mark = sample.trace.Frame(
      0,
      EncodeSnapshotMark(
          sample.trace.serial(),
          {.number = 1, .blocks = 4, .events = 9, .reason = "command"}),
      static_cast<uint16_t>(FrameKind::kSnapshot));
  const auto without_block_2 = [&](size_t mark_at) {
    std::string bytes =
        sample.bytes.substr(0, frames[2]) + sample.bytes.substr(frames[3]);
    bytes.insert(mark_at, mark);
    return Read(bytes);
  };
  // In its place it is believed: what is missing is told at the end.
  const ReadResult snapshot = without_block_2(frames[0]);
  EXPECT_TRUE(snapshot.stats.snapshot.has_value());
  for (const size_t at : {frames[1], frames[2]}) {
    const ReadResult result = without_block_2(at);
    EXPECT_FALSE(result.stats.snapshot.has_value()) << at;
    EXPECT_EQ(result.stats.missing_blocks, 1u);
    ASSERT_EQ(result.Count(ReportKind::kGap), 1u);
    EXPECT_NE(result.reports.at(ReportKind::kGap)[0].find("block 2 "),
              std::string::npos);
    EXPECT_TRUE(result.stats.Bad());
  }
}

TEST(TraceReaderTest, OldBlocksInsideADamagedOneAreNotReadAgain) {
  // A traced program copied the trace: block 4 holds blocks 1 and 2.
  SampleTrace sample;
  TraceBuilder& trace = sample.trace;
  const auto frames = trace.frame_offsets();
  TraceBuilder copy;
  Event event;
  event.op = Op::write_;
  event.Set(Field::kTime, 1);
  event.Set(Field::kFh, 50);
  const std::string data =
      sample.bytes.substr(frames[1], frames[3] - frames[1]);
  event.data = AsBytes(data);
  while (copy.sequence() < 3) copy.SkipSequence();
  copy.Add(event);
  copy.EndBlock();
  copy.Finish();
  const std::string tail = copy.bytes().substr(copy.frame_offsets()[1]);
  std::string bytes = sample.bytes.substr(0, frames[4]) + tail;
  EXPECT_EQ(Read(bytes).handles.back(), 50u);
  bytes[frames[4] + kFrameHeaderBytes + 3] ^= 1;
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.handles, Handles(0, 9));
  EXPECT_EQ(result.Count(ReportKind::kDuplicate), 2u);
  EXPECT_TRUE(result.stats.final_record.has_value());
}

TEST(TraceReaderTest, UnknownKindsOfFramesAreSkipped) {
  SampleTrace sample;
  TraceBuilder trace;
  trace.AppendFrame("an index, perhaps", 77);
  trace.Finish();
  const ReadResult result = Read(trace.bytes());
  EXPECT_EQ(result.stats.unknown_frames, 1u);
  EXPECT_EQ(result.Count(ReportKind::kUnknownFrame), 1u);
  EXPECT_FALSE(result.stats.Bad());
}

TEST(TraceReaderTest, WhatIsNoTraceIsRefused) {
  for (const std::string& bytes :
       {std::string(), std::string("T"), std::string("TRACEFS"),
        std::string("root:x:0:0:root:/root:/bin/bash\n"),
        std::string(300'000, '\0'), std::string(300'000, 'T')}) {
    const ReadResult result = Read(bytes);
    EXPECT_EQ(result.status.code(), StatusCode::kCorrupt);
    EXPECT_TRUE(result.handles.empty());
  }
  EXPECT_EQ(Read("root:x:0:0:root:/root").status.message(),
            "not a Tracefs trace: it does not start with \"TRACEFS\"");
}

TEST(TraceReaderTest, ATooNewTraceIsRefused) {
  const std::string bytes =
      EncodePreamble({.format_version = 5, .min_reader_version = 4});
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.status.message(),
            "the trace needs a reader of format version 4; this one reads up "
            "to version 1: use a newer Tracefs");
}

TEST(TraceReaderTest, AnOutputChainThatCannotBeUndoneIsNamed) {
  TraceBuilder trace("async; compress alg=zstd; file");
  trace.Finish();
  const ReadResult result = Read(trace.bytes());
  EXPECT_EQ(result.status.code(), StatusCode::kInvalid);
  EXPECT_NE(result.status.message().find("\"async; compress alg=zstd; file\""),
            std::string::npos);
  TraceBuilder plain("tcp");
  plain.Finish();
  EXPECT_TRUE(Read(plain.bytes()).status.ok());
}

// Adds one to each byte, and refuses some blocks.
class OneOffDecoder : public PayloadDecoder {
 public:
  Status Decode(const FrameHeader& header, ByteSpan payload,
                std::vector<std::byte>* block) override {
    if (header.sequence == 2) return Status::Corrupt("wrong key");
    for (const std::byte b : payload) {
      block->push_back(std::byte(std::to_integer<int>(b) + 1));
    }
    return {};
  }
};

TEST(TraceReaderTest, PayloadsGoThroughTheDecoderOfTheChain) {
  const SampleTrace sample;
  TraceBuilder coded("oneoff; file");
  std::string bytes =
      EncodePreamble({.serial = coded.serial(), .chain = "oneoff; file"});
  const auto& frames = sample.trace.frame_offsets();
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t end =
        i + 1 < frames.size() ? frames[i + 1] : sample.bytes.size();
    std::string payload = sample.bytes.substr(
        frames[i] + kFrameHeaderBytes, end - frames[i] - kFrameHeaderBytes);
    for (char& c : payload) --c;
    bytes += coded.Frame(i, payload);
  }
  TraceReaderOptions options;
  std::vector<std::string> reports;
  options.report = [&](const Report& r) { reports.push_back(r.Text()); };
  options.decoder =
      [](const Preamble& preamble) -> Result<std::unique_ptr<PayloadDecoder>> {
    EXPECT_EQ(preamble.chain, "oneoff; file");
    return std::unique_ptr<PayloadDecoder>(std::make_unique<OneOffDecoder>());
  };
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(bytes)), std::move(options)));
  Record record;
  std::vector<uint64_t> handles;
  while (merger.Next(&record) == ReadStep::kItem) {
    handles.push_back(record.event.Get(Field::kFh));
  }
  EXPECT_EQ(handles, (std::vector<uint64_t>{0, 1, 2, 6, 7, 8}));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find("wrong key"), std::string::npos);
  EXPECT_TRUE(merger.reader(0).stats().Bad());
}

TEST(TraceReaderTest, AnInputThatFailsEndsTheTraceWithItsError) {
  const SampleTrace sample;
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<FailingSource>(
          sample.bytes.substr(0, sample.trace.frame_offsets()[3] + 5), EIO),
      TraceReaderOptions{}));
  Record record;
  int records = 0;
  while (merger.Next(&record) == ReadStep::kItem) ++records;
  EXPECT_EQ(records, 6);
  EXPECT_EQ(merger.status(0).error(), EIO);
}

// False frame headers, each with the right serial and a long claim, as dense
// as they can be. Checking every claim in full would read 100 GB.
TEST(TraceReaderTest, Malicious_FalseHeadersCostLinearTime) {
  constexpr uint32_t kFileBytes = 4 << 20;
  TraceBuilder trace;
  std::string header = trace.Frame(1, "");
  StoreLe<uint32_t>(header.data() + 4, kFileBytes / 2);
  std::string bytes = trace.bytes();
  while (bytes.size() < kFileBytes) bytes += header;
  trace.EndBlock();
  bytes += trace.bytes().substr(trace.frame_offsets()[1]);
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.stats.blocks, 2u);  // the first and the last
  EXPECT_EQ(result.stats.damaged_ranges, 1u);
}

TEST(TraceReaderTest, Malicious_ALongClaimAllocatesOnlyWhatIsThere) {
  TraceBuilder trace;
  std::string header = trace.Frame(1, "");
  StoreLe<uint32_t>(header.data() + 4, kMaxPayloadBytes);
  const ReadResult result = Read(trace.bytes() + header);
  EXPECT_EQ(result.stats.cut_bytes, kFrameHeaderBytes);
}

TEST(TraceReaderTest, Malicious_SequenceNumbersMayJumpToTheEnd) {
  TraceBuilder trace;
  std::string bytes = trace.bytes();
  bytes += trace.Frame(UINT64_MAX, "x");
  bytes += trace.Frame(0, "x");
  bytes += trace.Frame(1, "x");
  const ReadResult result = Read(bytes);
  EXPECT_EQ(result.stats.missing_blocks, UINT64_MAX - 1);
  EXPECT_EQ(result.stats.duplicate_blocks, 2u);
}

// --- Following -------------------------------------------------------------

class FollowTest : public testing::Test {
 protected:
  FollowTest() {
    TraceReaderOptions options;
    options.follow = true;
    options.report = [this](const Report& r) { reports_.push_back(r.Text()); };
    reader_ = std::make_unique<TraceReader>(
        std::make_unique<GrowingSource>(&bytes_), std::move(options));
  }
  ReadStep Step() {
    const Result<ReadStep> step = reader_->NextBlock(&block_);
    EXPECT_TRUE(step.ok()) << step.status().message();
    return step.ok() ? *step : ReadStep::kEnd;
  }

  SampleTrace sample_;
  std::string bytes_;
  std::vector<std::string> reports_;
  std::unique_ptr<TraceReader> reader_;
  std::unique_ptr<BlockDecoder> block_;
};

TEST_F(FollowTest, BlocksComeAsTheyAreWrittenUntilFinal) {
  size_t blocks = 0;
  for (const char c : sample_.bytes) {
    const bool was_whole = bytes_.size() == sample_.bytes.size();
    EXPECT_FALSE(was_whole);
    bytes_ += c;
    const ReadStep step = Step();
    if (step == ReadStep::kItem) ++blocks;
    if (step == ReadStep::kItem) {
      EXPECT_EQ(reader_->stats().bytes, bytes_.size());
    }
  }
  EXPECT_EQ(blocks, 5u);
  EXPECT_EQ(Step(), ReadStep::kEnd);
  EXPECT_TRUE(reports_.empty()) << reports_[0];
  EXPECT_FALSE(reader_->stats().Bad());
}

TEST_F(FollowTest, StoppedBeforeFinalIsNoFault) {
  bytes_ = sample_.bytes.substr(0, sample_.trace.frame_offsets()[2]);
  EXPECT_EQ(Step(), ReadStep::kItem);
  EXPECT_EQ(Step(), ReadStep::kItem);
  EXPECT_EQ(Step(), ReadStep::kWait);
  bytes_ = sample_.bytes.substr(0, sample_.trace.frame_offsets()[3]);
  reader_->Stop();
  EXPECT_EQ(Step(), ReadStep::kItem);
  EXPECT_EQ(Step(), ReadStep::kEnd);
  EXPECT_TRUE(reports_.empty());
  EXPECT_FALSE(reader_->stats().Bad());
}

TEST_F(FollowTest, DamageIsSkippedWhileFollowing) {
  std::string damaged = sample_.bytes;
  damaged[sample_.trace.frame_offsets()[2] + 60] ^= 1;
  size_t blocks = 0;
  for (const char c : damaged) {
    bytes_ += c;
    if (Step() == ReadStep::kItem) ++blocks;
  }
  EXPECT_EQ(blocks, 4u);
  EXPECT_EQ(reader_->stats().damaged_ranges, 1u);
}

TEST_F(FollowTest, ADamagedPreambleIsSkippedWhileFollowing) {
  std::string damaged = sample_.bytes;
  damaged[20] ^= 1;
  size_t blocks = 0;
  for (const char c : damaged) {
    bytes_ += c;
    if (Step() == ReadStep::kItem) ++blocks;
  }
  EXPECT_EQ(blocks, 5u);
  EXPECT_TRUE(reader_->stats().preamble_damaged);
}

}  // namespace
}  // namespace tracefs::format
