// Rings of a flight recorder against a model that remembers who wrote each
// byte; map files byte for byte, and each way in which a file is none.
#include "tracefs/format/flight_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

#include "tracefs/base/crc32c.h"
#include "tracefs/format/frame.h"

namespace tracefs::format {
namespace {

constexpr size_t kRing = kMinFlightRingBytes;

Serial SomeSerial() {
  Serial serial{};
  serial[0] = std::byte{7};
  return serial;
}

std::string FrameOf(uint64_t sequence, size_t payload_bytes) {
  const std::string payload(payload_bytes,
                            static_cast<char>('a' + sequence % 26));
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader(header, {.sequence = sequence, .serial = SomeSerial()},
                    AsBytes(payload));
  return std::string(AsText(header)) + payload;
}

// A ring and what must be in it.
class Ring {
 public:
  bool Write(uint64_t sequence, size_t payload_bytes, uint64_t events) {
    const std::string frame = FrameOf(sequence, payload_bytes);
    const bool written =
        writer_.Write(AsBytes(frame).first(kFrameHeaderBytes),
                      AsBytes(frame).subspan(kFrameHeaderBytes), events);
    const size_t size = (kFlightRecordBytes + frame.size() + 7) / 8 * 8;
    EXPECT_EQ(written, size <= kRing);
    if (!written) return false;
    size_t gone = 0;  // what is older than whatever was written over
    const auto give_up = [&](size_t from, size_t to) {
      for (size_t at = from; at < to; at += 8) {
        gone = std::max(gone, owners_[at / 8]);
      }
    };
    if (next_ + size > kRing) {
      give_up(next_, kRing);
      next_ = 0;
    }
    give_up(next_, next_ + size);
    first_ = std::max(first_, gone);
    all_.push_back({frame, events});
    for (size_t at = next_; at < next_ + size; at += 8) {
      owners_[at / 8] = all_.size();
    }
    next_ += size;
    used_ = std::max(used_, next_);
    return true;
  }

  // What a snapshot must hold, its mark but the reason's length aside.
  SnapshotMark Mark() const {
    SnapshotMark mark{.reason = "command"};
    for (size_t i = 0; i < all_.size(); ++i) {
      (i < first_ ? mark.overwritten_blocks : mark.blocks) += 1;
      (i < first_ ? mark.overwritten_events : mark.events) += all_[i].events;
    }
    return mark;
  }
  std::string Frames() const {
    std::string text;
    for (size_t i = first_; i < all_.size(); ++i) text += all_[i].frame;
    return text;
  }
  ByteSpan bytes() const { return memory_; }
  std::span<std::byte> memory() { return memory_; }
  const FlightRingWriter& writer() const { return writer_; }
  size_t used() const { return used_; }

