// One connection of the control server, at moments that the test chooses: what
// it waits for, until when, and what is left of it.
#include "tracefs/control/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/passed_files.h"
#include "tracefs/control/request.h"

namespace tracefs {
namespace {

constexpr ConnectionLimits kLimits = {
    .half_sent_ns = 100, .idle_ns = 1000, .stalled_ns = 10'000};

// Gives what the test puts into it.
class FakeStream final : public ControlStream {
 public:
  std::string Take(size_t max) override {
    most = max;
    std::string taken = text.substr(0, max);
    text.erase(0, taken.size());
    return taken;
  }
  bool ended() const override { return over; }
  void OnMore(std::function<void()>) override {}

  std::string text;
  bool over = false;
  size_t most = 0;
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    peer_ = UniqueFd(fds[1]);
    EXPECT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    c_.emplace(UniqueFd(fds[0]), 7, kLimits, /*now=*/5000);
  }

  void Send(std::string_view text) {
    ASSERT_EQ(::send(peer_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What has come to the client, without waiting.
  std::string Read(size_t most = size_t{1} << 22) {
    std::string text(most, '\0');
    const ssize_t n =
        ::recv(peer_.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  std::string Line() {
    std::string line;
    std::vector<UniqueFd> files;
    return c_->TakeLine(&line, &files) ? line : "(none)";
  }
  void Fill() {
    // More than a socket holds.
    c_->Answer(std::string(size_t{8} << 20, 'x'), 6000);
    ASSERT_TRUE(c_->Transmit(6000));
  }

  UniqueFd peer_;
  std::optional<Connection> c_;
};

TEST_F(ConnectionTest, WaitsForARequestAsLongAsItIsIdle) {
  EXPECT_EQ(c_->serial(), 7u);
  EXPECT_TRUE(c_->idle());
  EXPECT_FALSE(c_->finished());
  EXPECT_EQ(c_->Events(), POLLIN);
  EXPECT_EQ(c_->last_activity(), 5000u);
  EXPECT_EQ(c_->Deadline(), 6000u);
  // Nothing has come: nothing has changed.
  EXPECT_TRUE(c_->Receive(5500));
  EXPECT_EQ(c_->Deadline(), 6000u);
  EXPECT_EQ(Line(), "(none)");
  EXPECT_TRUE(c_->idle());
}

TEST_F(ConnectionTest, ARequestMustBeWholeSoonAfterItsFirstByte) {
  Send("he");
  ASSERT_TRUE(c_->Receive(5500));
  EXPECT_EQ(c_->Deadline(), 5600u);
  EXPECT_EQ(Line(), "(none)");
  EXPECT_TRUE(c_->idle()) << "half a request is no request";
  // More of it does not prolong that.
  Send("ll");
  ASSERT_TRUE(c_->Receive(5590));
  EXPECT_EQ(c_->last_activity(), 5590u);
  EXPECT_EQ(c_->Deadline(), 5600u);
  Send("o\nsecond");
  ASSERT_TRUE(c_->Receive(5595));
  EXPECT_EQ(Line(), "hello");
  EXPECT_FALSE(c_->idle());
  EXPECT_EQ(c_->Deadline(), 0u) << "the server takes the time that it takes";
  EXPECT_EQ(c_->Events(), 0);
  EXPECT_EQ(Line(), "(none)") << "one at a time";
  c_->Answer("a\n", 7000);
  EXPECT_EQ(c_->Events(), POLLOUT);
  EXPECT_EQ(c_->Deadline(), 17'000u);
  ASSERT_TRUE(c_->Transmit(7100));
  EXPECT_EQ(Read(), "a\n");
  EXPECT_TRUE(c_->idle());
  EXPECT_EQ(c_->last_activity(), 7100u);
  // The second one began when the first was taken.
  EXPECT_EQ(c_->Deadline(), 5695u);
  Send("\n");
  ASSERT_TRUE(c_->Receive(7200));
  EXPECT_EQ(Line(), "second");
  c_->Answer("b\n", 7200);
  ASSERT_TRUE(c_->Transmit(7300));
  EXPECT_EQ(c_->Deadline(), 8300u);
}

TEST_F(ConnectionTest, WhatWasAskedIsAnsweredAfterTheClientHasSentItsEnd) {
  Send("one\ntwo\n");
  ASSERT_EQ(::shutdown(peer_.get(), SHUT_WR), 0);
  ASSERT_TRUE(c_->Receive(5100));
  EXPECT_EQ(Line(), "one");
  EXPECT_FALSE(c_->finished());
  ASSERT_TRUE(c_->Receive(5100)) << "the end";
  EXPECT_EQ(c_->Events(), 0);
  c_->Answer("1\n", 5200);
  EXPECT_EQ(c_->Events(), POLLOUT);
  EXPECT_FALSE(c_->finished());
  ASSERT_TRUE(c_->Transmit(5200));
  EXPECT_EQ(Line(), "two");
  EXPECT_FALSE(c_->finished());
  c_->Answer("2\n", 5300);
  ASSERT_TRUE(c_->Transmit(5300));
  EXPECT_TRUE(c_->finished());
  EXPECT_EQ(Read(), "1\n2\n");
}

TEST_F(ConnectionTest, Malicious_ALineIsAtMostAsLongAsARequest) {
  const auto feed = [&](size_t bytes) {
    const std::string piece(size_t{1} << 16, 'x');
    for (size_t done = 0; done < bytes;) {
      const size_t n = std::min(piece.size(), bytes - done);
      Send(std::string_view(piece).substr(0, n));
      ASSERT_TRUE(c_->Receive(5001));
      EXPECT_EQ(Line(), "(none)");
      done += n;
    }
    // What is still in the socket.
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(c_->Receive(5001));
    EXPECT_EQ(Line(), "(none)");
  };
  feed(kMaxRequestBytes - 1);
  EXPECT_EQ(c_->TakeViolation(), "");
  Send("\n");
  ASSERT_TRUE(c_->Receive(5002));
  EXPECT_EQ(Line().size(), kMaxRequestBytes - 1);
  c_->Answer("", 5003);
  feed(kMaxRequestBytes);
  EXPECT_EQ(c_->TakeViolation(), "request too long");
  EXPECT_EQ(c_->TakeViolation(), "") << "told once";
  Send("\n");
  ASSERT_TRUE(c_->Receive(5004));
  EXPECT_EQ(Line(), "(none)");
}

TEST_F(ConnectionTest, AnAnswerIsSentAsTheClientReads) {
  Send("x\n");
  ASSERT_TRUE(c_->Receive(5100));
  EXPECT_EQ(Line(), "x");
  Fill();
  EXPECT_EQ(c_->Events(), POLLOUT);
  EXPECT_FALSE(c_->idle());
  EXPECT_EQ(c_->Deadline(), 16'000u);
  // It must read: a moment at which something was sent prolongs it.
  size_t read = Read().size();
  EXPECT_GT(read, 0u);
  ASSERT_TRUE(c_->Transmit(9000));
  EXPECT_EQ(c_->Deadline(), 19'000u);
  ASSERT_TRUE(c_->Transmit(9999)) << "the socket is full";
  EXPECT_EQ(c_->Deadline(), 19'000u);
  for (int i = 0; i < 1000 && !c_->idle(); ++i) {
    read += Read().size();
    ASSERT_TRUE(c_->Transmit(9500));
  }
  read += Read().size();
  EXPECT_EQ(read, size_t{8} << 20);
  EXPECT_TRUE(c_->idle());
  EXPECT_EQ(c_->Events(), POLLIN);
}

TEST_F(ConnectionTest, EndsWithItsAnswerWhereItIsToldTo) {
  Send("x\nnever read\n");
  ASSERT_TRUE(c_->Receive(5100));
  EXPECT_EQ(Line(), "x");
  c_->CloseAfterAnswer();
  EXPECT_FALSE(c_->finished()) << "there is no answer yet";
  c_->Answer("bye\n", 5200);
  EXPECT_FALSE(c_->finished());
  EXPECT_EQ(Line(), "(none)");
  EXPECT_EQ(c_->Events(), POLLOUT);
  ASSERT_TRUE(c_->Transmit(5300));
  EXPECT_TRUE(c_->finished());
  EXPECT_EQ(Line(), "(none)");
  EXPECT_EQ(Read(), "bye\n");
}

TEST_F(ConnectionTest, CloseEndsItAtOnce) {
  Send("x\n");
  ASSERT_TRUE(c_->Receive(5100));
  EXPECT_EQ(Line(), "x");
  EXPECT_FALSE(c_->finished());
  c_->Close();
  EXPECT_TRUE(c_->finished());
}

TEST_F(ConnectionTest, AStreamFollowsItsAnswerToItsEnd) {
  auto stream = std::make_shared<FakeStream>();
  stream->text = std::string(600'000, 's');
  Send("tail\n");
  ASSERT_TRUE(c_->Receive(5100));
  EXPECT_EQ(Line(), "tail");
  c_->Answer("follows\n", 5200);
  c_->Follow(stream);
  EXPECT_FALSE(c_->idle());
  // Its client says nothing any more; only its end matters.
  EXPECT_EQ(c_->Events(), POLLIN | POLLOUT);
  std::string all;
  uint64_t now = 5300;
  for (; now < 5400 && !stream->text.empty(); ++now) {
    ASSERT_TRUE(c_->Transmit(now));
    all += Read();
  }
  EXPECT_EQ(stream->most, size_t{256} << 10);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(c_->Transmit(now));
    all += Read();
  }
  EXPECT_EQ(all, "follows\n" + std::string(600'000, 's'));
  EXPECT_EQ(c_->Deadline(), 0u) << "a stream may be quiet for hours";
  EXPECT_EQ(c_->Events(), POLLIN);
  EXPECT_FALSE(c_->idle());
  EXPECT_FALSE(c_->finished());
  // What is said meanwhile is thrown away.
  Send("more\n");
  ASSERT_TRUE(c_->Receive(5500));
  EXPECT_EQ(Line(), "(none)");
  EXPECT_EQ(c_->last_activity(), 5500u);
  stream->text = "the end";
  stream->over = true;
  ASSERT_TRUE(c_->Transmit(5600));
  EXPECT_EQ(Read(), "the end");
  EXPECT_TRUE(c_->finished());
  EXPECT_EQ(c_->TakeStream(), stream);
}

// Others get their turn.
TEST_F(ConnectionTest, ALongStreamIsSentInTurns) {
  const int size = 64 << 20;
  static_cast<void>(
      ::setsockopt(c_->fd(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size));
  auto stream = std::make_shared<FakeStream>();
  stream->text = std::string(size_t{4} << 20, 's');
  c_->Follow(stream);
  ASSERT_TRUE(c_->Transmit(5100));
  // A MiB was sent, and what comes next was taken, or the socket was full.
  EXPECT_GE(stream->text.size(), (size_t{4} << 20) - (size_t{5} << 18));
  EXPECT_EQ(c_->Events(), POLLIN | POLLOUT);
  EXPECT_EQ(c_->Deadline(), 15'100u);
}

TEST_F(ConnectionTest, AClientThatLeavesItsStreamIsGone) {
  auto stream = std::make_shared<FakeStream>();
  c_->Follow(stream);
  EXPECT_TRUE(c_->Receive(5100));
  peer_.Reset();
  EXPECT_FALSE(c_->Receive(5200));
  stream->text = "x";
  EXPECT_FALSE(c_->Transmit(5300));
}

TEST_F(ConnectionTest, FilesGoWithTheRequestThatTheyCameWith) {
  const int fds[] = {peer_.get(), peer_.get()};
  ASSERT_EQ(SendWithFiles(peer_.get(), AsBytes(std::string_view("a\nb\n")), fds,
                          MSG_NOSIGNAL),
            4);
  ASSERT_TRUE(c_->Receive(5100));
  std::string line;
  std::vector<UniqueFd> files;
  ASSERT_TRUE(c_->TakeLine(&line, &files));
  EXPECT_EQ(files.size(), 2u);
  c_->Answer("", 5200);
  ASSERT_TRUE(c_->Transmit(5200));
  ASSERT_TRUE(c_->TakeLine(&line, &files));
  EXPECT_EQ(line, "b");
  EXPECT_TRUE(files.empty());
}

}  // namespace
}  // namespace tracefs
