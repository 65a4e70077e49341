// The network drivers against a receiver that comes and goes, and against peers
// that are none: nothing is lost or doubled that the policy keeps, what it
// loses is said, and nobody waits longer than the deadline.
#include "drivers/output/remote/remote.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <random>

#include "tests/support/net_world.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/recv/listener.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Eventually;
using test::FakeTrace;
using test::RunningReceiver;
using Clock = std::chrono::steady_clock;

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() {
    for (const char* name : {"out", "spill"}) {
      ::mkdir(folder_.Path(name).c_str(), 0700);
    }
  }

  RunningReceiver::Options ReceiverOptions() const {
    return {.transport = net::Transport::kUnix,
            .where = folder_.Path("socket"),
            .out = folder_.Path("out")};
  }
  RemoteOptions Options() const {
    RemoteOptions options;
    options.link.address = {.transport = net::Transport::kUnix,
                            .host = folder_.Path("socket")};
    options.link.retry = milliseconds(100);
    options.link.timeout = seconds(1);
    options.deadline = milliseconds(200);
    options.linger = milliseconds(500);
    return options;
  }
  // Options of a driver that waits, however busy the machine is.
  RemoteOptions Patient() const {
    RemoteOptions options = Options();
    options.link.timeout = options.deadline = options.linger = seconds(60);
    return options;
  }
  std::unique_ptr<OutputDriver> Make(const RemoteOptions& options) const {
    return MakeRemote(options, MakeDirectDialer(options.link.address),
                      options.spill != nullptr
                          ? MakeDirectDialer(options.link.address)
                          : nullptr);
  }
  RemoteOptions WithSpill() const {
    RemoteOptions options = Options();
    options.when_full = LossPolicy::kSpill;
    options.limit_bytes = uint64_t{64} << 20;
    auto directory = SpillDirectory::Open(folder_.Path("spill"));
    EXPECT_TRUE(directory.ok());
    options.spill = *directory;
    return options;
  }
  std::string Stored(const FakeTrace& trace) const {
    return TempFolder::Read(folder_.Path("out/uid-" +
                                         std::to_string(::geteuid()) + "." +
                                         trace.SerialFileName()));
  }
  size_t SpillFiles() const {
    return static_cast<size_t>(std::distance(
        std::filesystem::directory_iterator(folder_.Path("spill")), {}));
  }

  const TempFolder folder_;
  const FakeTrace trace_;
};

TEST_F(RemoteTest, WhatWasFlushedIsDurableAtTheReceiver) {
  RunningReceiver receiver(ReceiverOptions());
  const auto driver = Make(Patient());
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(trace_.WriteTo(*driver, i).ok());
    if (i % 7 == 0) {
      ASSERT_TRUE(driver->Flush().ok());
      EXPECT_TRUE(Stored(trace_) == trace_.File(i + 1));
    }
  }
  ASSERT_TRUE(driver->Release().ok());
  EXPECT_TRUE(Stored(trace_) == trace_.File(20));
}