 private:
  struct Written {
    std::string frame;
    uint64_t events;
  };
  std::vector<std::byte> memory_ = std::vector<std::byte>(kRing);
  FlightRingWriter writer_{memory_};
  std::vector<size_t> owners_ = std::vector<size_t>(kRing / 8);
  std::vector<Written> all_;
  size_t first_ = 0;
  size_t next_ = 0;
  size_t used_ = 0;
};

// Preamble and a block 0.
std::string Start(const std::string& chain = "file") {
  return EncodePreamble({.serial = SomeSerial(), .chain = chain}) +
         FrameOf(0, 100);
}

std::string Expected(const Ring& ring, const std::string& reason = "command") {
  const std::string start = Start();
  const size_t head = *PreambleLength(AsBytes(start));
  SnapshotMark mark = ring.Mark();
  mark.reason = reason;
  return start.substr(0, head) + EncodeSnapshotMark(SomeSerial(), mark) +
         start.substr(head) + ring.Frames();
}

std::string SnapshotOf(std::span<const ByteSpan> rings) {
  return MakeSnapshot(Start(), SomeSerial(), rings, {.reason = "command"});
}

TEST(FlightRingTest, HoldsTheNewestBlocksWhateverTheirSizes) {
  std::mt19937_64 random(5);
  for (const size_t largest : {size_t{50}, size_t{4000}, kRing / 2, kRing}) {
    Ring ring;
    for (uint64_t sequence = 1; sequence < 300; ++sequence) {
      ring.Write(sequence, random() % largest, random() % 100);
      if (sequence % 7 != 0 && largest == 50) continue;
      const ByteSpan bytes = ring.bytes();
      ASSERT_EQ(SnapshotOf({&bytes, 1}), Expected(ring)) << sequence;
      const SnapshotMark mark = ring.Mark();
      EXPECT_EQ(ring.writer().kept_blocks(), mark.blocks);
      EXPECT_EQ(ring.writer().overwritten_events(), mark.overwritten_events);
      EXPECT_EQ(ring.writer().used(), ring.used());
    }
  }
}

TEST(FlightRingTest, ABlockMayFillItToTheLastByte) {
  const size_t around = kFlightRecordBytes + kFrameHeaderBytes;
  Ring ring;
  EXPECT_TRUE(ring.Write(1, 10, 1));
  EXPECT_TRUE(ring.Write(2, kRing - around, 2));
  EXPECT_FALSE(ring.Write(3, kRing - around + 1, 4));
  const ByteSpan bytes = ring.bytes();
  EXPECT_EQ(SnapshotOf({&bytes, 1}), Expected(ring));
  EXPECT_EQ(ring.Mark().overwritten_events, 1u);
}

TEST(FlightRingTest, BlocksOfAllRingsComeInTheirOrder) {
  Ring one, two;
  one.Write(1, 30, 1);
  two.Write(2, 40, 2);
  one.Write(3, 50, 4);
  const ByteSpan rings[] = {two.bytes(), one.bytes()};
  const std::string text = SnapshotOf(rings);
  const std::string tail = FrameOf(1, 30) + FrameOf(2, 40) + FrameOf(3, 50);
  ASSERT_TRUE(text.ends_with(tail));
  const size_t head = *PreambleLength(AsBytes(text));
  const auto frame = FrameAt(AsBytes(text).subspan(head), SomeSerial());
  ASSERT_TRUE(frame);
  const auto mark = DecodeSnapshotMark(frame->payload);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->blocks, 3u);
  EXPECT_EQ(mark->events, 7u);
  EXPECT_EQ(mark->overwritten_blocks, 0u);
  EXPECT_EQ(mark->reason, "command");
  EXPECT_EQ(SnapshotOf({}), Expected(Ring()));
  const Ring unused;
  const ByteSpan none[] = {unused.bytes(), unused.bytes()};
  EXPECT_EQ(SnapshotOf(none), Expected(unused));
}

// The writer was killed in its middle, or somebody has changed a byte.
TEST(FlightRingTest, Malicious_WhatIsNotWholeEndsWhatLeadsUpToIt) {
  Ring ring;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    ring.Write(sequence, 24, 1);
  }
  const size_t size = kFlightRecordBytes + kFrameHeaderBytes + 24;
  ASSERT_EQ(size % 8, 0u);
  for (size_t i = 0; i < 3 * size; ++i) {
    ring.memory()[i] ^= std::byte{1};
    const ByteSpan bytes = ring.bytes();
    const std::string text = SnapshotOf({&bytes, 1});
    // Of the first one: the others; of a later one: those behind it; of the
    // last: all but it.
    const std::string left = i < size       ? FrameOf(2, 24) + FrameOf(3, 24)
                             : i < 2 * size ? FrameOf(3, 24)
                                            : FrameOf(1, 24) + FrameOf(2, 24);
    EXPECT_TRUE(text.ends_with(FrameOf(0, 100) + left)) << i;
    ring.memory()[i] ^= std::byte{1};
  }
}

TEST(FlightMapTest, HeadRoundTripsAndKnowsItsBounds) {
  const auto decoded = [](const FlightMapHead& head) {
    const std::string text = EncodeFlightMapHead(head);
    EXPECT_EQ(text.size(), kFlightHeadBytes);
    return DecodeFlightMapHead(AsBytes(text));
  };
  const auto good = decoded({.rings = 3, .ring_bytes = kRing});
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->rings, 3u);
  EXPECT_EQ(good->ring_bytes, kRing);
  EXPECT_TRUE(decoded({kMaxFlightRings, kRing}).ok());
  EXPECT_TRUE(decoded({4, kMaxFlightRingBytes}).ok());
  for (const FlightMapHead& bad :
       {FlightMapHead{0, kRing}, FlightMapHead{kMaxFlightRings + 1, kRing},
        FlightMapHead{1, kRing - 1}, FlightMapHead{1, kMaxFlightRingBytes + 1},
        FlightMapHead{5, kMaxFlightRingBytes}}) {
    EXPECT_FALSE(decoded(bad).ok()) << bad.rings << ' ' << bad.ring_bytes;
  }
}

