// The frames of a connection: every way to cut them into reads, and bytes that
// are not a frame of the trace.
#include "tracefs/format/frame_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/fake_trace.h"

namespace tracefs {
namespace {

using test::FakeTrace;

constexpr uint32_t kMaxFrame = 1 << 20;

// What a file would hold: all pieces, and up to where it is whole.
struct Kept {
  std::string bytes;
  size_t whole = 0;
  uint64_t next = 0;
  Status status;
};

Kept FeedAll(FrameParser& parser, const std::string& input,
             const std::vector<size_t>& cuts) {
  Kept kept;
  size_t at = 0;
  for (size_t i = 0; i <= cuts.size() && kept.status.ok(); ++i) {
    const size_t end = i < cuts.size() ? cuts[i] : input.size();
    // Memory of its own: nothing may be read behind its end.
    const std::vector<std::byte> part(
        reinterpret_cast<const std::byte*>(input.data()) + at,
        reinterpret_cast<const std::byte*>(input.data()) + end);
    std::vector<FrameParser::Piece> pieces;
    kept.status = parser.Feed(part, &pieces);
    for (const FrameParser::Piece& piece : pieces) {
      if (piece.whole != 0) {
        kept.whole = kept.bytes.size() + piece.whole;
        kept.next = piece.next;
      }
      kept.bytes += AsText(piece.bytes);
    }
    at = end;
  }
  return kept;
}

TEST(FrameParserTest, FramesCutAtAnyTwoPlaces) {
  const FakeTrace trace(1, 30);
  const std::string input = trace.Frame(0) + trace.Frame(1) + trace.Frame(2);
  for (size_t a = 0; a <= input.size(); ++a) {
    for (size_t b = a; b <= input.size(); b += 3) {
      FrameParser parser(trace.serial(), 0, kMaxFrame);
      const Kept kept = FeedAll(parser, input, {a, b});
      ASSERT_TRUE(kept.status.ok()) << kept.status.message();
      ASSERT_EQ(kept.bytes, input) << a << ' ' << b;
      ASSERT_EQ(kept.whole, input.size()) << a << ' ' << b;
      ASSERT_EQ(kept.next, 3u);
      ASSERT_FALSE(parser.in_frame());
    }
  }
}

TEST(FrameParserTest, WhatIsThereAlreadyIsSkippedHoweverItIsCut) {
  const FakeTrace trace(1, 30);
  const std::string input = trace.Frame(0) + trace.Frame(3) + trace.Frame(1) +
                            trace.Frame(3) + trace.Frame(7);
  for (size_t a = 0; a <= input.size(); ++a) {
    FrameParser parser(trace.serial(), 2, kMaxFrame);
    const Kept kept = FeedAll(parser, input, {a});
    ASSERT_TRUE(kept.status.ok());
    ASSERT_EQ(kept.bytes, trace.Frame(3) + trace.Frame(7)) << a;
    ASSERT_EQ(kept.whole, kept.bytes.size()) << a;
    ASSERT_EQ(kept.next, 8u);
  }
}

TEST(FrameParserTest, EmptyPayloads) {
  const FakeTrace empty(1, 0);
  const std::string input = empty.Frame(0) + empty.Frame(1) + empty.Frame(2);
  for (size_t a = 0; a <= input.size(); ++a) {
    FrameParser parser(empty.serial(), 1, kMaxFrame);
    const Kept kept = FeedAll(parser, input, {a});
    ASSERT_TRUE(kept.status.ok());
    ASSERT_EQ(kept.bytes, empty.Frame(1) + empty.Frame(2)) << a;
    ASSERT_EQ(kept.whole, kept.bytes.size()) << a;
    ASSERT_EQ(parser.next(), 3u);
  }
}

TEST(FrameParserTest, RandomCutsOfManyFrames) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string input;
    std::string expected;
    FakeTrace trace(1, random() % 5 == 0 ? 0 : random() % 300);
    uint64_t next = random() % 3;
    FrameParser parser(trace.serial(), next, kMaxFrame);
    for (int i = 0; i < 20; ++i) {
      const uint64_t sequence = random() % 30;
      input += trace.Frame(sequence);
      if (sequence >= next) {
        expected += trace.Frame(sequence);
        next = sequence + 1;
      }
    }
    std::vector<size_t> cuts(random() % 40);
    for (size_t& cut : cuts) cut = random() % (input.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    const Kept kept = FeedAll(parser, input, cuts);
    ASSERT_TRUE(kept.status.ok());
    ASSERT_EQ(kept.bytes, expected);
    ASSERT_EQ(kept.whole, expected.size());
    ASSERT_EQ(parser.next(), next);
  }
}

TEST(FrameParserTest, Malicious_EveryChangedByteStopsBehindWhatWasWhole) {
  const FakeTrace trace(1, 20);
  const std::string first = trace.Frame(0);
  const std::string second = trace.Frame(1);
  for (size_t n = 0; n < second.size(); ++n) {
    for (const size_t cut : {size_t{0}, first.size(), first.size() + n / 2}) {
      std::string changed = second;
      changed[n] = static_cast<char>(changed[n] ^ 0x10);
      FrameParser parser(trace.serial(), 0, kMaxFrame);
      const Kept kept =
          FeedAll(parser, first + changed + trace.Frame(2), {cut});
      // A length that says more than came is noticed when more has come.
      if (kept.status.ok()) {
        EXPECT_TRUE(n >= 4 && n < 8) << n;
        EXPECT_TRUE(parser.in_frame());
      }
      EXPECT_EQ(kept.next, 1u) << n;
      EXPECT_EQ(kept.bytes.substr(0, kept.whole), first) << n;
    }
  }
}

TEST(FrameParserTest, Malicious_FramesOfOtherTracesAndHugeOnes) {
  const FakeTrace trace(1, 100);
  FrameParser other(trace.serial(), 0, kMaxFrame);
  EXPECT_EQ(FeedAll(other, FakeTrace(2, 100).Frame(0), {}).status.code(),
            StatusCode::kCorrupt);
  FrameParser small(trace.serial(), 0, 139);
  EXPECT_EQ(FeedAll(small, trace.Frame(0), {}).status.code(),
            StatusCode::kInvalid);
  FrameParser enough(trace.serial(), 0, 140);
  EXPECT_TRUE(FeedAll(enough, trace.Frame(0), {}).status.ok());
}

// No block can follow it, and "all below are durable" cannot be said of it.
TEST(FrameParserTest, Malicious_TheHighestNumberIsRefused) {
  const FakeTrace trace(1, 100);
  FrameParser parser(trace.serial(), 0, kMaxFrame);
  const Kept kept = FeedAll(
      parser, trace.Frame(UINT64_MAX - 1) + trace.Frame(UINT64_MAX), {});
  EXPECT_EQ(kept.status.code(), StatusCode::kCorrupt);
  EXPECT_EQ(kept.bytes.substr(0, kept.whole), trace.Frame(UINT64_MAX - 1));
  EXPECT_EQ(parser.next(), UINT64_MAX);
}

}  // namespace
}  // namespace tracefs
