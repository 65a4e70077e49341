// TimeSeek against slow answers over the same blocks: all of them are looked
// at, one after the other.
#include "tracefs/format/time_seek.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"

namespace tracefs {
namespace {

using format::BlockSpan;
using format::BlockTimes;
using format::FoundBlock;
using format::MemorySource;
using format::TimeSeek;
using test::TraceBuilder;

constexpr uint64_t kStart = TraceBuilder::kMonotonicNs + 10'000'000'000;

// A block as a test tells it; what it holds besides is filling.
struct Told {
  std::vector<uint64_t> times = {};  // monotonic
  uint64_t watermark = 0;
  size_t filling = 0;  // bytes
};

// Where a block is, and what it says (ns since 1970).
struct Slow {
  size_t offset = 0;
  size_t end = 0;
  BlockTimes times;
};

class TimeSeekTest : public testing::Test {
 protected:
  void Add(const Told& told) {
    for (const uint64_t time : told.times) {
      Event event;
      event.op = Op::read_;
      event.Set(Field::kTime, time);
      trace_.Add(event);
    }
    if (told.filling != 0) {
      trace_.AddRaw(999, [&](format::MessageWriter& out) {
        out.PutText(998, std::string(told.filling, 'x'));
      });
    }
    trace_.EndBlock(told.watermark);
    Slow slow;
    const auto& clock = trace_.header().clock;
    if (!told.times.empty()) {
      slow.times.first_ns = clock.ToReal(*std::ranges::min_element(told.times));
      slow.times.last_ns = clock.ToReal(*std::ranges::max_element(told.times));
    }
    const uint64_t last =
        told.times.empty() ? 0 : *std::ranges::max_element(told.times);
    const uint64_t age = std::max(last, told.watermark);
    if (age == 0) return;  // nobody can tell when it was
    slow.times.age_ns = clock.ToReal(age);
    slow.times.late_ns = age - told.watermark;
    slow.offset = trace_.frame_offsets().back();
    blocks_.push_back(slow);
  }
  // Before any question.
  void End() {
    bytes_ = trace_.bytes();
    begin_ = trace_.frame_offsets().front();
    for (Slow& slow : blocks_) {
      const auto& offsets = trace_.frame_offsets();
      const auto next =
          std::upper_bound(offsets.begin(), offsets.end(), slow.offset);
      slow.end = next == offsets.end() ? bytes_.size() : *next;
    }
  }

  // Asks with short reads, too.
  template <typename Ask>
  auto With(const Ask& ask, size_t limit = SIZE_MAX) {
    MemorySource source(AsBytes(bytes_), limit);
    const auto decoder = format::MakePlainDecoder({});
    EXPECT_TRUE(decoder.ok());
    TimeSeek seek(&source, decoder->get(), trace_.serial());
    auto answer = ask(seek);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return *answer;
  }
  std::optional<FoundBlock> After(uint64_t offset, uint64_t end,
                                  size_t limit = SIZE_MAX) {
    return With([&](TimeSeek& seek) { return seek.BlockAfter(offset, end); },
                limit);
  }
  uint64_t Find(uint64_t real_ns) {
    return With([&](TimeSeek& seek) {
      return seek.Find(real_ns, begin_, bytes_.size());
    });
  }

  // That nothing that began then or later is before it, and that it is a
  // place to read from.
  void ExpectFinds(uint64_t real_ns) {
    const uint64_t found = Find(real_ns);
    for (const Slow& slow : blocks_) {
      if (slow.offset >= found) break;
      ASSERT_LT(slow.times.last_ns, real_ns) << found << ' ' << slow.offset;
    }
    ASSERT_TRUE(found == begin_ ||
                std::ranges::count(trace_.frame_offsets(), found) == 1)
        << found;
  }

  uint64_t RealOf(uint64_t monotonic) {
    return trace_.header().clock.ToReal(monotonic);
  }