TEST(FlightMapTest, HeadHasTheBytesOfTheTable) {
  std::string text = EncodeFlightMapHead({.rings = 2, .ring_bytes = 0x10000});
  EXPECT_EQ(text.substr(0, 24), std::string("TRACEFLT\x01\0\0\0\x02\0\0\0"
                                            "\0\0\x01\0\0\0\0\0",
                                            24));
  for (size_t i = 0; i < 28; ++i) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(DecodeFlightMapHead(AsBytes(bad)).status().code(),
              StatusCode::kCorrupt)
        << i;
  }
  EXPECT_FALSE(
      DecodeFlightMapHead(AsBytes(text).first(kFlightHeadBytes - 1)).ok());
  // A newer one says so.
  text[8] = 2;
  StoreLe<uint32_t>(text.data() + 24, Crc32c(AsBytes(text).first(24)));
  const auto newer = DecodeFlightMapHead(AsBytes(text));
  EXPECT_EQ(newer.status().code(), StatusCode::kInvalid);
  EXPECT_NE(newer.status().message().find("version 2"), std::string::npos);
}

class MapFile {
 public:
  Result<std::string> Snapshot(std::string_view text) {
    EXPECT_EQ(::ftruncate(fileno(file_.get()), 0), 0);
    EXPECT_EQ(::pwrite(fileno(file_.get()), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    return ReadFlightMap(fileno(file_.get()), text.size());
  }
  // A file that is shorter than it was taken for.
  Result<std::string> Shorter(std::string_view text) {
    EXPECT_EQ(::ftruncate(fileno(file_.get()), 0), 0);
    EXPECT_EQ(::pwrite(fileno(file_.get()), text.data(), text.size() - 1, 0),
              static_cast<ssize_t>(text.size()) - 1);
    return ReadFlightMap(fileno(file_.get()), text.size());
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_{std::tmpfile(), &std::fclose};
};

TEST(FlightMapTest, AFileGivesWhatItsRingsHold) {
  Ring one, two;
  for (uint64_t sequence = 1; sequence < 60; ++sequence) {
    (sequence % 3 == 0 ? two : one).Write(sequence, 3000, sequence);
  }
  const std::string rings =
      std::string(AsText(one.bytes())) + std::string(AsText(two.bytes()));
  const std::string head =
      EncodeFlightMapHead({.rings = 2, .ring_bytes = kRing}) + rings;
  const ByteSpan spans[] = {one.bytes(), two.bytes()};
  MapFile file;
  for (const char* chain : {"file", "async; file"}) {
    const auto text = file.Snapshot(head + Start(chain));
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(*text, MakeSnapshot(
                         Start(chain), SomeSerial(), spans,
                         {.reason = chain[0] == 'a' ? "map, without what async "
                                                      "still held"
                                                    : "map"}));
  }
  // Before it had begun there is no preamble, or half of one.
  const std::string whole = head + Start();
  const size_t preamble = *PreambleLength(AsBytes(Start()));
  for (const size_t size : {head.size(), head.size() + preamble - 1}) {
    EXPECT_NE(file.Snapshot(whole.substr(0, size))
                  .status()
                  .message()
                  .find("before it had begun"),
              std::string::npos);
  }
  EXPECT_TRUE(file.Snapshot(whole.substr(0, head.size() + preamble)).ok());
  for (const size_t size :
       {size_t{0}, kFlightHeadBytes - 1, kFlightHeadBytes, head.size() - 1}) {
    EXPECT_NE(
        file.Snapshot(whole.substr(0, size)).status().message().find("cut"),
        std::string::npos)
        << size;
  }
  EXPECT_EQ(file.Shorter(whole).status().code(), StatusCode::kCorrupt);
  std::string damaged = whole;
  damaged[head.size() + preamble - 1] ^= 1;
  EXPECT_FALSE(file.Snapshot(damaged).ok());
}

}  // namespace
}  // namespace tracefs::format