TEST_F(RemoteTest, SeqpacketCarriesLargeBlocksToo) {
  RunningReceiver::Options receiver_options = ReceiverOptions();
  receiver_options.transport = net::Transport::kSeqpacket;
  RunningReceiver receiver(receiver_options);
  RemoteOptions options = Patient();
  options.link.address.transport = net::Transport::kSeqpacket;
  const FakeTrace trace(2, 300'000);
  const auto driver = Make(options);
  ASSERT_TRUE(driver->Initialize(trace.identity()).ok());
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(trace.WriteTo(*driver, i).ok());
  ASSERT_TRUE(driver->Release().ok());
  EXPECT_TRUE(Stored(trace) == trace.File(10));
}

TEST_F(RemoteTest, ATraceBeginsWithoutAReceiver) {
  const auto driver = Make(Options());
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  ASSERT_TRUE(trace_.WriteTo(*driver, 0).ok());
  const auto begin = Clock::now();
  EXPECT_TRUE(driver->Flush().ok());
  EXPECT_LT(Clock::now() - begin, seconds(2));
  ASSERT_TRUE(trace_.WriteTo(*driver, 1).ok());
  const Status flushed = driver->Flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_NE(flushed.message().find("not acknowledged"), std::string::npos);
  RunningReceiver receiver(ReceiverOptions());
  EXPECT_TRUE(Eventually([&] { return Stored(trace_) == trace_.File(2); }));
  EXPECT_TRUE(driver->Release().ok());
}

// The receiver is stopped and started at random moments, and connections are
// cut: what arrives is every block, once and in order.
TEST_F(RemoteTest, OutagesLeaveNoGapAndNoDuplicate) {
  for (const bool spill : {false, true}) {
    const FakeTrace trace(spill ? 11 : 10, 3000);
    RemoteOptions options = spill ? WithSpill() : Options();
    options.deadline = options.linger = seconds(20);
    const auto driver = Make(options);
    std::atomic<bool> done{false};
    std::thread outages([&] {
      std::mt19937 random(spill ? 5 : 6);
      while (!done.load()) {
        RunningReceiver receiver(ReceiverOptions());
        std::this_thread::sleep_for(milliseconds(random() % 60));
      }
    });
    ASSERT_TRUE(driver->Initialize(trace.identity()).ok());
    for (uint64_t i = 0; i < 1500; ++i) {
      ASSERT_TRUE(trace.WriteTo(*driver, i).ok());
      if (i % 3 == 0) std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_TRUE(trace.WriteTo(*driver, 1500, /*last=*/true).ok());
    const Status released = driver->Release();
    EXPECT_TRUE(released.ok()) << released.message();
    done.store(true);
    outages.join();
    EXPECT_TRUE(Stored(trace) == trace.File(1501));
    EXPECT_EQ(SpillFiles(), 0u);
  }
}

// --- Policies, while there is no receiver.

TEST_F(RemoteTest, DataLoss_BlockWaitsForTheDeadlineOnceAndThenCounts) {
  RemoteOptions options = Options();
  options.limit_bytes = 10'000;
  const auto driver = Make(options);
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  const auto begin = Clock::now();
  int refused = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Status status = trace_.WriteTo(*driver, i);
    if (status.ok()) continue;
    EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
    ++refused;
  }
  const auto took = Clock::now() - begin;
  EXPECT_EQ(refused, 100 - 9);
  EXPECT_GE(took, milliseconds(200));
  // One for each of 91 blocks would be 18 s.
  EXPECT_LT(took, seconds(9));
  EXPECT_FALSE(driver->Release().ok());
}

TEST_F(RemoteTest, DataLoss_DropWaitsForNothingAndGoesOnAfterTheOutage) {
  RemoteOptions options = Options();
  options.when_full = LossPolicy::kDrop;
  options.deadline = seconds(60);
  options.limit_bytes = 10'000;
  const auto driver = Make(options);
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  std::string expected = trace_.preamble();
  const auto begin = Clock::now();
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const Status status = trace_.WriteTo(*driver, i);
    if (!status.ok()) {
      EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
      continue;
    }
    expected += trace_.Frame(i);
    ++accepted;
  }
  EXPECT_LT(Clock::now() - begin, seconds(30));
  EXPECT_EQ(accepted, 9u);
  RunningReceiver receiver(ReceiverOptions());
  ASSERT_TRUE(Eventually([&] { return driver->Queue()->blocks == 0; }));
  ASSERT_TRUE(trace_.WriteTo(*driver, 100).ok());
  ASSERT_TRUE(driver->Release().ok());
  EXPECT_TRUE(Stored(trace_) == expected + trace_.Frame(100));
}