  TraceBuilder trace_;
  std::vector<Slow> blocks_;  // those that say when they are
  std::string bytes_;
  size_t begin_ = 0;
};

void ExpectSame(const std::optional<FoundBlock>& found, const Slow& slow) {
  ASSERT_TRUE(found) << slow.offset;
  EXPECT_EQ(found->offset, slow.offset);
  EXPECT_EQ(found->end, slow.end);
  EXPECT_EQ(found->times.first_ns, slow.times.first_ns);
  EXPECT_EQ(found->times.last_ns, slow.times.last_ns);
  EXPECT_EQ(found->times.age_ns, slow.times.age_ns);
  EXPECT_EQ(found->times.late_ns, slow.times.late_ns);
}

TEST_F(TimeSeekTest, TheBlockAtOrAfterEveryByte) {
  Add({.times = {kStart}, .watermark = kStart});
  Add({.times = {}, .watermark = 0});  // tells no time: passed over
  Add({.times = {}, .watermark = kStart + 5});
  Add({.times = {kStart + 9, kStart + 3}, .watermark = kStart + 2});
  trace_.AppendFrame("not messages", /*kind=*/77);
  Add({.times = {kStart + 20}, .watermark = kStart + 30});
  End();
  for (size_t from = begin_; from <= bytes_.size(); ++from) {
    const auto found = After(from, bytes_.size(), 1 + from % 50);
    const auto slow = std::ranges::find_if(
        blocks_, [&](const Slow& one) { return one.offset >= from; });
    if (slow == blocks_.end()) {
      ASSERT_FALSE(found) << from;
    } else {
      ExpectSame(found, *slow);
    }
  }
  // `end` is where a block must begin before.
  for (const Slow& slow : blocks_) {
    const auto same = After(slow.offset, slow.offset + 1);
    ExpectSame(same, slow);
    EXPECT_FALSE(After(slow.offset, slow.offset));
  }
}

// Frames are looked for 64 KiB at a time; a magic may lie across that.
TEST_F(TimeSeekTest, AMagicAcrossTheWindowIsFound) {
  for (const size_t about : {size_t{64} << 10, size_t{128} << 10}) {
    for (int beside = -48; beside <= 8; ++beside) {
      trace_ = TraceBuilder();
      blocks_.clear();
      Add({.times = {kStart},
           .watermark = kStart,
           .filling = about + static_cast<size_t>(200 + beside)});
      Add({.times = {kStart + 7}, .watermark = kStart + 7});
      End();
      // From within the first one.
      const uint64_t from = blocks_[1].offset - about -
                            static_cast<uint64_t>(static_cast<int64_t>(beside));
      ExpectSame(After(from, bytes_.size()), blocks_[1]);
      // Where it is larger than the window, too.
      ExpectSame(After(blocks_[0].offset, bytes_.size()), blocks_[0]);
    }
  }
}

TEST_F(TimeSeekTest, Malicious_WhatLooksLikeAFrameWithinABlockIsNone) {
  const std::string magic(format::kFrameMagic.begin(),
                          format::kFrameMagic.end());
  Add({.times = {kStart}, .watermark = kStart});
  trace_.AddRaw(999, [&](format::MessageWriter& out) {
    out.PutText(998, magic + magic + magic + std::string(60, '\0') + magic);
  });
  Add({.times = {kStart + 1}, .watermark = kStart + 1});
  Add({.times = {kStart + 2}, .watermark = kStart + 2});
  End();
  for (size_t from = blocks_[1].offset + 1; from <= blocks_[2].offset; ++from) {
    ExpectSame(After(from, bytes_.size()), blocks_[2]);
  }
  // A damaged one is passed over as well.
  bytes_[blocks_[1].end - 1] ^= 1;
  ExpectSame(After(blocks_[1].offset, bytes_.size()), blocks_[2]);
  // A block cut short at the end of the file is none.
  bytes_.resize(blocks_[2].end - 1);
  EXPECT_FALSE(After(blocks_[2].offset, bytes_.size()));
}

TEST_F(TimeSeekTest, TheLastBlockWithOperations) {
  for (int i = 0; i < 40; ++i) {
    Add({.times = {kStart + static_cast<uint64_t>(i)},
         .watermark = kStart + static_cast<uint64_t>(i),
         .filling = static_cast<size_t>(i % 7) * 3000});
  }
  for (int i = 0; i < 30; ++i) {
    Add({.watermark = kStart + 1000 + static_cast<uint64_t>(i),
         .filling = i == 3 ? size_t{200} << 10 : size_t{9000}});
  }
  End();
  const auto last = [&](uint64_t begin, uint64_t end) {
    return With([&](TimeSeek& seek) { return seek.LastBlock(begin, end); });
  };
  for (size_t at = 0; at < 40; ++at) {
    // Before each of them: the one before.
    const auto found = last(begin_, blocks_[at].offset);
    if (at == 0) {
      EXPECT_FALSE(found);
    } else {
      ExpectSame(found, blocks_[at - 1]);
    }
    // At the beginning of a range, alone with all that has no operations.
    ExpectSame(last(blocks_[at].offset, bytes_.size()), blocks_[39]);
  }
  EXPECT_FALSE(last(blocks_[39].offset + 1, bytes_.size()));
}

TEST_F(TimeSeekTest, SpansOfOverlappingBlocks) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    trace_ = TraceBuilder();
    blocks_.clear();
    uint64_t now = kStart;
    const int blocks = static_cast<int>(random() % 30);
    for (int i = 0; i < blocks; ++i) {
      now += random() % 3'000'000;
      Told told = {.watermark = now - std::min<uint64_t>(now - kStart,
                                                         random() % 9'000'000),
                   .filling = random() % 4 == 0 ? random() % 30'000 : 0};
      const size_t times = random() % 4;
      for (size_t t = 0; t < times; ++t) {
        told.times.push_back(told.watermark + random() % 9'000'000);
      }
      Add(told);
    }
    End();
    const auto span =
        With([&](TimeSeek& seek) { return seek.Span(begin_, bytes_.size()); });
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    for (const Slow& slow : blocks_) {
      if (slow.times.last_ns == 0) continue;
      first = std::min(first, slow.times.first_ns);
      last = std::max(last, slow.times.last_ns);
    }
    ASSERT_EQ(span.has_value(), last != 0);
    if (!span) continue;
    EXPECT_EQ(span->first_ns, first) << round;
    EXPECT_EQ(span->last_ns, last) << round;
  }
}

// Most of a long trace is not looked at: what tells where its first operation
// is are the watermarks at its front.
TEST_F(TimeSeekTest, TheSpanOfALongTraceHasWhatComesLateAtItsFront) {
  for (const size_t late_block : {size_t{0}, size_t{1}, size_t{7}}) {
    trace_ = TraceBuilder();
    blocks_.clear();
    for (size_t i = 0; i < 400; ++i) {
      const uint64_t now = kStart + i * 1'000'000;
      // Until it has come, nothing promises that nothing older will.
      Add({.times = {i == late_block ? kStart - 400'000'000 : now},
           .watermark = i < late_block ? kStart - 500'000'000 : now,
           .filling = 8000});
    }
    End();
    const auto span =
        With([&](TimeSeek& seek) { return seek.Span(begin_, bytes_.size()); });
    ASSERT_TRUE(span);
    EXPECT_EQ(span->first_ns, RealOf(kStart - 400'000'000)) << late_block;
    EXPECT_EQ(span->last_ns, RealOf(kStart + 399'000'000));
  }
}

// Long enough for bisection, with blocks that are late by as much as they show.
TEST_F(TimeSeekTest, FindsEveryMoment) {
  for (const uint64_t step :
       {uint64_t{100'000}, uint64_t{10'000'000}, uint64_t{150'000'000}}) {
    trace_ = TraceBuilder();
    blocks_.clear();
    std::mt19937_64 random(step);
    uint64_t now = kStart;
    std::vector<uint64_t> moments;
    for (int i = 0; i < 500; ++i) {
      // Now and then nothing happens for a while.
      now += random() % step + (random() % 50 == 0 ? 400 * step : 0);
      const uint64_t late = random() % (4 * step);
      Told told = {.watermark = now, .filling = 2000 + random() % 12'000};
      for (int t = 0; t < 3; ++t)
        told.times.push_back(now + random() % (late + 1));
      moments.push_back(told.times[random() % 3]);
      Add(told);
    }
    End();
    ASSERT_GT(bytes_.size(), size_t{2} << 20);
    for (size_t i = 0; i < moments.size(); i += 7) {
      ExpectFinds(RealOf(moments[i]));
      ExpectFinds(RealOf(moments[i]) + 1);
    }
    ExpectFinds(0);
    ExpectFinds(RealOf(kStart) - 1);
    ExpectFinds(UINT64_MAX);
    // What is early is read from the beginning, what is late not.
    EXPECT_EQ(Find(0), begin_);
    EXPECT_EQ(Find(RealOf(kStart)), begin_);
    EXPECT_GT(Find(UINT64_MAX), bytes_.size() / 2);
  }
}

// It reads on from near the moment: what is not late is not looked for.
TEST_F(TimeSeekTest, WhatIsInOrderIsFoundClosely) {
  constexpr uint64_t kStep = 20'000'000;
  for (uint64_t i = 0; i < 1500; ++i) {
    Add({.times = {kStart + i * kStep},
         .watermark = kStart + i * kStep,
         .filling = 3000});
  }
  End();
  const size_t block = blocks_[1].offset - blocks_[0].offset;
  for (size_t i = 0; i < blocks_.size(); i += 31) {
    const uint64_t found = Find(blocks_[i].times.first_ns);
    ASSERT_LE(found, blocks_[i].offset);
    // Bisection ends within 128 KiB, once at the moment and once at what may be
    // late.
    ASSERT_LE(blocks_[i].offset - found, (size_t{256} << 10) + 2 * block) << i;
  }
}

// A file that cannot be read is an error, not an empty one.
TEST_F(TimeSeekTest, ErrorsOfTheSourceAreTold) {
  class Broken final : public format::ByteSource {
   public:
    Result<size_t> Read(std::span<std::byte>) override { return Bad(); }
    std::optional<uint64_t> Size() override { return 1 << 20; }
    Result<size_t> ReadAt(uint64_t, std::span<std::byte>) override {
      return Bad();
    }
    static Status Bad() { return Status::System(EIO, "the disk"); }
  };
  Broken broken;
  const auto decoder = format::MakePlainDecoder({});
  TimeSeek seek(&broken, decoder->get(), trace_.serial());
  constexpr uint64_t kEnd = 4 << 20;
  EXPECT_EQ(seek.BlockAfter(0, kEnd).status().error(), EIO);
  EXPECT_EQ(seek.Find(1, 0, kEnd).status().error(), EIO);
  EXPECT_EQ(seek.Find(1, 0, 1000).status().error(), 0);  // nothing to look at
  EXPECT_EQ(seek.LastBlock(0, kEnd).status().error(), EIO);
  EXPECT_EQ(seek.Span(0, kEnd).status().error(), EIO);
}

}  // namespace
}  // namespace tracefs
