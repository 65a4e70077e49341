// Traces that are cut, damaged or made to do harm: what is whole is delivered,
// the rest is counted, and memory stays bounded.
#include <sys/resource.h>

#include "tests/unit/reader/reading.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/message_writer.h"

namespace tracefs {
namespace {

using namespace test;  // NOLINT: what this test is about

size_t PeakKib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss);
}

TEST(HostileTest, CutAnywhereAllWholeBlocksAreDelivered) {
  TraceBuilder trace = Sample(6);
  trace.Finish();
  const std::string& whole = trace.bytes();
  const std::vector<size_t>& frames = trace.frame_offsets();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    // Of frames 1 to 6, ten each, those that end before the cut.
    uint64_t expected = 0;
    for (size_t f = 1; f <= 6; ++f) expected += size >= frames[f + 1] ? 10 : 0;
    for (const uint64_t file_order : {0, 1}) {
      if (file_order == 1 && size % 37 != 0) continue;  // threads take a while
      MemoryReader reader(bytes);
      tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
      tracefs_options_set(reader.options(), TRACEFS_THREADS, 2);
      const uint64_t got = file_order == 1
                               ? ReadTable(reader.get(), "ts").rows.size()
                               : reader.Drain();
      ASSERT_EQ(got, expected) << size;
      ASSERT_EQ(tracefs_reader_complete(reader.get()), 0) << size;
      if (tracefs_reader_status(reader.get()) == TRACEFS_END) {
        ASSERT_EQ(reader.count(TRACEFS_CUT_FILE), 1u) << size;
      } else {
        ASSERT_LE(size, frames[1]) << size;  // within the preamble or block 0
      }
    }
  }
}

TEST(HostileTest, EachBlockDamagedInTurnCostsThatBlock) {
  TraceBuilder trace = Sample(6);
  trace.Finish();
  const std::vector<size_t>& frames = trace.frame_offsets();
  for (size_t f = 0; f < frames.size(); ++f) {
    const size_t end =
        f + 1 < frames.size() ? frames[f + 1] : trace.bytes().size();
    for (size_t at = frames[f]; at < end; at += 7) {
      std::string bytes = trace.bytes();
      bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
      MemoryReader reader(bytes);
      const bool has_events = f >= 1 && f <= 6;
      ASSERT_EQ(reader.Drain(), has_events ? 50u : 60u) << f << " " << at;
      ASSERT_EQ(reader.code(), TRACEFS_END);
      ASSERT_EQ(reader.count(TRACEFS_DAMAGED_BLOCK) +
                        reader.count(TRACEFS_CUT_FILE) +
                        reader.count(TRACEFS_MISSING_BLOCK) >=
                    1u,
                true);
      ASSERT_EQ(tracefs_reader_complete(reader.get()), 0);
    }
  }
}

TEST(HostileTest, LengthsThatLieCostTheirMessageOrTheRestOfTheBlock) {
  TraceBuilder trace = Sample();
  const auto add = [&](uint32_t length) {
    std::string message(10, '\0');
    StoreLe<uint16_t>(message.data(), 0x10e);
    StoreLe<uint32_t>(message.data() + 2, length);
    trace.AddBytes(message);
    trace.EndBlock();
  };
  for (const uint32_t length : {0u, 5u, 11u, 0xffffffffu}) add(length);
  // An argument that claims a terabyte's worth of bytes.
  trace.AddRaw(0x10e, [](format::MessageWriter& out) {
    std::byte raw[6];
    StoreLe<uint16_t>(raw, uint16_t{0x8000 | 64});
    StoreLe<uint32_t>(raw + 2, 0xffffffff);
    std::memcpy(out.Room(6), raw, 6);
    out.Advance(6);
  });
  trace.EndBlock();
  trace.Finish();
  MemoryReader reader(trace.bytes());
  EXPECT_EQ(reader.Drain(), 11u);
  EXPECT_EQ(reader.count(TRACEFS_BAD_MESSAGE), 4u);
  EXPECT_EQ(reader.count(TRACEFS_BAD_ARGUMENT), 1u);
}