TEST_F(RemoteTest, FailSaysInTimeThatItIsGettingFull) {
  RemoteOptions options = Options();
  options.when_full = LossPolicy::kFail;
  options.limit_bytes = 20'000;
  const auto driver = Make(options);
  std::atomic<int> full{0};
  TraceIdentity identity = trace_.identity();
  identity.full = [&](bool is) { full.store(is ? 1 : -1); };
  ASSERT_TRUE(driver->Initialize(identity).ok());
  uint64_t sequence = 0;
  while (full.load() == 0) {
    ASSERT_TRUE(trace_.WriteTo(*driver, sequence++).ok());
    ASSERT_LT(sequence, 12u);
  }
  EXPECT_EQ(full.load(), 1);
  // There is room for what is on its way.
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(trace_.WriteTo(*driver, sequence++).ok());
  }
  RunningReceiver receiver(ReceiverOptions());
  EXPECT_TRUE(Eventually([&] { return full.load() == -1; }));
  ASSERT_TRUE(driver->Release().ok());
  EXPECT_TRUE(Stored(trace_) == trace_.File(sequence));
}

TEST_F(RemoteTest, SpillKeepsOnDiskUpToItsLimit) {
  RemoteOptions options = WithSpill();
  options.limit_bytes = uint64_t{8} << 20;
  const FakeTrace trace(3, 500'000);
  const auto driver = Make(options);
  ASSERT_TRUE(driver->Initialize(trace.identity()).ok());
  uint64_t kept = 0;
  Status status;
  while ((status = trace.WriteTo(*driver, kept)).ok()) {
    ++kept;
    ASSERT_LT(kept, 100u);
  }
  EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
  EXPECT_GE(kept, 14u);
  EXPECT_LE(driver->Queue()->bytes, uint64_t{8} << 20);
  EXPECT_TRUE(driver->Flush().ok());  // on disk is as good as can be
  EXPECT_TRUE(driver->Release().ok());
  EXPECT_GT(SpillFiles(), 0u);

  // The next tracer with this directory sends it, and its own.
  RunningReceiver receiver(ReceiverOptions());
  const auto next = Make(WithSpill());
  ASSERT_TRUE(next->Initialize(trace_.identity()).ok());
  ASSERT_TRUE(trace_.WriteTo(*next, 0).ok());
  EXPECT_TRUE(Eventually([&] { return Stored(trace) == trace.File(kept); }));
  EXPECT_TRUE(Eventually([&] { return Stored(trace_) == trace_.File(1); }));
  EXPECT_TRUE(next->Release().ok());
  EXPECT_TRUE(Eventually([&] { return SpillFiles() == 0; }));
}

TEST_F(RemoteTest, SpillDrainsAfterTheSecondOutageToo) {
  const auto driver = Make(WithSpill());
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  uint64_t sequence = 0;
  for (int outage = 0; outage < 3; ++outage) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(trace_.WriteTo(*driver, sequence++).ok());
    }
    RunningReceiver receiver(ReceiverOptions());
    ASSERT_TRUE(Eventually([&] { return driver->Queue()->blocks == 0; }));
    EXPECT_TRUE(Stored(trace_) == trace_.File(sequence));
  }
  EXPECT_TRUE(driver->Release().ok());
  EXPECT_EQ(SpillFiles(), 0u);
}

// What is too large for one receiver is not for another.
TEST_F(RemoteTest, DataLoss_LeftBlocksThatAReceiverDoesNotTakeStay) {
  const FakeTrace left(30, 3000);
  const FakeTrace small(31, 100);
  for (const FakeTrace* trace : {&left, &small}) {
    const auto spill = MakeSpillBacklog(WithSpill().spill, trace->preamble(),
                                        trace->serial(), 1 << 20);
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(spill
                      ->Append(AsBytes(trace->Header(i)),
                               AsBytes(trace->Payload(i)), {.sequence = i})
                      .ok());
    }
  }
  RunningReceiver::Options receiver_options = ReceiverOptions();
  receiver_options.limits.max_block_bytes = 2000;
  {
    RunningReceiver receiver(receiver_options);
    const auto driver = Make(WithSpill());
    ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
    // The others are not held up.
    EXPECT_TRUE(Eventually([&] { return Stored(small) == small.File(4); }));
    ASSERT_TRUE(driver->Release().ok());
  }
  EXPECT_EQ(SpillFiles(), 1u);
  EXPECT_EQ(Stored(left), "");
  RunningReceiver receiver(ReceiverOptions());
  const auto driver = Make(WithSpill());
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  EXPECT_TRUE(Eventually([&] { return Stored(left) == left.File(4); }));
  EXPECT_TRUE(Eventually([&] { return SpillFiles() == 0; }));
  ASSERT_TRUE(driver->Release().ok());
}

