// The courier between a driver's link and a broker, and the lines of a feed
// that go the same way. The link is this test, the broker an object.
#include "drivers/output/broker/courier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/output/broker/line_feed.h"
#include "tracefs/base/event_fd.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/format/frame.h"
#include "tracefs/net/wire.h"

namespace tracefs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeBroker final : public Publisher {
 public:
  size_t max_message() const override { return 10'000; }
  Status Publish(const std::string& id, ByteSpan message) override {
    const std::lock_guard lock(mu_);
    if (!error_.ok()) return error_;
    got_.emplace_back(id, AsText(message));
    changed_.notify_all();
    return Status::Ok();
  }
  Result<uint64_t> Acknowledged() override {
    event_.Clear();
    const std::lock_guard lock(mu_);
    if (!error_.ok()) return error_;
    return acknowledged_;
  }
  int event_fd() const override { return event_.get(); }

  void Acknowledge(uint64_t count) {
    {
      const std::lock_guard lock(mu_);
      acknowledged_ = count;
    }
    event_.Set();
  }
  void Fail(Status error) {
    {
      const std::lock_guard lock(mu_);
      error_ = std::move(error);
    }
    event_.Set();
  }
  // Waits for so many.
  std::vector<std::pair<std::string, std::string>> Got(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(60),
                      [&] { return got_.size() >= count; });
    return got_;
  }

 private:
  EventFd event_;
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  Status error_;
  uint64_t acknowledged_ = 0;
  std::vector<std::pair<std::string, std::string>> got_;
};

class CourierTest : public testing::Test {
 protected:
  CourierTest() {
    serial_.fill(decltype(serial_)::value_type{0x11});
    spec_.host = "web1";
    spec_.tracer = "trace";
  }
  ~CourierTest() override { End(); }

  void Start() {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    link_.Reset(ends[0]);
    const timeval patience = {60, 0};
    ::setsockopt(link_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof patience);
    conversation_ = std::thread([this, theirs = UniqueFd(ends[1])]() mutable {
      Convey(spec_, broker_, std::move(theirs), stop_.get());
    });
  }
  void End() {
    stop_.Set();
    if (conversation_.joinable()) conversation_.join();
  }