TEST(HostileTest, NamesThatReferToThemselvesOrToNothingHaveNoPath) {
  TraceBuilder trace;
  const auto define = [&](uint32_t id, uint32_t parent) {
    trace.AddRaw(5, [&](format::MessageWriter& out) {
      out.Put<uint32_t>(format::ArgId::kPathId, id);
      out.Put<uint32_t>(format::ArgId::kParentPathId, parent);
      out.PutText(uint16_t{64}, "x");
    });
  };
  define(1, 1);    // itself
  define(2, 3);    // a later one
  define(3, 2);    // which leads back
  define(77, 1);   // out of order
  define(4, 999);  // none
  for (const uint32_t path : {1u, 2u, 3u, 4u, 5u, 0xffffffffu}) {
    Event event;
    event.op = Op::open_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + path);
    trace.Add(event, {.path = path, .process = path});
  }
  trace.EndBlock();
  trace.Finish();
  MemoryReader reader(trace.bytes());
  const tracefs_event* event;
  uint64_t n = 0;
  while (tracefs_reader_next(reader.get(), &event) == TRACEFS_ITEM) {
    EXPECT_LE(Text(event, TRACEFS_FIELD_PATH).size(), 4096u);
    ++n;
  }
  EXPECT_EQ(n, 6u);
  EXPECT_EQ(reader.count(TRACEFS_BAD_DEFINITION), 1u);
}

TEST(HostileTest, ATerabyteInFourBytesCostsNoMemory) {
  const size_t before = PeakKib();
  // compress: claims 64 MiB of a payload of 8 bytes, and more than is allowed.
  for (const uint32_t claim : {0x04000000u, 0xffffffffu}) {
    for (const char method : {'\0', '\1', '\2', '\3', '\4'}) {
      TraceBuilder trace = Sample(1, "compress alg=zstd; file");
      std::string payload(16, '\0');
      payload[0] = method;
      StoreLe<uint32_t>(payload.data() + 4, claim);
      trace.AppendFrame(payload);
      MemoryReader reader(trace.bytes());
      reader.Drain();
      EXPECT_GE(reader.count(TRACEFS_DAMAGED_BLOCK), 1u);
    }
  }
  // A frame header that claims 4 GiB, and one that claims the most it may.
  for (const uint32_t claim : {0xffffffffu, 0x04000000u}) {
    TraceBuilder trace = Sample(3);
    std::string bytes = trace.bytes();
    StoreLe<uint32_t>(bytes.data() + trace.frame_offsets()[1] + 4, claim);
    MemoryReader reader(bytes);
    EXPECT_EQ(reader.Drain(), 20u);
  }
  EXPECT_LT(PeakKib() - before, size_t{64} << 10);
}

TEST(HostileTest, AnyBytesAnywhereAreSurvived) {
  const std::string whole = SampleBytes(2);
  uint64_t state = 7;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[(state >> 33) % bytes.size()] = static_cast<char>(state >> 20);
    }
    // Frames whose CRC is right may hold anything.
    size_t at = LoadLe<uint32_t>(bytes.data() + 8);
    while (at + format::kFrameHeaderBytes <= bytes.size()) {
      const uint32_t size = LoadLe<uint32_t>(bytes.data() + at + 4);
      if (size > bytes.size() - at - format::kFrameHeaderBytes) break;
      auto* const head = reinterpret_cast<std::byte*>(bytes.data() + at);
      StoreLe<uint32_t>(
          head + 36, format::FrameCrc(
                         std::span<const std::byte, format::kFrameHeaderBytes>(
                             head, format::kFrameHeaderBytes),
                         ByteSpan(head + format::kFrameHeaderBytes, size)));
      at += format::kFrameHeaderBytes + size;
    }
    MemoryReader reader(bytes);
    reader.Reporting().reports().with_texts = true;
    const tracefs_event* event;
    while (tracefs_reader_next(reader.get(), &event) == TRACEFS_ITEM) {
      for (uint32_t f = 0; (f = tracefs_field_after(f)) != 0;) {
        Text(event, f);
        Number(event, f);
      }
    }
    MemoryReader messages(bytes);
    tracefs_message message;
    while (tracefs_reader_next_message(messages.get(), &message) ==
           TRACEFS_ITEM) {
      size_t argument_at = 0;
      tracefs_argument argument;
      while (tracefs_reader_next_argument(messages.get(), &argument_at,
                                          &argument) == TRACEFS_ITEM) {
      }
    }
  }
}

}  // namespace
}  // namespace tracefs
