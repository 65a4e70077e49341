// Sums and steps against slow models of what their headers say.
#include "tracefs/tally/sums.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>
#include <vector>

#include "tracefs/tally/access.h"

namespace tracefs::tally {
namespace {

Event Timed(Op op, int64_t result, uint64_t ns, int error = 0) {
  Event event;
  event.op = op;
  event.SetResult(result, error);
  event.Set(Field::kLatency, ns);
  return event;
}

TEST(SumsTest, OneOperationAddsWhatItIs) {
  const TimedSums read = SumsOf(Timed(Op::read_, 100, 7));
  EXPECT_EQ(read.count, 1u);
  EXPECT_EQ(read.errors, 0u);
  EXPECT_EQ(read.bytes, 100u);
  EXPECT_EQ(read.read, 100u);
  EXPECT_EQ(read.written, 0u);
  EXPECT_EQ(read.timed, 1u);
  EXPECT_EQ(read.MeanNs(), 7u);
  const TimedSums failed = SumsOf(Timed(Op::write_, 0, 7, EIO));
  EXPECT_EQ(failed.errors, 1u);
  EXPECT_EQ(failed.bytes, 0u);
  // A copy moves each byte once, and reads and writes it.
  const TimedSums copy = SumsOf(Timed(Op::copy_file_range_, 50, 7));
  EXPECT_EQ(copy.bytes, 50u);
  EXPECT_EQ(copy.read, 50u);
  EXPECT_EQ(copy.written, 50u);
}

TEST(SumsTest, WithoutADurationAnOperationIsInNoMean) {
  Event event;
  event.op = Op::read_;
  event.SetResult(1, 0);
  TimedSums sums = SumsOf(event);
  EXPECT_EQ(sums.timed, 0u);
  EXPECT_EQ(sums.MeanNs(), 0u);
  sums.Add(SumsOf(Timed(Op::read_, 1, 1000)));
  sums.Add(SumsOf(Timed(Op::read_, 1, 3000)));
  EXPECT_EQ(sums.count, 3u);
  EXPECT_EQ(sums.MeanNs(), 2000u);
  EXPECT_EQ(sums.Times().min, 1000u);
  EXPECT_EQ(sums.Times().max, 3000u);
}

TEST(SumsTest, PartsInAnyOrderAreTheWhole) {
  std::mt19937_64 random(3);
  std::vector<Event> events;
  constexpr Op kOps[] = {Op::read_, Op::write_, Op::copy_file_range_,
                         Op::lookup_};
  TimedSums whole, parts[3];
  for (int i = 0; i < 3000; ++i) {
    const Event event =
        Timed(kOps[random() % 4], static_cast<int64_t>(random() % 10'000),
              random() >> random() % 64, random() % 5 == 0 ? EIO : 0);
    whole.Add(SumsOf(event));
    parts[random() % 3].Add(SumsOf(event));
  }
  TimedSums sum;
  for (const int part : {2, 0, 1}) sum.Add(parts[part]);
  EXPECT_EQ(static_cast<const Sums&>(sum), static_cast<const Sums&>(whole));
  EXPECT_EQ(sum.timed, whole.timed);
  EXPECT_EQ(sum.min_ns, whole.min_ns);
}

TEST(SumsTest, Malicious_SumsStopAtTheTop) {
  TimedSums sums = SumsOf(Timed(Op::read_, INT64_MAX, UINT64_MAX));
  for (int i = 0; i < 4; ++i) {
    sums.Add(SumsOf(Timed(Op::read_, INT64_MAX, UINT64_MAX)));
  }
  EXPECT_EQ(sums.bytes, UINT64_MAX);
  EXPECT_EQ(sums.time_ns, UINT64_MAX);
  EXPECT_EQ(sums.max_ns, UINT64_MAX);
}

struct Move {
  uint64_t offset;
  uint64_t size;
};

// By looking at all of them again, as the words are defined.
AccessPattern SlowPattern(const std::vector<Move>& moves) {
  if (moves.size() < 2) return AccessPattern::kSingle;
  size_t consecutive = 0;
  size_t repeated = 0;
  for (size_t i = 1; i < moves.size(); ++i) {
    const Move& before = moves[i - 1];
    if (moves[i].offset == before.offset + before.size) ++consecutive;
    if (i >= 2 && moves[i].offset - before.offset ==
                      before.offset - moves[i - 2].offset) {
      ++repeated;
    }
  }
  if (10 * consecutive >= 9 * (moves.size() - 1)) {
    return AccessPattern::kSequential;
  }
  return moves.size() > 2 && 10 * repeated >= 9 * (moves.size() - 2)
             ? AccessPattern::kStrided
             : AccessPattern::kRandom;
}

TEST(AccessTest, StepsAndPatternsAreThoseOfASlowModel) {
  std::mt19937_64 random(4);
  OpenFiles<AccessRun> files;
  OpenFiles<AccessEnd> ends;
  // By handle and way: all since it was opened.
  std::map<std::pair<uint64_t, size_t>, std::vector<Move>> open;
  std::map<AccessPattern, int> patterns, slow_patterns;
  const auto closed = [&patterns](const OpenFiles<AccessRun>::Ways& ways) {
    for (const AccessRun& run : ways) {
      if (run.count() != 0) ++patterns[run.pattern()];
    }
  };
  const auto slow_close = [&](uint64_t handle) {
    for (const size_t way : {0, 1}) {
      const auto moves = open.extract({handle, way});
      if (!moves.empty()) ++slow_patterns[SlowPattern(moves.mapped())];
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t handle = random() % 8;
    Event event;
    event.Set(Field::kFh, handle);
    event.Set(Field::kInode, 100 + handle);
    if (random() % 12 == 0) {
      event.op = Op::release_;
      event.SetResult(0, 0);
      files.Take(
          event, 0, [](const Transfer&, uint64_t, AccessStep) {}, closed);
      ends.Take(
          event, 0, [](const Transfer&, uint64_t, AccessStep) {},
          [](const auto&) {});
      slow_close(handle);
      continue;
    }
    const size_t way = random() % 2;
    std::vector<Move>& moves = open[{handle, way}];
    Move move = {random() % 100'000, random() % 5000};
    // Files that are read in one way or another, by their handle.
    if (!moves.empty() && handle % 3 != 0) {
      const Move& last = moves.back();
      move.offset =
          handle % 3 == 1 ? last.offset + last.size : last.offset + 10'000;
    }
    event.op = way == 0 ? Op::read_ : Op::write_;
    event.SetResult(static_cast<int64_t>(move.size), 0);
    event.Set(Field::kOffset, move.offset);
    AccessStep expected = AccessStep::kFirst;
    if (!moves.empty()) {
      const uint64_t end = moves.back().offset + moves.back().size;
      expected = move.offset == end  ? AccessStep::kConsecutive
                 : move.offset > end ? AccessStep::kForward
                                     : AccessStep::kBackward;
    }
    moves.push_back(move);
    int calls = 0;
    const auto check = [&](const Transfer& transfer, uint64_t offset,
                           AccessStep step) {
      ++calls;
      EXPECT_EQ(transfer.bytes, move.size);
      EXPECT_EQ(offset, move.offset);
      EXPECT_EQ(step, expected) << i;
    };
    files.Take(event, 0, check, closed);
    ends.Take(event, 0, check, [](const auto&) {});
    ASSERT_EQ(calls, 2);
  }
  files.Finish(closed);
  for (uint64_t handle = 0; handle < 8; ++handle) slow_close(handle);
  EXPECT_EQ(patterns, slow_patterns);
  EXPECT_EQ(patterns.size(), kAccessPatterns);
}

TEST(AccessTest, TracesAndFilesWithoutAHandleAreToldApart) {
  OpenFiles<AccessEnd> files;
  const auto step_of = [&files](uint64_t inode, size_t trace) {
    Event event;
    event.op = Op::read_;
    event.SetResult(10, 0);
    event.Set(Field::kInode, inode);
    event.Set(Field::kOffset, 10);
    AccessStep found{};
    files.Take(
        event, trace,
        [&](const Transfer&, uint64_t, AccessStep step) { found = step; },
        [](const auto&) {});
    return found;
  };
  EXPECT_EQ(step_of(1, 0), AccessStep::kFirst);
  EXPECT_EQ(step_of(2, 0), AccessStep::kFirst);
  EXPECT_EQ(step_of(1, 1), AccessStep::kFirst);
  EXPECT_EQ(step_of(1, 0), AccessStep::kBackward);
}

TEST(AccessTest, Malicious_OpenFilesAreBounded) {
  OpenFiles<AccessEnd> files;
  Event event;
  event.op = Op::read_;
  event.SetResult(1, 0);
  event.Set(Field::kOffset, 0);
  for (uint64_t i = 0; i < OpenFiles<AccessEnd>::kMost + 7; ++i) {
    event.Set(Field::kFh, i);
    files.Take(
        event, 0, [](const Transfer&, uint64_t, AccessStep) {},
        [](const auto&) {});
  }
  EXPECT_EQ(files.not_followed(), 7u);
}

}  // namespace
}  // namespace tracefs::tally
