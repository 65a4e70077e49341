// The file of a trace after its receiver was killed, at every byte.
#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/net_world.h"
#include "tests/unit/recv/failing_sync.h"

namespace tracefs {
namespace {

using test::FakeTrace;

// Finds its end, in one go.
Status Find(StoredTrace& trace) {
  if (Status s = trace.Begin(nullptr); !s.ok() || trace.scanned()) return s;
  return trace.ScanUntil(std::chrono::steady_clock::time_point::max());
}

class StoredTraceTest : public testing::Test {
 protected:
  StoredTrace Make(const FakeTrace& trace) const {
    return {directory_.get(), "t.trace", trace.preamble(), trace.serial()};
  }
  std::string Read() const { return TempFolder::Read(folder_.Path("t.trace")); }

  const FakeTrace trace_{1, 50};
  const TempFolder folder_;
  const UniqueFd directory_{
      ::open(folder_.Path(".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(StoredTraceTest, GoesOnBehindTheLastWholeFrameWhereverItWasCut) {
  const std::string file = trace_.File(3);
  for (size_t n = 0; n <= file.size(); ++n) {
    folder_.Write("t.trace", file.substr(0, n));
    StoredTrace stored = Make(trace_);
    ASSERT_TRUE(Find(stored).ok());
    const uint64_t next = stored.next();
    ASSERT_EQ(Read(), trace_.File(next)) << n;
    if (n < file.size()) {
      // No more is thrown away than a part of a frame.
      ASSERT_LT(n, trace_.File(next + 1).size()) << n;
    }
    const std::string more = trace_.Frame(next);
    ASSERT_TRUE(stored.Append(AsBytes(more), more.size(), next + 1).ok());
    ASSERT_EQ(Read(), trace_.File(next + 1)) << n;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("t.trace.rest-1")));
}

// No block can follow it: a sender would be asked to start over.
TEST_F(StoredTraceTest, Malicious_TheHighestNumberIsDamage) {
  const std::string bad = trace_.Frame(UINT64_MAX) + trace_.Frame(0);
  folder_.Write("t.trace", trace_.File(2) + bad);
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  EXPECT_EQ(stored.next(), 2u);
  EXPECT_EQ(Read(), trace_.File(2));
  EXPECT_EQ(TempFolder::Read(folder_.Path("t.trace.rest-1")), bad);
}

TEST_F(StoredTraceTest, DamageIsCutOffAndKept) {
  std::string file = trace_.File(4);
  const size_t second = trace_.File(1).size();
  file[second + 60] = static_cast<char>(file[second + 60] ^ 1);
  folder_.Write("t.trace", file);
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  EXPECT_EQ(stored.next(), 1u);
  EXPECT_EQ(Read(), trace_.File(1));
  EXPECT_EQ(TempFolder::Read(folder_.Path("t.trace.rest-1")),
            file.substr(second));
}

TEST_F(StoredTraceTest, ThereIsNoFileBeforeSomethingComesAndNoneIfNothingDoes) {
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  EXPECT_FALSE(stored.exists());
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("t.trace")));
  ASSERT_TRUE(stored.Append(AsBytes(trace_.Frame(0)).first(10), 0, 0).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_.Path("t.trace")));
  stored.Abandon();
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("t.trace")));
}

TEST_F(StoredTraceTest, WhatIsNotWholeGoes) {
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  const std::string frames = trace_.Frame(0) + trace_.Frame(1);
  ASSERT_TRUE(stored
                  .Append(AsBytes(frames).first(frames.size() - 1),
                          trace_.Frame(0).size(), 1)
                  .ok());
  stored.Abandon();
  EXPECT_EQ(Read(), trace_.File(1));
}

// A length that claims more than there is looks as a cut does.
TEST_F(StoredTraceTest, DataLoss_WhatFollowsAWrongLengthIsKept) {
  std::string file = trace_.File(4);
  const size_t second = trace_.File(1).size();
  file[second + 6] = static_cast<char>(file[second + 6] ^ 1);
  folder_.Write("t.trace", file);
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  EXPECT_EQ(Read(), trace_.File(1));
  EXPECT_EQ(TempFolder::Read(folder_.Path("t.trace.rest-1")),
            file.substr(second));
}

// The kernel says it once, and then takes for written what never was: the
// sender is to send it again.
TEST_F(StoredTraceTest, DataLoss_WhatAFailedSyncMayHaveLostIsNotThere) {
  for (const uint64_t synced : {0u, 3u}) {
    std::filesystem::remove(folder_.Path("t.trace"));
    StoredTrace stored = Make(trace_);
    ASSERT_TRUE(Find(stored).ok());
    uint64_t next = 0;
    const auto append = [&](uint64_t end) {
      while (next < end) {
        const std::string frame = trace_.Frame(next);
        ASSERT_TRUE(stored.Append(AsBytes(frame), frame.size(), ++next).ok());
      }
    };
    append(synced);
    if (synced != 0) {
      ASSERT_TRUE(stored.Sync().ok());
    }
    append(synced + 2);
    test::failing_syncs = 1;
    EXPECT_EQ(stored.Sync().error(), EIO);
    EXPECT_TRUE(Read() == trace_.File(synced));
    EXPECT_EQ(stored.next(), synced);
    // Nor does it go on as if nothing had been.
    EXPECT_EQ(stored.Sync().error(), EIO);
    EXPECT_EQ(stored.Append(AsBytes(trace_.Frame(next)), 1, next + 1).error(),
              EIO);
    EXPECT_EQ(stored.Known().at, 0u);
    stored.Abandon();
    StoredTrace again = Make(trace_);
    ASSERT_TRUE(Find(again).ok());
    EXPECT_EQ(again.next(), synced);
  }
}