TEST_F(RemoteTest, DataLoss_ABlockThatTheReceiverNeverTakesIsGivenUp) {
  RunningReceiver::Options receiver_options = ReceiverOptions();
  receiver_options.limits.max_block_bytes = 2000;
  RunningReceiver receiver(receiver_options);
  const auto driver = Make(Options());
  std::mutex mu;
  std::vector<uint64_t> lost;
  TraceIdentity identity = trace_.identity();
  identity.lost = [&](const BlockInfo& info, const Status& why) {
    std::lock_guard lock(mu);
    lost.push_back(info.sequence);
    EXPECT_NE(why.message().find("--max-block"), std::string::npos);
  };
  ASSERT_TRUE(driver->Initialize(identity).ok());
  ASSERT_TRUE(trace_.WriteTo(*driver, 0).ok());
  ASSERT_TRUE(FakeTrace(1, 3000).WriteTo(*driver, 1).ok());
  ASSERT_TRUE(trace_.WriteTo(*driver, 2).ok());
  ASSERT_TRUE(driver->Flush().ok());
  EXPECT_TRUE(driver->Release().ok());
  EXPECT_EQ(lost, std::vector<uint64_t>{1});
  EXPECT_TRUE(Stored(trace_) == trace_.File(1) + trace_.Frame(2));
}

// --- Peers that are not receivers.

// Something that listens and does what the test says with each connection.
class FakePeer {
 public:
  FakePeer(const net::Address& address, std::function<void(int fd)> behave)
      : behave_(std::move(behave)) {
    auto fd = Listen(address);
    EXPECT_TRUE(fd.ok());
    listener_ = std::move(*fd);
    thread_ = std::thread([this] {
      while (!stop_.load()) {
        UniqueFd peer(
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) {
          std::this_thread::sleep_for(milliseconds(1));
          continue;
        }
        ++connections_;
        behave_(peer.get());
        kept_.push_back(std::move(peer));
      }
    });
  }
  ~FakePeer() {
    stop_.store(true);
    thread_.join();
  }
  int connections() const { return connections_.load(); }

 private:
  const std::function<void(int)> behave_;
  UniqueFd listener_;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::vector<UniqueFd> kept_;
  std::thread thread_;
};