  std::string Preamble(std::string chain = "file") const {
    return format::EncodePreamble(
        {.serial = serial_, .chain = std::move(chain)});
  }
  std::string Frame(uint64_t sequence, std::string_view payload) const {
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::EncodeFrameHeader(header, {.sequence = sequence, .serial = serial_},
                              AsBytes(payload));
    return std::string(AsText(header)) + std::string(payload);
  }
  void Say(std::string_view bytes) {
    ASSERT_EQ(::send(link_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void SayHello(const std::string& preamble) {
    Say(net::EncodeHello({.preamble = preamble}));
  }
  // The next reply; one of kRefuse without words if there is none.
  net::Reply Hear() {
    for (;;) {
      auto reply = net::TakeReply(heard_);
      if (reply.ok() && reply->has_value()) return **reply;
      std::array<char, 4096> part;
      const ssize_t n = ::recv(link_.get(), part.data(), part.size(), 0);
      if (!reply.ok() || n <= 0) return {.type = net::ReplyType::kRefuse};
      heard_.append(part.data(), static_cast<size_t>(n));
    }
  }

  format::Serial serial_{};
  BrokerSpec spec_;
  FakeBroker broker_;
  EventFd stop_;
  UniqueFd link_;
  std::string heard_;
  std::thread conversation_;
};

TEST_F(CourierTest, EachBlockIsATraceOfItsOwn) {
  Start();
  SayHello(Preamble());
  const net::Reply welcome = Hear();
  EXPECT_EQ(welcome.type, net::ReplyType::kWelcome);
  EXPECT_EQ(welcome.max_frame, 10'000 - Preamble().size());
  Say(Frame(7, "seven") + Frame(8, "eight"));
  const std::string serial = format::SerialText(serial_);
  EXPECT_THAT(
      broker_.Got(2),
      ElementsAre(
          testing::Pair(serial + "-7", Preamble() + Frame(7, "seven")),
          testing::Pair(serial + "-8", Preamble() + Frame(8, "eight"))));
  // The driver hears of what the broker has, and of nothing else.
  broker_.Acknowledge(1);
  EXPECT_EQ(Hear().next, 8u);
  broker_.Acknowledge(2);
  EXPECT_EQ(Hear().next, 9u);
}

TEST_F(CourierTest, BlocksThatComeInPiecesAreWhole) {
  Start();
  const std::string all =
      net::EncodeHello({.preamble = Preamble()}) + Frame(0, "zero");
  for (const char byte : all) Say({&byte, 1});
  EXPECT_EQ(broker_.Got(1)[0].second, Preamble() + Frame(0, "zero"));
}

TEST_F(CourierTest, LinesOfAFeedAreMessagesAsTheyAre) {
  spec_.lines = true;
  Start();
  SayHello(Preamble(std::string(kLinesChain)));
  EXPECT_EQ(Hear().type, net::ReplyType::kWelcome);
  Say(Frame(0, "{}\n{}\n"));
  EXPECT_EQ(broker_.Got(1)[0].second, "{}\n{}\n");
}

TEST_F(CourierTest, ATraceIsNoFeed) {
  spec_.lines = true;
  Start();
  SayHello(Preamble());
  EXPECT_THAT(Hear().text, HasSubstr("what lies here is a trace"));
}

TEST_F(CourierTest, AFeedIsNoTrace) {
  Start();
  SayHello(Preamble(std::string(kLinesChain)));
  EXPECT_THAT(Hear().text, HasSubstr("what lies here are lines of a feed"));
}

TEST_F(CourierTest, DamageIsRefused) {
  Start();
  SayHello(Preamble());
  Hear();
  std::string frame = Frame(0, "zero");
  frame.back() ^= 1;
  Say(frame);
  const net::Reply refused = Hear();
  EXPECT_EQ(refused.type, net::ReplyType::kRefuse);
  EXPECT_EQ(refused.reason, net::RefuseReason::kBadData);
  EXPECT_THAT(refused.text, HasSubstr("damaged"));
}

TEST_F(CourierTest, WhyTheBrokerIsLostIsTold) {
  Start();
  SayHello(Preamble());
  Hear();
  broker_.Fail(Status::SystemSaid(ECONNRESET, "the broker has gone"));
  const net::Reply refused = Hear();
  EXPECT_EQ(refused.reason, net::RefuseReason::kClosing);
  EXPECT_EQ(refused.text, "the broker has gone");
}

TEST_F(CourierTest, NoMoreIsUnderWayThanTheBrokerKeepsUpWith) {
  constexpr uint64_t kMost = 1024;
  Start();
  SayHello(Preamble());
  Hear();
  std::string many;
  for (uint64_t n = 0; n < kMost; ++n) many += Frame(n, "x");
  Say(many);
  EXPECT_EQ(broker_.Got(kMost).size(), kMost);
  Say(Frame(kMost, "y"));
  broker_.Acknowledge(kMost - 1);
  EXPECT_EQ(Hear().next, kMost - 1);
  EXPECT_EQ(broker_.Got(kMost + 1).back().first,
            format::SerialText(serial_) + "-1024");
}

// --- A link in somebody else's hand.

// The length alone is enough: nothing is kept for a block that cannot come.
TEST_F(CourierTest, Malicious_ABlockLongerThanWasAgreedIsRefused) {
  Start();
  SayHello(Preamble());
  const uint32_t most = Hear().max_frame;
  const std::string longest(most - format::kFrameHeaderBytes, 'x');
  Say(Frame(0, longest));
  EXPECT_EQ(broker_.Got(1).size(), 1U);
  Say(Frame(1, longest + 'x').substr(0, format::kFrameHeaderBytes));
  const net::Reply refused = Hear();
  EXPECT_EQ(refused.type, net::ReplyType::kRefuse);
  EXPECT_EQ(refused.reason, net::RefuseReason::kBadData);
  EXPECT_THAT(refused.text, HasSubstr("at most"));
  EXPECT_EQ(broker_.Got(1).size(), 1U);
}

// Each byte of what a driver says in turn, and each length of it.
TEST_F(CourierTest, Malicious_OtherBytesPublishNothingElse) {
  const std::string hello = net::EncodeHello({.preamble = Preamble()});
  const std::string good = hello + Frame(0, "zero");
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      std::array<int, 2> ends;
      ASSERT_EQ(
          ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      const UniqueFd link(ends[0]);
      ASSERT_EQ(::send(link.get(), bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
      ::shutdown(link.get(), SHUT_WR);
      // To its end, in this thread.
      Convey(spec_, broker_, UniqueFd(ends[1]), stop_.get());
    }
  }
  for (const auto& [id, message] : broker_.Got(0)) {
    // What the preamble says of the trace is the driver's own affair.
    EXPECT_TRUE(message.ends_with(Frame(0, "zero")));
  }
}

TEST_F(CourierTest, Malicious_EndsWithALinkThatSaysNoMore) {
  const std::string good =
      net::EncodeHello({.preamble = Preamble()}) + Frame(0, "zero");
  for (size_t length = 0; length < good.size(); ++length) {
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
              0);
    UniqueFd link(ends[0]);
    ASSERT_EQ(::send(link.get(), good.data(), length, 0),
              static_cast<ssize_t>(length));
    link.Reset();
    Convey(spec_, broker_, UniqueFd(ends[1]), stop_.get());
  }
  EXPECT_TRUE(broker_.Got(0).empty());
}

// A descriptor that comes with what it says is let go of.
TEST_F(CourierTest, Malicious_DescriptorsAreNotTaken) {
  Start();
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::vector<int> many(kMaxPassedFiles, writing.get());
  const std::string hello = net::EncodeHello({.preamble = Preamble()});
  ASSERT_EQ(SendWithFiles(link_.get(), AsBytes(hello), many),
            static_cast<ssize_t>(hello.size()));
  EXPECT_EQ(Hear().type, net::ReplyType::kWelcome);
  writing.Reset();
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);
}

// As from the daemon's end of the process.
TEST(CourierProcessTest, Malicious_WhatIsNoRequestEndsIt) {
  BrokerSpec spec;
  spec.servers = {"127.0.0.1:1"};
  for (const size_t length : {0, 1, 3, 5, 8, 300, 70'000}) {
    const Result<UniqueFd> keeper = ForkCourier(spec);
    ASSERT_TRUE(keeper.ok());
    std::byte one{};
    std::vector<UniqueFd> files;
    ASSERT_EQ(ReceiveWithFiles(keeper->get(), std::span(&one, 1), &files), 1);
    ASSERT_EQ(files.size(), 1U);
    const std::string bytes(length, 'x');
    ASSERT_EQ(::send(files[0].get(), bytes.data(), length, MSG_NOSIGNAL),
              static_cast<ssize_t>(length));
    char byte;
    EXPECT_EQ(::recv(files[0].get(), &byte, 1, 0), 0) << length;
    EXPECT_EQ(::recv(keeper->get(), &byte, 1, 0), 0) << length;
  }
}

// A flood of requests, with descriptors, whose answers are not read: it goes on
// with them as they are, and ends with the daemon.
TEST(CourierProcessTest, Malicious_AFloodHasAnEnd) {
  BrokerSpec spec;
  spec.servers = {"127.0.0.1:1"};
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  Result<UniqueFd> keeper = ForkCourier(spec);
  ASSERT_TRUE(keeper.ok());
  std::byte one{};
  std::vector<UniqueFd> files;
  ASSERT_EQ(ReceiveWithFiles(keeper->get(), std::span(&one, 1), &files), 1);
  ASSERT_EQ(files.size(), 1U);
  const int file = writing.get();
  for (uint32_t request = 0;; ++request) {
    if (SendWithFiles(files[0].get(), std::as_bytes(std::span(&request, 1)),
                      std::span(&file, 1), MSG_DONTWAIT) < 0) {
      break;
    }
    ASSERT_LT(request, 100'000U);
  }
  EXPECT_EQ(errno, EAGAIN);
  files.clear();
  keeper->Reset();
  writing.Reset();
  // All that holds the descriptors is gone.
  pollfd ended = {reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
}

// What a broker's feed hands to framing.
class Framed final : public OutputFilter {
 public:
  struct Seen {
    TraceIdentity identity;
    std::vector<std::string> blocks;
    std::vector<uint64_t> numbers;
  };
  explicit Framed(Seen& seen) : seen_(seen) {}
  Status Initialize(const TraceIdentity& identity) override {
    seen_.identity = identity;
    return Status::Ok();
  }
  Status Write(ByteSpan block, const BlockInfo& info) override {
    seen_.blocks.emplace_back(AsText(block));
    seen_.numbers.push_back(info.sequence);
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 4096; }

 private:
  Seen& seen_;
};

TEST(BrokerFeedTest, TheLinesOfABlockAreOneMessage) {
  Framed::Seen seen;
  const auto feed = MakeBrokerFeed(nullptr, std::make_unique<Framed>(seen));
  TraceIdentity identity;
  identity.serial.fill(decltype(identity.serial)::value_type{0x22});
  identity.preamble =
      format::EncodePreamble({.serial = identity.serial, .chain = "file"});
  ASSERT_TRUE(feed->Initialize(identity).ok());
  // The trace's serial, but what follows is said to be lines.
  const auto preamble = format::DecodePreamble(AsBytes(seen.identity.preamble));
  ASSERT_TRUE(preamble.ok());
  EXPECT_EQ(preamble->serial, identity.serial);
  EXPECT_EQ(preamble->chain, kLinesChain);
  BlockInfo info;
  FeedMessage one;
  one.text = "{\"a\":1}";
  FeedMessage other;
  other.text = "{}";
  info.sequence = 5;
  ASSERT_TRUE(feed->Send({one, other}, info).ok());
  info.sequence = 6;
  ASSERT_TRUE(feed->Send({other}, info).ok());
  EXPECT_THAT(seen.blocks, ElementsAre("{\"a\":1}\n{}\n", "{}\n"));
  EXPECT_THAT(seen.numbers, ElementsAre(5, 6));
  EXPECT_EQ(feed->PreferredBlockSize(), 4096u);
}

}  // namespace
}  // namespace tracefs