TEST_F(StoredTraceTest, Malicious_AnotherTraceOfThatNameIsLeftAlone) {
  const std::string other = FakeTrace(2, 50).File(2);
  folder_.Write("t.trace", other);
  StoredTrace stored = Make(trace_);
  EXPECT_EQ(Find(stored).code(), StatusCode::kInvalid);
  EXPECT_EQ(Read(), other);
}

// What it leads to would be taken for the trace, and cut.
TEST_F(StoredTraceTest, Malicious_ASymbolicLinkIsNotFollowed) {
  const std::string victim = trace_.File(2) + "more";
  folder_.Write("victim", victim);
  std::filesystem::create_symlink("victim", folder_.Path("t.trace"));
  StoredTrace stored = Make(trace_);
  EXPECT_EQ(Find(stored).error(), ELOOP);
  EXPECT_EQ(TempFolder::Read(folder_.Path("victim")), victim);
}

// Blocks that come again, or in another order, are not part of a trace: readers
// would skip them, and a sender would be told a number that is not true.
TEST_F(StoredTraceTest, DataLoss_BlocksOutOfOrderAreCutOffAndKept) {
  for (const uint64_t last : {0U, 1U, 2U}) {
    const std::string end = trace_.Frame(last) + trace_.Frame(3);
    folder_.Write("t.trace", trace_.File(3) + end);
    StoredTrace stored = Make(trace_);
    ASSERT_TRUE(Find(stored).ok());
    EXPECT_EQ(stored.next(), 3u) << last;
    EXPECT_TRUE(Read() == trace_.File(3)) << last;
    const std::string rest = "t.trace.rest-" + std::to_string(last + 1);
    EXPECT_TRUE(TempFolder::Read(folder_.Path(rest)) == end) << last;
  }
}

// --- What was looked through once.

using Clock = std::chrono::steady_clock;

TEST_F(StoredTraceTest, AFileThatIsAsItWasIsNotLookedThroughAgain) {
  folder_.Write("t.trace", trace_.File(100));
  StoredTrace first = Make(trace_);
  ASSERT_TRUE(Find(first).ok());
  const std::string more = trace_.Frame(100);
  ASSERT_TRUE(first.Append(AsBytes(more), more.size(), 101).ok());
  const KnownEnd known = first.Known();

  StoredTrace again = Make(trace_);
  ASSERT_TRUE(again.Begin(&known).ok());
  EXPECT_TRUE(again.scanned());
  EXPECT_EQ(again.next(), 101u);
  EXPECT_EQ(again.size(), trace_.File(101).size());
}

TEST_F(StoredTraceTest, AFileThatHasChangedIsLookedThroughAgain) {
  const std::string whole = trace_.File(3);
  folder_.Write("t.trace", whole);
  StoredTrace first = Make(trace_);
  ASSERT_TRUE(Find(first).ok());
  const KnownEnd known = first.Known();
  std::string damaged = whole;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  for (const std::string& now :
       {damaged, whole + trace_.Frame(3), whole.substr(0, whole.size() - 1)}) {
    std::filesystem::remove(folder_.Path("t.trace"));
    folder_.Write("t.trace", now);
    StoredTrace again = Make(trace_);
    ASSERT_TRUE(again.Begin(&known).ok());
    EXPECT_FALSE(again.scanned());
    ASSERT_TRUE(again.ScanUntil(Clock::time_point::max()).ok());
    EXPECT_EQ(again.next(), now.size() > whole.size() ? 4u : 2u);
  }
}

// So that a huge file is not begun again by each of many connections.
TEST_F(StoredTraceTest, GoesOnWhereSomeoneElseStoppedLooking) {
  folder_.Write("t.trace", trace_.File(50) + "rest");
  KnownEnd known;
  int turns = 0;
  for (bool done = false; !done; ++turns) {
    ASSERT_LT(turns, 60);
    StoredTrace stored = Make(trace_);
    ASSERT_TRUE(stored.Begin(&known).ok());
    // A turn that is over already still gets one frame further.
    ASSERT_TRUE(stored.ScanUntil(Clock::now()).ok());
    done = stored.scanned();
    known = stored.Known();
  }
  EXPECT_EQ(turns, 51);
  EXPECT_EQ(known.next, 50u);
  EXPECT_TRUE(Read() == trace_.File(50));
}

TEST_F(StoredTraceTest, FramesOfAllSizesAreFound) {
  std::string file = trace_.preamble();
  uint64_t next = 0;
  for (const size_t payload : {0U, 1U, 16'000U, 16'344U, 16'345U, 0U, 300'000U,
                               1'000'000U, 0U, 20'000U}) {
    file += FakeTrace(1, payload).Frame(next++);
  }
  folder_.Write("t.trace", file);
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(Find(stored).ok());
  EXPECT_EQ(stored.next(), next);
  EXPECT_EQ(stored.size(), file.size());
}

TEST_F(StoredTraceTest, Malicious_AFileOfOthersIsNotGoneOnWith) {
  const std::string path = folder_.Write("t.trace", trace_.File(1));
  const auto refusal = [&] {
    StoredTrace stored = Make(trace_);
    return Find(stored).message();
  };
  EXPECT_EQ(refusal(), "ok");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_NE(refusal().find("can be written by others"), std::string::npos);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(::link(path.c_str(), folder_.Path("second").c_str()), 0);
  EXPECT_NE(refusal().find("2 names"), std::string::npos);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::symlink("second", path.c_str()), 0);
  EXPECT_NE(refusal(), "ok");
  EXPECT_EQ(TempFolder::Read(folder_.Path("second")), trace_.File(1));
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::rename(folder_.Path("second").c_str(), path.c_str()), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("belongs to user 65534"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
