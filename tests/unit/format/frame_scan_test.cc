// FrameScan against a plain walk over the same bytes: every end, every damaged
// byte, and frames longer than its window.
#include "tracefs/format/frame_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/fake_trace.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

using format::FrameScan;
using test::FakeTrace;

class FrameScanTest : public testing::Test {
 protected:
  // All steps over a file of these bytes, from `at` on; the last one is no
  // frame.
  struct Passed {
    size_t frames = 0;
    FrameScan::Step last = FrameScan::Step::kFrame;
    uint64_t at = 0;
    uint64_t left = 0;
    uint64_t next = 0;
  };
  Passed Scan(const std::string& bytes, const FakeTrace& trace,
              bool check_payload, uint64_t at = 0, uint64_t next = 0) {
    const UniqueFd fd(
        ::open(folder_.Write("frames", bytes).c_str(), O_RDONLY | O_CLOEXEC));
    FrameScan scan(fd.get(), at, bytes.size(), trace.serial(), next);
    Passed passed;
    for (;;) {
      const Result<FrameScan::Step> step = scan.Next(check_payload);
      EXPECT_TRUE(step.ok()) << step.status().message();
      passed.last = step.ok() ? *step : FrameScan::Step::kDamaged;
      if (passed.last != FrameScan::Step::kFrame) break;
      ++passed.frames;
    }
    passed.at = scan.at();
    passed.left = scan.left();
    passed.next = scan.next();
    return passed;
  }

  TempFolder folder_;
};

TEST_F(FrameScanTest, DataLoss_CutAnywhereItPassesWhatIsWhole) {
  const FakeTrace trace(1, 25);
  const std::string whole = trace.Frame(3) + trace.Frame(4) + trace.Frame(9);
  const size_t frame = trace.Frame(3).size();
  const uint64_t nexts[] = {2, 4, 5, 10};
  for (size_t end = 0; end <= whole.size(); ++end) {
    for (const bool check : {false, true}) {
      const Passed passed = Scan(whole.substr(0, end), trace, check, 0, 2);
      ASSERT_EQ(passed.frames, end / frame) << end;
      ASSERT_EQ(passed.last, FrameScan::Step::kCut) << end;
      ASSERT_EQ(passed.at, end / frame * frame) << end;
      ASSERT_EQ(passed.left, end % frame) << end;
      ASSERT_EQ(passed.next, nexts[end / frame]) << end;
    }
  }
}

TEST_F(FrameScanTest, DataLoss_EveryDamagedByteOfAFrameEndsTheScan) {
  const FakeTrace trace(1, 25);
  const std::string first = trace.Frame(0);
  const std::string second = trace.Frame(1);
  for (size_t n = 0; n < second.size(); ++n) {
    std::string bytes = first + second + trace.Frame(2);
    bytes[first.size() + n] ^= 0x10;
    const Passed passed = Scan(bytes, trace, /*check_payload=*/true);
    ASSERT_EQ(passed.frames, 1u) << n;
    ASSERT_NE(passed.last, FrameScan::Step::kFrame) << n;
    ASSERT_EQ(passed.at, first.size()) << n;
    ASSERT_EQ(passed.next, 1u) << n;
  }
  // Payloads are not read where nobody asks for it.
  std::string bytes = first + second + trace.Frame(2);
  bytes[first.size() + format::kFrameHeaderBytes] ^= 0x10;
  EXPECT_EQ(Scan(bytes, trace, /*check_payload=*/false).frames, 3u);
}

