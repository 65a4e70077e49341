// The socket between tracefs-run and its mount, each end beside one that lies.
#include "tracefs/mount/process_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace tracefs {
namespace {

using std::chrono::milliseconds;

class NoSink final : public ProcessSink {
 public:
  ProcessNeeds Wanted() const override { return {}; }
  void Take(const ProcessRecord& /*record*/) override {}
  void HoldBack(uint64_t /*since_ns*/) override {}
  void NoteOverrun(uint64_t /*count*/, uint64_t /*first_ns*/,
                   uint64_t /*last_ns*/) override {}
};

std::unique_ptr<ProcessFeed> Feed() {
  auto feed = ProcessFeed::Create();
  return feed.ok() ? *std::move(feed) : nullptr;
}

TEST(ProcessFeedTest, Malicious_AMountThatDoesNotAnswerKeepsNobody) {
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  EXPECT_FALSE(feed->EndTraces(milliseconds(10)));
}

TEST(ProcessFeedTest, AMountThatIsGoneKeepsNobody) {
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  feed->BecomeSender();
  EXPECT_FALSE(feed->EndTraces(std::chrono::hours(1)));
}

TEST(ProcessFeedTest, Malicious_TracesEndOnceHoweverOftenThatIsSaid) {
  NoSink sink;
  std::atomic<int> ends = 0;
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  ASSERT_TRUE(
      feed->Start(sink, {.end_traces = [&] { ++ends; }, .abandoned = {}}).ok());
  EXPECT_TRUE(feed->EndTraces(std::chrono::hours(1)));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(feed->EndTraces(milliseconds(0)));
  }
  feed->SayGoodbye();
  feed->Close();
  feed->Stop();
  EXPECT_EQ(ends, 1);
}

TEST(ProcessFeedTest, WhatIsAddedAtTheEndIsTakenBeforeTheTracesEnd) {
  NoSink sink;
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  feed->WillAdd();
  std::string taken;
  ASSERT_TRUE(
      feed->Start(sink,
                  {.end_traces = {},
                   .flush = [&] { taken += "flush "; },
                   .add = [&](ByteSpan messages) { taken += AsText(messages); },
                   .abandoned = {}})
          .ok());
  feed->SayGoodbye();
  feed->Stop();
  std::thread sender([&] {
    EXPECT_TRUE(feed->AwaitFlushed(/*go_on=*/false, std::chrono::hours(1)));
    feed->SendMessages(AsBytes("one "));
    EXPECT_TRUE(feed->FlushSent(std::chrono::hours(1)));
    feed->SendMessages(AsBytes(std::string(size_t{1} << 20, 'x')));
    feed->Close();
  });
  feed->TakeMessagesAtEnd();
  sender.join();
  EXPECT_EQ(taken, "flush one flush " + std::string(size_t{1} << 20, 'x'));
}

TEST(ProcessFeedTest, NobodyWaitsForWhatNobodyAnnounced) {
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  feed->TakeMessagesAtEnd();
}

TEST(ProcessFeedTest, AMountThatIsGoneTakesNothing) {
  const auto feed = Feed();
  ASSERT_NE(feed, nullptr);
  feed->WillAdd();
  feed->BecomeSender();
  EXPECT_FALSE(feed->AwaitFlushed(/*go_on=*/false, std::chrono::hours(1)));
  feed->SendMessages(AsBytes("nobody"));
  EXPECT_FALSE(feed->FlushSent(std::chrono::hours(1)));
}

}  // namespace
}  // namespace tracefs