void Answer(int fd, const net::Reply& reply) {
  const std::string bytes = net::EncodeReply(reply);
  EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

class BadPeerTest : public RemoteTest {
 protected:
  // Ten blocks for such a peer: no Write takes longer than the deadline, and
  // the driver ends.
  void Run(std::function<void(int fd)> behave, int at_least_connections,
           const char* message) {
    RemoteOptions options = Options();
    options.limit_bytes = 5000;
    FakePeer peer(options.link.address, std::move(behave));
    const auto driver = Make(options);
    ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
    for (uint64_t i = 0; i < 10; ++i) {
      const auto begin = Clock::now();
      static_cast<void>(trace_.WriteTo(*driver, i));
      EXPECT_LT(Clock::now() - begin, seconds(5));
    }
    EXPECT_TRUE(
        Eventually([&] { return peer.connections() >= at_least_connections; }));
    const Status released = driver->Release();
    ASSERT_FALSE(released.ok());
    EXPECT_NE(released.message().find(message), std::string::npos)
        << released.message();
    EXPECT_NE(released.message().find("lost"), std::string::npos);
  }
};

TEST_F(BadPeerTest, Malicious_AcceptsAndNeverAcknowledges) {
  Run(
      [](int fd) {
        Answer(fd, {.type = net::ReplyType::kWelcome, .max_frame = 1 << 20});
      },
      2, "acknowledged nothing");
}

TEST_F(BadPeerTest, Malicious_ResetsEachConnection) {
  Run([](int fd) { ::shutdown(fd, SHUT_RDWR); }, 3, "connection");
}

TEST_F(BadPeerTest, Malicious_ResetsBehindTheWelcome) {
  Run(
      [](int fd) {
        Answer(fd, {.type = net::ReplyType::kWelcome, .max_frame = 1 << 20});
        ::shutdown(fd, SHUT_RDWR);
      },
      3, "connection");
}

TEST_F(BadPeerTest, Malicious_AnswersSomethingElse) {
  Run(
      [](int fd) {
        static_cast<void>(
            ::send(fd, "SSH-2.0-OpenSSH_9.2\r\n", 21, MSG_NOSIGNAL));
      },
      2, "no tracefs-recv");
}

TEST_F(BadPeerTest, Malicious_AcknowledgesWhatWasNeverSent) {
  Run(
      [](int fd) {
        Answer(fd, {.type = net::ReplyType::kWelcome, .max_frame = 1 << 20});
        Answer(fd, {.type = net::ReplyType::kAck, .next = 1'000'000});
      },
      1, "acknowledges what was not sent");
}

TEST_F(BadPeerTest, Malicious_SaysInItsWelcomeThatItHasWhatWasNeverSent) {
  Run(
      [](int fd) {
        Answer(fd, {.type = net::ReplyType::kWelcome,
                    .next = 1'000'000,
                    .max_frame = 1 << 20});
      },
      2, "which was never sent");
}

// Reads what comes until it is `bytes`.
void Swallow(int fd, size_t bytes) {
  std::string buffer(65536, '\0');
  while (bytes != 0) {
    const ssize_t n =
        ::recv(fd, buffer.data(), std::min(bytes, buffer.size()), 0);
    if (n <= 0) return;
    bytes -= static_cast<size_t>(n);
  }
}

// With everything sent, an ACK of more than that is a lie all the same: what is
// written later must not count as delivered.
TEST_F(RemoteTest, Malicious_AnAckBeyondAllThatWasSentDropsNothing) {
  RemoteOptions options = Options();
  options.limit_bytes = 1 << 20;
  const size_t sent = trace_.File(3).size() - trace_.preamble().size();
  std::atomic<int> connection{0};
  FakePeer peer(options.link.address, [&](int fd) {
    Swallow(fd, net::EncodeHello({.preamble = trace_.preamble()}).size());
    Answer(fd, {.type = net::ReplyType::kWelcome, .max_frame = 1 << 20});
    Swallow(fd, sent);
    // The first one lies; the second one has it all.
    const bool first = connection++ == 0;
    Answer(fd, {.type = net::ReplyType::kAck, .next = first ? 1'000'000U : 3U});
  });
  const auto driver = Make(options);
  ASSERT_TRUE(driver->Initialize(trace_.identity()).ok());
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(trace_.WriteTo(*driver, i).ok());
  }
  EXPECT_TRUE(Eventually([&] { return driver->Queue()->blocks == 0; }));
  EXPECT_EQ(peer.connections(), 2);
  EXPECT_TRUE(driver->Release().ok());
}

TEST_F(BadPeerTest, RefusesWithAReason) {
  Run(
      [](int fd) {
        Answer(fd, {.type = net::ReplyType::kRefuse,
                    .reason = net::RefuseReason::kNoSpace,
                    .text = "the disk is full"});
      },
      2, "the disk is full");
}

}  // namespace
}  // namespace tracefs