TEST_F(FrameScanTest, DataLoss_BehindDamageTheNextFrameIsFound) {
  for (const size_t payload : {size_t{25}, size_t{16360}, size_t{40'000}}) {
    const FakeTrace trace(1, payload);
    const FakeTrace other(2, payload);
    const size_t size = trace.Frame(0).size();
    // A frame of another trace, and one that came before, are none.
    const std::string good = trace.Frame(0) + trace.Frame(1) + other.Frame(7) +
                             trace.Frame(0) + trace.Frame(2);
    for (size_t n = 0; n <= format::kFrameHeaderBytes; ++n) {
      std::string bytes = good;
      bytes[size + n] ^= 0x10;
      const UniqueFd fd(
          ::open(folder_.Write("frames", bytes).c_str(), O_RDONLY | O_CLOEXEC));
      FrameScan scan(fd.get(), 0, bytes.size(), trace.serial(), 0);
      ASSERT_EQ(*scan.Next(true), FrameScan::Step::kFrame);
      ASSERT_NE(*scan.Next(true), FrameScan::Step::kFrame) << n;
      ASSERT_TRUE(*scan.Skip()) << n;
      ASSERT_EQ(scan.at(), 4 * size) << n;
      ASSERT_EQ(*scan.Next(true), FrameScan::Step::kFrame);
      ASSERT_EQ(scan.next(), 3u);
      ASSERT_EQ(*scan.Next(true), FrameScan::Step::kCut);
      ASSERT_FALSE(*scan.Skip());
      ASSERT_EQ(scan.left(), 0u);
    }
  }
}

// Its window is 16 KiB.
TEST_F(FrameScanTest, FramesOfEverySizeAboutTheWindow) {
  for (const size_t payload :
       {size_t{0}, size_t{1}, size_t{16343}, size_t{16344}, size_t{16345},
        size_t{16384}, size_t{32728}, size_t{100'000}}) {
    const FakeTrace trace(1, payload);
    const std::string whole = trace.Frame(0) + trace.Frame(1) + trace.Frame(2);
    for (const bool check : {false, true}) {
      const Passed passed = Scan(whole, trace, check);
      EXPECT_EQ(passed.frames, 3u) << payload;
      EXPECT_EQ(passed.last, FrameScan::Step::kCut) << payload;
      EXPECT_EQ(passed.left, 0u) << payload;
    }
    if (payload == 0) continue;
    std::string damaged = whole;
    damaged[2 * trace.Frame(0).size() - 1] ^= 1;  // the last byte of the second
    EXPECT_EQ(Scan(damaged, trace, true).frames, 1u) << payload;
    EXPECT_EQ(Scan(damaged, trace, true).last, FrameScan::Step::kDamaged);
  }
}

TEST_F(FrameScanTest, BeginsWhereItIsTold) {
  const FakeTrace trace(1, 40);
  const std::string bytes = "before it " + trace.Frame(7) + trace.Frame(8);
  const Passed passed = Scan(bytes, trace, true, /*at=*/10, /*next=*/7);
  EXPECT_EQ(passed.frames, 2u);
  EXPECT_EQ(passed.at, bytes.size());
  EXPECT_EQ(passed.next, 9u);
}

TEST_F(FrameScanTest, Malicious_NumbersGrowAndFramesAreOfTheTrace) {
  const FakeTrace trace(1, 40);
  const auto frames = [&](const std::string& bytes, uint64_t next) {
    const Passed passed = Scan(bytes, trace, true, 0, next);
    EXPECT_EQ(passed.last == FrameScan::Step::kDamaged, passed.left != 0);
    return passed.frames;
  };
  EXPECT_EQ(frames(trace.Frame(5), 5), 1u);
  EXPECT_EQ(frames(trace.Frame(5), 6), 0u);
  EXPECT_EQ(frames(trace.Frame(5) + trace.Frame(5), 0), 1u);
  EXPECT_EQ(frames(trace.Frame(5) + trace.Frame(4), 0), 1u);
  EXPECT_EQ(frames(trace.Frame(5) + trace.Frame(6), 0), 2u);
  EXPECT_EQ(frames(FakeTrace(2, 40).Frame(0), 0), 0u);
  // What follows the highest number has none.
  EXPECT_EQ(frames(trace.Frame(UINT64_MAX - 1) + trace.Frame(UINT64_MAX), 0),
            1u);
}

TEST_F(FrameScanTest, WhatCannotBeReadIsAnError) {
  const FakeTrace trace(1, 40);
  const std::string path = folder_.Write("short", trace.Frame(0));
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // It was longer a moment ago.
  FrameScan scan(fd.get(), 0, 2 * trace.Frame(0).size(), trace.serial(), 0);
  const Result<FrameScan::Step> step = scan.Next(true);
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.status().code(), StatusCode::kSystem);
}

}  // namespace
}  // namespace tracefs
