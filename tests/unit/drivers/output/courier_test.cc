// The courier between a driver's link and a broker, and the lines of a feed
// that go the same way. The link is this test, the broker an object.
#include "drivers/output/broker/courier.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/output/broker/line_feed.h"
#include "tracefs/base/event_fd.h"
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
