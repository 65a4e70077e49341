// Events over connections that come and go; the far end is a socket pair.
#include "drivers/output/feed/stream_feed.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

// Connections to hand out, and what was read from their far ends.
class Exchange {
 public:
  // Makes one more connection possible; returns its far end.
  UniqueFd Offer(int type = SOCK_STREAM) {
    std::array<int, 2> ends;
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends.data()), 0);
    std::lock_guard lock(mu_);
    offered_.emplace_back(ends[0]);
    return UniqueFd(ends[1]);
  }
  Result<UniqueFd> Take() {
    std::lock_guard lock(mu_);
    if (offered_.empty()) return Status::System(ECONNREFUSED, "connecting");
    UniqueFd fd = std::move(offered_.front());
    offered_.pop_front();
    return fd;
  }

 private:
  std::mutex mu_;
  std::deque<UniqueFd> offered_;
};

class FakeDialer final : public Dialer {
 public:
  explicit FakeDialer(Exchange& exchange) : exchange_(exchange) {}
  Result<UniqueFd> Dial(int) override { return exchange_.Take(); }

 private:
  Exchange& exchange_;
};

// Reads until `bytes` are there, or five seconds have passed.
std::string ReadBytes(const UniqueFd& fd, size_t bytes) {
  std::string text;
  for (int i = 0; i < 500 && text.size() < bytes; ++i) {
    std::array<char, 65536> part;
    const ssize_t n = ::read(fd.get(), part.data(), part.size());
    if (n > 0) {
      text.append(part.data(), static_cast<size_t>(n));
      continue;
    }
    if (n == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return text;
}

std::vector<FeedMessage> Messages(int first, int count, size_t padding = 0) {
  std::vector<FeedMessage> messages;
  for (int i = 0; i < count; ++i) {
    messages.push_back(
        {.text = std::to_string(first + i) + std::string(padding, 'x'),
         .real_ns = 1,
         .id = "read"});
  }
  return messages;
}

StreamFeedOptions Quick() {
  StreamFeedOptions options;
  options.address = {
      .transport = net::Transport::kTcp, .host = "h", .port = "1"};
  options.retry = std::chrono::milliseconds(20);
  return options;
}

std::unique_ptr<Feed> Make(const StreamFeedOptions& options,
                           Exchange& exchange) {
  return MakeStreamFeed(nullptr, options,
                        std::make_unique<FakeDialer>(exchange));
}

TEST(StreamFeedTest, EventsArriveInOrderAsLines) {
  Exchange exchange;
  const UniqueFd far = exchange.Offer();
  const auto feed = Make(Quick(), exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  ASSERT_TRUE(feed->Send(Messages(1, 3), {.events = 3}).ok());
  ASSERT_TRUE(feed->Send(Messages(4, 1), {.events = 1}).ok());
  EXPECT_EQ(ReadBytes(far, 8), "1\n2\n3\n4\n");
  EXPECT_TRUE(feed->Release().ok());
}

TEST(StreamFeedTest, AReceiverThatComesLateGetsEverything) {
  Exchange exchange;
  const auto feed = Make(Quick(), exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(feed->Send(Messages(i, 1), {.events = 1}).ok());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const UniqueFd far = exchange.Offer();
  EXPECT_EQ(ReadBytes(far, 10), "0\n1\n2\n3\n4\n");
  EXPECT_TRUE(feed->Release().ok());
}

TEST(StreamFeedTest, AMessageThatWasCutGoesAgainWhole) {
  constexpr size_t kPadding = 100'000;  // more than the socket holds at once
  Exchange exchange;
  UniqueFd far = exchange.Offer();
  const auto feed = Make(Quick(), exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  const auto messages = Messages(1, 8, kPadding);
  ASSERT_TRUE(feed->Send(messages, {.events = 8}).ok());
  // Some whole messages and a part of one.
  const std::string before = ReadBytes(far, 250'000);
  far.Reset();
  far = exchange.Offer();
  std::string after;
  for (int i = 0; i < 20 && after.find("8x") == std::string::npos; ++i) {
    after += ReadBytes(far, 50'000);
  }
  // It begins with a whole message.
  const int first = after[0] - '0';
  EXPECT_GE(first, 2);
  EXPECT_TRUE(
      after.starts_with(messages[static_cast<size_t>(first) - 1].text + "\n"));
  EXPECT_TRUE(feed->Release().ok());
}

TEST(StreamFeedTest, WhatHasNoRoomIsDroppedAndSaid) {
  Exchange exchange;
  StreamFeedOptions options = Quick();
  options.limit_bytes = 100;
  const auto feed = Make(options, exchange);
  uint64_t lost = 0;
  TraceIdentity identity;
  identity.lost = [&](const BlockInfo& info, const Status&) {
    lost += info.events;
  };
  ASSERT_TRUE(feed->Initialize(identity).ok());
  ASSERT_TRUE(feed->Send(Messages(1, 1, 90), {.events = 1}).ok());
  const Status full = feed->Send(Messages(2, 1, 90), {.events = 1});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(LossReasonOf(full), LossReason::kQueueFull);
  EXPECT_EQ(feed->Queue()->blocks, 1u);
  // At the end nobody has come.
  EXPECT_FALSE(feed->Release().ok());
  EXPECT_EQ(lost, 1u);
}

TEST(StreamFeedTest, ABlockWaitsOnceForItsDeadline) {
  Exchange exchange;
  StreamFeedOptions options = Quick();
  options.limit_bytes = 100;
  options.deadline = std::chrono::milliseconds(100);
  const auto feed = Make(options, exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  ASSERT_TRUE(feed->Send(Messages(1, 1, 90), {.events = 1}).ok());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(feed->Send(Messages(2, 1, 90), {.events = 1}).ok());
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(100));
  // One for each of 100 would be 10 s.
  EXPECT_LT(took, std::chrono::seconds(5));
  static_cast<void>(feed->Release().ok());
}

TEST(StreamFeedTest, DatagramsHoldOneMessageEach) {
  Exchange exchange;
  const UniqueFd far = exchange.Offer(SOCK_DGRAM);
  StreamFeedOptions options = Quick();
  options.framing = FeedFraming::kDatagram;
  const auto feed = Make(options, exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  const auto messages = Messages(1, 3);
  ASSERT_TRUE(feed->Send(messages, {.events = 3}).ok());
  for (const FeedMessage& message : messages) {
    EXPECT_EQ(ReadBytes(far, 1), FrameMessage(message, options));
  }
  EXPECT_TRUE(feed->Release().ok());
}

TEST(StreamFeedTest, PacketsOfASocketAreNoLongerThanItTakes) {
  Exchange exchange;
  const UniqueFd far = exchange.Offer(SOCK_SEQPACKET);
  StreamFeedOptions options = Quick();
  options.address = {.transport = net::Transport::kSeqpacket, .host = "/h"};
  const auto feed = Make(options, exchange);
  ASSERT_TRUE(feed->Initialize({}).ok());
  constexpr size_t kPadding = 1'000'000;
  ASSERT_TRUE(feed->Send(Messages(1, 2, kPadding), {.events = 2}).ok());
  EXPECT_EQ(ReadBytes(far, 2 * (kPadding + 2)).size(), 2 * (kPadding + 2));
  EXPECT_TRUE(feed->Release().ok());
}

TEST(StreamFeedTest, SyslogMessagesAreAsRfc5424HasThem) {
  StreamFeedOptions options;
  options.framing = FeedFraming::kDatagram;
  options.facility = 19;
  options.host = "box";
  FeedMessage message{
      .text = "CEF:0|x", .real_ns = 1'767'323'045'123'456'789, .id = "unlink"};
  const std::string pid = std::to_string(::getpid());
  EXPECT_EQ(FrameMessage(message, options),
            "<158>1 2026-01-02T03:04:05.123456Z box tracefs " + pid +
                " unlink - CEF:0|x");
  message.urgency = FeedMessage::Urgency::kLoss;
  EXPECT_TRUE(FrameMessage(message, options).starts_with("<156>1 "));
  // Its octets are counted, those of the mark of UTF-8 too.
  options.framing = FeedFraming::kOctets;
  message.text = "n\xc3\xa4me";
  const std::string counted = FrameMessage(message, options);
  const size_t blank = counted.find(' ');
  EXPECT_EQ(std::stoul(counted.substr(0, blank)), counted.size() - blank - 1);
  EXPECT_TRUE(counted.ends_with(" - \xef\xbb\xbfn\xc3\xa4me"));
}

TEST(StreamFeedTest, LongSyslogMessagesAreCutBetweenCharacters) {
  StreamFeedOptions options;
  options.framing = FeedFraming::kDatagram;
  FeedMessage message{.text = {}, .real_ns = 1, .id = "read"};
  for (size_t i = 0; i < 3 * StreamFeedOptions::kMaxSyslogBytes; i += 2) {
    message.text += "\xc3\xa4";
  }
  for (int shift = 0; shift < 2; ++shift) {
    const std::string cut = FrameMessage(message, options);
    EXPECT_LE(cut.size(), StreamFeedOptions::kMaxSyslogBytes);
    EXPECT_GE(cut.size(), StreamFeedOptions::kMaxSyslogBytes - 1);
    EXPECT_TRUE(cut.ends_with("\xc3\xa4"));
    message.text.insert(0, "x");
  }
}

}  // namespace
}  // namespace tracefs
