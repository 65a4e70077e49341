// A whole receiver: traces come in as they were sent, and nobody who sends
// anything else harms it or those who do.
#include "tracefs/recv/receiver.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>
#include <thread>

#include "tests/support/net_world.h"
#include "tracefs/recv/file_keeper.h"

namespace tracefs {
namespace {

using net::RefuseReason;
using net::ReplyType;
using std::chrono::milliseconds;
using test::Eventually;
using test::FakeTrace;
using test::RawClient;
using test::RunningReceiver;

class ReceiverTest : public testing::Test {
 protected:
  RunningReceiver::Options Options() const {
    return {.transport = net::Transport::kTcp, .out = folder_.Path("")};
  }
  std::string Stored(const FakeTrace& trace) const {
    return TempFolder::Read(folder_.Path(trace.FileName()));
  }
  // Sends all, and waits until it is durable.
  static void SendWhole(const net::Address& address, const FakeTrace& trace,
                        uint64_t end) {
    RawClient client(address);
    net::Reply reply = client.Greet(trace);
    ASSERT_EQ(reply.type, ReplyType::kWelcome) << reply.text;
    for (uint64_t i = reply.next; i < end; ++i) client.Send(trace.Frame(i));
    while (reply.next < end) {
      reply = client.Receive();
      ASSERT_NE(reply.type, ReplyType::kRefuse) << reply.text;
    }
  }
  // What a client that does this is told.
  static net::Reply Refusal(RawClient& client) {
    for (;;) {
      net::Reply reply = client.Receive();
      if (reply.type == ReplyType::kRefuse) return reply;
    }
  }

