// Going to a time: in small traces against reading all of them, and in one of
// ten gigabytes that is computed as it is read.
#include <algorithm>
#include <chrono>
#include <random>

#include "tests/unit/reader/reading.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs {
namespace {

using namespace test;  // NOLINT: what this test is about
using format::ReadStep;
using format::Record;

uint64_t FirstAt(MemoryReader& reader) {
  const tracefs_event* event;
  if (tracefs_reader_next(reader.get(), &event) != TRACEFS_ITEM) return 0;
  return static_cast<uint64_t>(Number(event, TRACEFS_FIELD_TIME));
}

TEST(TimeSeekTest, FindsTheFirstEventAtOrAfterATime) {
  const std::string bytes = SampleBytes(2000);
  for (const uint64_t event : {0, 1, 9, 10, 777, 10'000, 19'999}) {
    MemoryReader reader(bytes);
    ASSERT_EQ(tracefs_reader_seek_time(reader.get(), TimeOf(event)),
              TRACEFS_ITEM);
    EXPECT_EQ(FirstAt(reader), TimeOf(event));
    EXPECT_EQ(reader.Drain(), 19'999 - event);
    EXPECT_EQ(tracefs_reader_complete(reader.get()), 1);
  }
  MemoryReader beyond(bytes);
  tracefs_reader_seek_time(beyond.get(), TimeOf(20'000));
  EXPECT_EQ(beyond.Drain(), 0u);
}

TEST(TimeSeekTest, RangesAreHalfOpen) {
  const std::string bytes = SampleBytes(1000);
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader reader(bytes);
    tracefs_options_set_range(reader.options(), TimeOf(500), TimeOf(1500));
    tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
    const Table table = ReadTable(reader.get(), "ts");
    ASSERT_EQ(table.rows.size(), 1000u);
    EXPECT_EQ(table.rows.front()[0], std::to_string(TimeOf(500)));
    EXPECT_EQ(table.rows.back()[0], std::to_string(TimeOf(1499)));
  }
}

// The blocks of a trace that messages are given of, by sequence number.
std::vector<uint64_t> BlocksOfMessages(MemoryReader& reader) {
  std::vector<uint64_t> blocks;
  tracefs_message message;
  while (tracefs_reader_next_message(reader.get(), &message) == TRACEFS_ITEM) {
    if (blocks.empty() || blocks.back() != message.block) {
      blocks.push_back(message.block);
    }
  }
  EXPECT_EQ(tracefs_reader_complete(reader.get()), 1) << reader.message();
  return blocks;
}

// Blocks of ten events; the first one describes the others, and the last one
// ends the trace.
TEST(TimeSeekTest, MessagesAreThoseOfBlocksInTheRange) {
  const std::string bytes = SampleBytes(100);
  MemoryReader all(bytes);
  const std::vector<uint64_t> every = BlocksOfMessages(all);
  ASSERT_GE(every.size(), 101u);
  ASSERT_EQ(every[0], 0u);

  MemoryReader some(bytes);
  tracefs_options_set_range(some.options(), TimeOf(505), TimeOf(530));
  std::vector<uint64_t> expected = {0, 51, 52, 53};
  expected.insert(expected.end(), every.begin() + 101, every.end());
  EXPECT_EQ(BlocksOfMessages(some), expected);

  MemoryReader sought(bytes);
  ASSERT_EQ(tracefs_reader_seek_time(sought.get(), TimeOf(989)), TRACEFS_ITEM);
  expected = {0, 99, 100};
  expected.insert(expected.end(), every.begin() + 101, every.end());
  EXPECT_EQ(BlocksOfMessages(sought), expected);

  MemoryReader beyond(bytes);
  tracefs_options_set_range(beyond.options(), TimeOf(1000), TimeOf(2000));
  expected = {0};
  expected.insert(expected.end(), every.begin() + 101, every.end());
  EXPECT_EQ(BlocksOfMessages(beyond), expected);
}

TEST(TimeSeekTest, GoesToABlock) {
  const std::string bytes = SampleBytes(500);
  for (const uint64_t block : {1, 2, 250, 499, 500}) {
    MemoryReader reader(bytes);
    ASSERT_EQ(tracefs_reader_seek_block(reader.get(), 0, block), TRACEFS_ITEM);
    EXPECT_EQ(FirstAt(reader), TimeOf(10 * (block - 1)));
  }
}

// As blocks and messages, too; a trace begins with its preamble.
TEST(TimeSeekTest, WhatWasSoughtIsWhereCopyingBegins) {
  const std::string bytes = SampleBytes(20);
  for (const uint64_t wanted : {0, 7, 20}) {
    MemoryReader reader(bytes);
    ASSERT_EQ(tracefs_reader_seek_block(reader.get(), 0, wanted), TRACEFS_ITEM);
    tracefs_block block;
    ASSERT_EQ(tracefs_reader_next_block(reader.get(), &block), TRACEFS_ITEM);
    EXPECT_EQ(block.kind, 0u);
    const size_t preamble = block.size;
    std::string copy(static_cast<const char*>(block.bytes), block.size);
    if (wanted != 0) {
      ASSERT_EQ(tracefs_reader_next_block(reader.get(), &block), TRACEFS_ITEM);
      EXPECT_EQ(block.number, wanted);
      copy.append(static_cast<const char*>(block.bytes), block.size);
    }
    while (tracefs_reader_next_block(reader.get(), &block) == TRACEFS_ITEM) {
      copy.append(static_cast<const char*>(block.bytes), block.size);
    }
    EXPECT_TRUE(bytes.starts_with(std::string_view(copy).substr(0, preamble)));
    EXPECT_TRUE(bytes.ends_with(std::string_view(copy).substr(preamble)));
    EXPECT_EQ(copy == bytes, wanted == 0);
    MemoryReader messages(bytes);
    tracefs_reader_seek_block(messages.get(), 0, wanted);
    tracefs_message message;
    ASSERT_EQ(tracefs_reader_next_message(messages.get(), &message),
              TRACEFS_ITEM);
    EXPECT_EQ(message.block, wanted);
  }
}

TEST(TimeSeekTest, TellsTheSpanWithoutReadingAll) {
  const std::string bytes = SampleBytes(3000);
  MemoryReader reader(bytes);
  uint64_t first;
  uint64_t last;
  ASSERT_EQ(tracefs_reader_time_span(reader.get(), &first, &last),
            TRACEFS_ITEM);
  EXPECT_EQ(first, TimeOf(0));
  EXPECT_EQ(last, TimeOf(29'999));
  EXPECT_EQ(reader.Drain(), 30'000u);
}

// Blocks of several threads overlap, and some are late by up to a second; so
// neither the first block nor the last tells when the trace begins and ends.
TEST(TimeSeekTest, MissesNothingOfOverlappingBlocks) {
  std::mt19937_64 random(3);
  TraceBuilder trace;
  uint64_t now = TraceBuilder::kMonotonicNs + 1'000'000'000;
  std::vector<uint64_t> times;
  for (int block = 0; block < 3000; ++block) {
    now += random() % 40'000'000;
    const uint64_t late = random() % 1'000'000'000;
    const uint64_t begin = now - late;
    for (int i = 0; i < 3; ++i) {
      Event event;
      event.op = Op::read_;
      times.push_back(begin + random() % (now - begin + 1));
      event.Set(Field::kTime, times.back());
      trace.Add(event);
    }
    trace.EndBlock(now - 1'000'000'000);
  }
  trace.Finish();
  const auto& clock = trace.header().clock;
  MemoryReader whole(trace.bytes());
  uint64_t first;
  uint64_t last;
  ASSERT_EQ(tracefs_reader_time_span(whole.get(), &first, &last), TRACEFS_ITEM);
  EXPECT_EQ(first, clock.ToReal(*std::ranges::min_element(times)));
  EXPECT_EQ(last, clock.ToReal(*std::ranges::max_element(times)));
  for (int round = 0; round < 50; ++round) {
    const uint64_t from = times[random() % times.size()];
    const auto expected = static_cast<uint64_t>(std::count_if(
        times.begin(), times.end(), [from](uint64_t t) { return t >= from; }));
    MemoryReader reader(trace.bytes());
    tracefs_reader_seek_time(reader.get(), clock.ToReal(from));
    ASSERT_EQ(reader.Drain(), expected);
  }
}

TEST(TimeSeekTest, DamagedBlocksAreGoneRoundAndNotLookedForAgain) {
  TraceBuilder trace = Sample(2000);
  trace.Finish();
  std::string bytes = trace.bytes();
  for (size_t f = 900; f < 1100; ++f) bytes[trace.frame_offsets()[f] + 50] ^= 1;
  MemoryReader reader(bytes);
  tracefs_reader_seek_time(reader.get(), TimeOf(15'000));
  EXPECT_EQ(reader.Drain(), 5000u);
}

// --- Ten gigabytes: the same block again and again, later each time, made as
// it is read. Nothing of it is stored.

class ComputedTrace final : public format::ByteSource {
 public:
  static constexpr size_t kOperations = 2000;
  static constexpr uint64_t kBytes = uint64_t{10} << 30;
  static constexpr uint64_t kBlockNs = kOperations * 1000;

  // `uneven`: with ever longer rests between its blocks.
  explicit ComputedTrace(bool uneven) : uneven_(uneven) {
    TraceBuilder trace;
    const uint32_t root = trace.DefinePath(0, "");
    const uint32_t file = trace.DefinePath(root, "some_file.cc");
    for (uint64_t i = 0; i < kOperations; ++i) {
      Event event;
      event.op = Op::read_;
      event.Set(Field::kTime, TraceBuilder::kMonotonicNs + i * 1000);
      event.Set(Field::kLatency, 500);
      event.Set(Field::kUid, 1000);
      event.Set(Field::kInode, i);
      event.Set(Field::kOffset, 4096 * i);
      event.SetResult(4096, 0);
      trace.Add(event, {.path = file});
    }
    trace.EndBlock();
    const size_t at = trace.frame_offsets()[1];
    head_ = trace.bytes().substr(0, at);
    block_ = trace.bytes().substr(at);
    blocks_ = (kBytes - head_.size()) / block_.size();
    // Where times stand: those of BLOCK, then the first argument of each
    // operation.
    for (size_t i = format::kFrameHeaderBytes; i < block_.size();) {
      const auto id = LoadLe<uint16_t>(block_.data() + i);
      const auto length = LoadLe<uint32_t>(block_.data() + i + 2);
      if (id == 2) {
        for (const size_t argument : {26, 36, 46}) {
          times_.push_back(i + 6 + argument + 2);
        }
      } else if (id >= 256) {
        times_.push_back(i + 8);
      }
      i += length;
    }
  }

  uint64_t blocks() const { return blocks_; }
  uint64_t BeginOf(uint64_t block) const {
    return kBlockNs * (block + (uneven_ ? block * block / 64 : 0));
  }
  uint64_t blocks_made() const { return made_; }
  std::optional<uint64_t> Size() override {
    return head_.size() + blocks_ * block_.size();
  }
  Result<size_t> Read(std::span<std::byte> out) override {
    const Result<size_t> n = ReadAt(at_, out);
    at_ += *n;
    return n;
  }
  Status Seek(uint64_t offset) override {
    at_ = offset;
    return Status::Ok();
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size() && offset < *Size()) {
      std::string_view piece;
      if (offset < head_.size()) {
        piece = std::string_view(head_).substr(offset);
      } else {
        const uint64_t number = (offset - head_.size()) / block_.size();
        piece = Block(number).substr((offset - head_.size()) % block_.size());
      }
      const size_t n = std::min(piece.size(), out.size() - done);
      std::memcpy(out.data() + done, piece.data(), n);
      done += n;
      offset += n;
    }
    return done;
  }

 private:
  std::string_view Block(uint64_t number) {
    if (number == current_number_ && !current_.empty()) return current_;
    ++made_;
    current_number_ = number;
    current_ = block_;
    for (const size_t at : times_) {
      const uint64_t time = LoadLe<uint64_t>(block_.data() + at);
      StoreLe<uint64_t>(current_.data() + at, time + BeginOf(number));
    }
    auto* const head = reinterpret_cast<std::byte*>(current_.data());
    StoreLe<uint64_t>(head + 8, number + 1);
    const std::span<const std::byte, format::kFrameHeaderBytes> header(
        head, format::kFrameHeaderBytes);
    StoreLe<uint32_t>(head + 36,
                      format::FrameCrc(header, AsBytes(current_).subspan(
                                                   format::kFrameHeaderBytes)));
    return current_;
  }

  const bool uneven_;
  std::string head_;
  std::string block_;
  std::vector<size_t> times_;
  uint64_t blocks_ = 0;
  uint64_t made_ = 0;
  uint64_t current_number_ = 0;
  std::string current_;
  uint64_t at_ = 0;
};

void FindIn(bool uneven, double part) {
  auto source = std::make_unique<ComputedTrace>(uneven);
  ComputedTrace& computed = *source;
  const auto block =
      static_cast<uint64_t>(static_cast<double>(computed.blocks()) * part);
  const uint64_t wanted =
      TraceBuilder::kRealNs + computed.BeginOf(block) + 1234 * 1000;
  reader::TraceSet traces({});
  const auto begin = std::chrono::steady_clock::now();
  traces.AddSource("computed", std::move(source));
  traces.SetRange({wanted, UINT64_MAX});
  Record record;
  ASSERT_EQ(traces.Next(&record), ReadStep::kItem);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  EXPECT_EQ(record.real_ns, wanted);
  // Of 45,000: what is looked at, and what may be late.
  EXPECT_LT(computed.blocks_made(), uneven ? 100u : 60u)
      << took.count() << " ms";
  printf("at %.1f%%: %d ms, %d blocks looked at\n", 100 * part,
         static_cast<int>(took.count()),
         static_cast<int>(computed.blocks_made()));
}

TEST(TimeSeekTest, TenGigabytesTakeMilliseconds) {
  for (const double part : {0.0, 0.1, 0.5, 0.999}) {
    FindIn(/*uneven=*/false, part);
  }
}

TEST(TimeSeekTest, TenGigabytesOfUnevenTimesTakeNoLonger) {
  for (const double part : {0.0, 0.001, 0.1, 0.5, 0.999}) {
    FindIn(/*uneven=*/true, part);
  }
}

TEST(TimeSeekTest, BeforeTheBeginningOfTenGigabytesIsTheirBeginning) {
  auto source = std::make_unique<ComputedTrace>(false);
  ComputedTrace& computed = *source;
  reader::TraceSet traces({});
  traces.AddSource("computed", std::move(source));
  traces.SetRange({TraceBuilder::kRealNs - 1, UINT64_MAX});
  Record record;
  ASSERT_EQ(traces.Next(&record), ReadStep::kItem);
  EXPECT_EQ(record.real_ns, TraceBuilder::kRealNs);
  EXPECT_LT(computed.blocks_made(), 60u);
}

}  // namespace
}  // namespace tracefs
