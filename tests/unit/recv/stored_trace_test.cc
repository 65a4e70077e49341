// The file of a trace after its receiver was killed, at every byte.
#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/net_world.h"

namespace tracefs {
namespace {

using test::FakeTrace;

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
    ASSERT_TRUE(stored.Find().ok());
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

TEST_F(StoredTraceTest, DamageIsCutOffAndKept) {
  std::string file = trace_.File(4);
  const size_t second = trace_.File(1).size();
  file[second + 60] = static_cast<char>(file[second + 60] ^ 1);
  folder_.Write("t.trace", file);
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(stored.Find().ok());
  EXPECT_EQ(stored.next(), 1u);
  EXPECT_EQ(Read(), trace_.File(1));
  EXPECT_EQ(TempFolder::Read(folder_.Path("t.trace.rest-1")),
            file.substr(second));
}

TEST_F(StoredTraceTest, ThereIsNoFileBeforeSomethingComesAndNoneIfNothingDoes) {
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(stored.Find().ok());
  EXPECT_FALSE(stored.exists());
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("t.trace")));
  ASSERT_TRUE(stored.Append(AsBytes(trace_.Frame(0)).first(10), 0, 0).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_.Path("t.trace")));
  stored.Abandon();
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("t.trace")));
}

TEST_F(StoredTraceTest, WhatIsNotWholeGoes) {
  StoredTrace stored = Make(trace_);
  ASSERT_TRUE(stored.Find().ok());
  const std::string frames = trace_.Frame(0) + trace_.Frame(1);
  ASSERT_TRUE(stored
                  .Append(AsBytes(frames).first(frames.size() - 1),
                          trace_.Frame(0).size(), 1)
                  .ok());
  stored.Abandon();
  EXPECT_EQ(Read(), trace_.File(1));
}

TEST_F(StoredTraceTest, Malicious_AnotherTraceOfThatNameIsLeftAlone) {
  const std::string other = FakeTrace(2, 50).File(2);
  folder_.Write("t.trace", other);
  StoredTrace stored = Make(trace_);
  EXPECT_EQ(stored.Find().code(), StatusCode::kInvalid);
  EXPECT_EQ(Read(), other);
}

TEST_F(StoredTraceTest, Malicious_ASymbolicLinkIsNotFollowed) {
  folder_.Write("victim", "text");
  std::filesystem::create_symlink("victim", folder_.Path("t.trace"));
  StoredTrace stored = Make(trace_);
  EXPECT_FALSE(stored.Find().ok());
  EXPECT_EQ(TempFolder::Read(folder_.Path("victim")), "text");
}

}  // namespace
}  // namespace tracefs