  const TempFolder folder_;
  const FakeTrace trace_;
};

TEST_F(ReceiverTest, WhatIsAcknowledgedIsInTheFile) {
  RunningReceiver receiver(Options());
  RawClient client(receiver.address());
  ASSERT_EQ(client.Greet(trace_).next, 0u);
  for (uint64_t i = 0; i < 5; ++i) {
    client.Send(trace_.Frame(i));
    const net::Reply ack = client.Receive();
    ASSERT_EQ(ack.type, ReplyType::kAck) << ack.text;
    EXPECT_EQ(ack.next, i + 1);
    EXPECT_TRUE(Stored(trace_) == trace_.File(i + 1));
  }
}

TEST_F(ReceiverTest, GoesOnWhereItWasAfterARestart) {
  {
    RunningReceiver receiver(Options());
    SendWhole(receiver.address(), trace_, 3);
  }
  RunningReceiver receiver(Options());
  RawClient client(receiver.address());
  EXPECT_EQ(client.Greet(trace_).next, 3u);
  // A sender that sends old blocks all the same.
  for (uint64_t i = 0; i < 6; ++i) client.Send(trace_.Frame(i));
  EXPECT_TRUE(Eventually([&] { return Stored(trace_) == trace_.File(6); }));
}

TEST_F(ReceiverTest, TheEndOfAReceiverAcknowledgesAllThatCame) {
  RunningReceiver receiver(Options());
  RawClient client(receiver.address());
  ASSERT_EQ(client.Greet(trace_).type, ReplyType::kWelcome);
  client.Send(trace_.Frame(0) + trace_.Frame(1) + trace_.Frame(2).substr(0, 9));
  EXPECT_EQ(client.Receive().type, ReplyType::kAck);
  receiver.Stop();
  EXPECT_EQ(Refusal(client).reason, RefuseReason::kClosing);
  // Half a block is not part of a trace.
  EXPECT_TRUE(Stored(trace_) == trace_.File(2));
}

TEST_F(ReceiverTest, TheNewConnectionOfASenderTakesThePlaceOfTheOld) {
  RunningReceiver receiver(Options());
  RawClient old(receiver.address());
  ASSERT_EQ(old.Greet(trace_).next, 0u);
  old.Send(trace_.Frame(0) + trace_.Frame(1).substr(0, 500));
  EXPECT_EQ(old.Receive().next, 1u);
  SendWhole(receiver.address(), trace_, 4);
  EXPECT_EQ(Refusal(old).reason, RefuseReason::kSuperseded);
  EXPECT_TRUE(Stored(trace_) == trace_.File(4));
}

// The end of the old connection, which may come late, takes nothing from the
// new one: a third one must find the second, or two would write one file.
TEST_F(ReceiverTest, Race_TheEndOfAnOldConnectionDoesNotForgetTheNewOne) {
  RunningReceiver receiver(Options());
  RawClient first(receiver.address());
  ASSERT_EQ(first.Greet(trace_).type, ReplyType::kWelcome);
  RawClient second(receiver.address());
  ASSERT_EQ(second.Greet(trace_).type, ReplyType::kWelcome);
  EXPECT_EQ(Refusal(first).reason, RefuseReason::kSuperseded);
  first.Close();
  second.Send(trace_.Frame(0));
  ASSERT_EQ(second.Receive().next, 1u);
  // The receiver has seen the end of the first: another one takes its turn.
  SendWhole(receiver.address(), FakeTrace(2), 1);
  RawClient third(receiver.address());
  ASSERT_EQ(third.Greet(trace_).next, 1u);
  EXPECT_EQ(Refusal(second).reason, RefuseReason::kSuperseded);
  third.Send(trace_.Frame(1));
  EXPECT_EQ(third.Receive().next, 2u);
  EXPECT_TRUE(Stored(trace_) == trace_.File(2));
}

TEST_F(ReceiverTest, ManySendersAtATime) {
  RunningReceiver receiver(Options());
  std::vector<std::thread> senders;
  for (uint8_t n = 1; n <= 40; ++n) {
    senders.emplace_back([&receiver, n] {
      SendWhole(receiver.address(), FakeTrace(n, 5000), 30);
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (uint8_t n = 1; n <= 40; ++n) {
    EXPECT_TRUE(Stored(FakeTrace(n, 5000)) == FakeTrace(n, 5000).File(30));
  }
}

TEST_F(ReceiverTest, UnixSocketsOfBothKindsAndWhoSends) {
  for (const net::Transport transport :
       {net::Transport::kUnix, net::Transport::kSeqpacket}) {
    const FakeTrace trace(static_cast<uint8_t>(transport), 100'000);
    const std::string where = folder_.Path("socket");
    RunningReceiver receiver(
        {.transport = transport, .where = where, .out = folder_.Path("")});
    RawClient client(receiver.address());
    ASSERT_EQ(client.Greet(trace).type, ReplyType::kWelcome);
    const std::string frame = trace.Frame(0);
    for (size_t at = 0; at < frame.size(); at += net::kMaxPacketBytes) {
      client.Send(frame.substr(at, net::kMaxPacketBytes));
    }
    EXPECT_EQ(client.Receive().next, 1u);
    EXPECT_EQ(
        TempFolder::Read(folder_.Path("uid-" + std::to_string(::geteuid()) +
                                      "." + trace.SerialFileName())),
        trace.File(1));
    receiver.Stop();
    EXPECT_FALSE(std::filesystem::exists(where));
  }
}

TEST_F(ReceiverTest, TwoReceiversDoNotShareADirectory) {
  RunningReceiver receiver(Options());
  const auto second = MakeFileKeeper({.directory = folder_.Path("")});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another tracefs-recv"),
            std::string::npos);
}

// --- Clients that are not senders.

TEST_F(ReceiverTest, Malicious_GarbageIsRefusedByName) {
  RunningReceiver receiver(Options());
  RawClient http(receiver.address());
  http.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(Refusal(http).reason, RefuseReason::kBadHello);

  RawClient version(receiver.address());
  version.Send(net::EncodeHello({.version = 2, .preamble = trace_.preamble()}));
  EXPECT_EQ(Refusal(version).reason, RefuseReason::kVersion);

  RawClient damaged(receiver.address());
  ASSERT_EQ(damaged.Greet(trace_).type, ReplyType::kWelcome);
  std::string frame = trace_.Frame(1);
  frame.back() = static_cast<char>(frame.back() ^ 1);
  damaged.Send(trace_.Frame(0) + frame);
  EXPECT_EQ(Refusal(damaged).reason, RefuseReason::kBadData);
  EXPECT_TRUE(Stored(trace_) == trace_.File(1));

  RawClient foreign(receiver.address());
  ASSERT_EQ(foreign.Greet(trace_).next, 1u);
  foreign.Send(FakeTrace(9).Frame(1));
  EXPECT_EQ(Refusal(foreign).reason, RefuseReason::kBadData);

  SendWhole(receiver.address(), trace_, 3);
  EXPECT_TRUE(Stored(trace_) == trace_.File(3));
}

TEST_F(ReceiverTest, Malicious_ReorderedAndReplayedBlocksChangeNothing) {
  RunningReceiver receiver(Options());
  RawClient client(receiver.address());
  ASSERT_EQ(client.Greet(trace_).type, ReplyType::kWelcome);
  for (const uint64_t n : {0, 1, 0, 1, 2, 1, 3, 3}) {
    client.Send(trace_.Frame(n));
  }
  EXPECT_TRUE(Eventually([&] { return Stored(trace_) == trace_.File(4); }));
  client.Close();
  // The whole conversation once more.
  SendWhole(receiver.address(), trace_, 4);
  EXPECT_TRUE(Stored(trace_) == trace_.File(4));
}

TEST_F(ReceiverTest, Malicious_SlowGreetingsAndBlocksEnd) {
  RunningReceiver::Options options = Options();
  options.limits.greeting = milliseconds(200);
  options.limits.stall = milliseconds(200);
  RunningReceiver receiver(options);
  RawClient silent(receiver.address());
  RawClient half(receiver.address());
  half.Send(net::EncodeHello({.preamble = trace_.preamble()}).substr(0, 30));
  RawClient stalled(receiver.address());
  ASSERT_EQ(stalled.Greet(trace_).type, ReplyType::kWelcome);
  stalled.Send(trace_.Frame(0).substr(0, 50));
  RawClient idle(receiver.address());
  ASSERT_EQ(idle.Greet(FakeTrace(2)).type, ReplyType::kWelcome);
  EXPECT_EQ(Refusal(silent).reason, RefuseReason::kSlow);
  EXPECT_EQ(Refusal(half).reason, RefuseReason::kSlow);
  EXPECT_EQ(Refusal(stalled).reason, RefuseReason::kSlow);
  // Who merely has nothing to say may stay.
  idle.Send(FakeTrace(2).Frame(0));
  EXPECT_EQ(idle.Receive().type, ReplyType::kAck);
}

TEST_F(ReceiverTest, Malicious_ConnectionsOfOneHostAreBounded) {
  RunningReceiver::Options options = Options();
  options.limits.max_clients_per_peer = 3;
  RunningReceiver receiver(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (uint8_t i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(receiver.address()));
    ASSERT_EQ(clients.back()->Greet(FakeTrace(i)).type, ReplyType::kWelcome);
  }
  RawClient fourth(receiver.address());
  EXPECT_EQ(Refusal(fourth).reason, RefuseReason::kBusy);
  clients.pop_back();
  EXPECT_TRUE(Eventually([&] {
    RawClient again(receiver.address());
    return again.Greet(FakeTrace(8)).type == ReplyType::kWelcome;
  }));
}

TEST_F(ReceiverTest, Malicious_ThoseWhoOnlyConnectMakeRoomForSenders) {
  RunningReceiver::Options options = Options();
  options.limits.max_clients = 5;
  RunningReceiver receiver(options);
  RawClient proven(receiver.address());
  ASSERT_EQ(proven.Greet(trace_).type, ReplyType::kWelcome);
  proven.Send(trace_.Frame(0));
  ASSERT_EQ(proven.Receive().next, 1u);
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<RawClient>(receiver.address()));
  }
  SendWhole(receiver.address(), FakeTrace(2), 5);
  proven.Send(trace_.Frame(1));
  EXPECT_EQ(proven.Receive().next, 2u);
}

TEST_F(ReceiverTest, Malicious_OneWhoNeverReadsAnswersHoldsUpNobody) {
  RunningReceiver receiver(Options());
  RawClient deaf(receiver.address());
  deaf.Send(net::EncodeHello({.preamble = FakeTrace(3, 10).preamble()}));
  ASSERT_EQ(deaf.Receive().type, ReplyType::kWelcome);
  std::thread flood([&] {
    const FakeTrace trace(3, 10);
    for (uint64_t i = 0; i < 20'000; ++i) deaf.Send(trace.Frame(i));
  });
  SendWhole(receiver.address(), trace_, 50);
  flood.join();
  EXPECT_TRUE(Stored(trace_) == trace_.File(50));
}

// Its file takes long to be looked through, and it never waits for that.
TEST_F(ReceiverTest, Malicious_OneWhoComesBackAgainAndAgainHoldsUpNobody) {
  const FakeTrace large(3, 0);
  {
    std::string file = large.preamble();
    for (uint64_t i = 0; i < 300'000; ++i) file += large.Header(i);
    folder_.Write(large.FileName(), file);
  }
  RunningReceiver receiver(Options());
  std::jthread nuisance([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const RawClient client(receiver.address());
      client.Send(net::EncodeHello({.preamble = large.preamble()}));
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  RawClient client(receiver.address());
  ASSERT_EQ(client.Greet(trace_).type, ReplyType::kWelcome);
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < 20; ++i) {
    client.Send(trace_.Frame(i));
    ASSERT_EQ(client.Receive().next, i + 1);
  }
  // Others open theirs meanwhile.
  SendWhole(receiver.address(), FakeTrace(4), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  nuisance.request_stop();
  // Whoever does wait gets there.
  EXPECT_TRUE(Eventually([&] {
    RawClient patient(receiver.address());
    return patient.Greet(large).next == 300'000;
  }));
}

TEST_F(ReceiverTest, Malicious_ATraceIsNotOpenedFasterThanItsShare) {
  RunningReceiver receiver(Options());
  SendWhole(receiver.address(), trace_, 1);
  const auto begin = std::chrono::steady_clock::now();
  // Eight at once, then one in a quarter of a second.
  for (int i = 0; i < 13; ++i) {
    RawClient client(receiver.address());
    ASSERT_EQ(client.Greet(trace_).next, 1u);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1000));
  // That is nobody else's.
  const auto other = std::chrono::steady_clock::now();
  SendWhole(receiver.address(), FakeTrace(2), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - other, milliseconds(900));
}

TEST_F(ReceiverTest, LimitOnTheSizeOfATrace) {
  RunningReceiver::Options options = Options();
  options.max_trace_bytes = trace_.File(4).size() + 500;
  RunningReceiver receiver(options);
  RawClient large(receiver.address());
  ASSERT_EQ(large.Greet(trace_).type, ReplyType::kWelcome);
  for (uint64_t i = 0; i < 4; ++i) {
    large.Send(trace_.Frame(i));
    ASSERT_EQ(large.Receive().next, i + 1);
  }
  large.Send(trace_.Frame(4));
  const net::Reply refusal = Refusal(large);
  EXPECT_EQ(refusal.reason, RefuseReason::kTooLarge);
  EXPECT_NE(refusal.text.find("--max-trace"), std::string::npos);
  // All that had room is there, and nothing of what had none.
  EXPECT_TRUE(Stored(trace_) == trace_.File(4));
}

TEST_F(ReceiverTest, LimitOnTheNumberOfTraces) {
  RunningReceiver::Options options = Options();
  options.max_traces = 2;
  RunningReceiver receiver(options);
  SendWhole(receiver.address(), FakeTrace(2), 1);
  SendWhole(receiver.address(), FakeTrace(4), 1);
  RawClient third(receiver.address());
  ASSERT_EQ(third.Greet(FakeTrace(3)).type, ReplyType::kWelcome);
  third.Send(FakeTrace(3).Frame(0));
  EXPECT_NE(Refusal(third).text.find("--max-traces"), std::string::npos);
}

// Bytes at random, behind every beginning that is right.
TEST_F(ReceiverTest, Malicious_RandomBytes) {
  RunningReceiver receiver(Options());
  std::mt19937 random(7);
  const std::string begin =
      net::EncodeHello({.preamble = FakeTrace(5).preamble()}) +
      FakeTrace(5).Frame(0);
  for (int round = 0; round < 150; ++round) {
    RawClient client(receiver.address());
    std::string bytes = begin.substr(0, random() % (begin.size() + 1));
    const size_t extra = random() % 2000;
    for (size_t i = 0; i < extra; ++i) bytes += static_cast<char>(random());
    if (random() % 3 == 0 && !bytes.empty()) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    }
    client.Send(bytes);
    if (random() % 2 == 0) {
      const linger now = {1, 0};
      ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
  }
  SendWhole(receiver.address(), trace_, 5);
  EXPECT_TRUE(Stored(trace_) == trace_.File(5));
}

}  // namespace
}  // namespace tracefs
