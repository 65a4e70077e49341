// The process that makes connections for a daemon which cannot.
#include "drivers/output/remote/dialer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tests/support/helper_pids.h"
#include "tests/support/net_world.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/recv/listener.h"

namespace tracefs {
namespace {

// Our end of the socket of the helper that a keeper has started, as a daemon
// gets it.
UniqueFd FirstHelper(const UniqueFd& keeper) {
  std::byte one{};
  std::vector<UniqueFd> files;
  const ssize_t n = ReceiveWithFiles(keeper.get(), std::span(&one, 1), &files);
  EXPECT_EQ(n, 1);
  EXPECT_EQ(files.size(), 1U);
  return files.empty() ? UniqueFd() : std::move(files.front());
}

class DialerTest : public testing::Test {
 protected:
  void SetUp() override {
    // Keepers are let go of: they become ours.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  static HelperCounts Dialers() {
    for (const HelperCounts& counts : LookAtHelpers()) {
      if (counts.kind == HelperKind::kDial) return counts;
    }
    return {};
  }

  const TempFolder folder_;
  const net::Address address_{.transport = net::Transport::kUnix,
                              .host = folder_.Path("s")};
  const UniqueFd cancel_{::eventfd(0, EFD_CLOEXEC)};
};

TEST_F(DialerTest, ConnectsAgainAndAgain) {
  auto dialer = StartDialerProcess(address_);
  ASSERT_TRUE(dialer.ok()) << dialer.status().message();
  const auto nobody = (*dialer)->Dial(cancel_.get());
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.status().error(), ENOENT);
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  for (int i = 0; i < 3; ++i) {
    const auto fd = (*dialer)->Dial(cancel_.get());
    ASSERT_TRUE(fd.ok()) << fd.status().message();
    EXPECT_NE(::fcntl((*fd).get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl((*fd).get(), F_GETFD) & FD_CLOEXEC, 0);
    const UniqueFd peer(::accept4((*listener).get(), nullptr, nullptr, 0));
    ASSERT_TRUE(peer.valid());
    ASSERT_EQ(::send((*fd).get(), "x", 1, 0), 1);
    char byte = 0;
    EXPECT_EQ(::recv(peer.get(), &byte, 1, 0), 1);
  }
}

TEST_F(DialerTest, HoldsNothingOpenThatIsNotItsOwn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  auto dialer = StartDialerProcess(address_);
  ASSERT_TRUE(dialer.ok());
  // Once it has answered it has closed all it does not need.
  EXPECT_FALSE((*dialer)->Dial(cancel_.get()).ok());
  writing.Reset();
  pollfd ended = {reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 5000), 1);
}

// A daemon in somebody else's hand: what is no request of the one length ends
// the process, and it keeps no descriptor that came with one.
TEST_F(DialerTest, Malicious_WhatIsNoRequestEndsTheProcess) {
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  for (const size_t length : {0, 1, 3, 5, 8, 300, 70'000}) {
    const Result<UniqueFd> keeper = ForkDialer(address_);
    ASSERT_TRUE(keeper.ok());
    const UniqueFd socket = FirstHelper(*keeper);
    const std::string bytes(length, 'x');
    ASSERT_EQ(::send(socket.get(), bytes.data(), length, MSG_NOSIGNAL),
              static_cast<ssize_t>(length));
    char byte;
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 0) << length;
    // Nor does another take its place.
    EXPECT_EQ(::recv(keeper->get(), &byte, 1, 0), 0) << length;
    EXPECT_LT(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK), 0)
        << length;
  }
}

TEST_F(DialerTest, Malicious_ARequestBringsNothingAlong) {
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  const Result<UniqueFd> keeper = ForkDialer(address_);
  ASSERT_TRUE(keeper.ok());
  const UniqueFd socket = FirstHelper(*keeper);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::vector<int> many(kMaxPassedFiles, writing.get());
  for (uint32_t request : {0U, 1U, 0xffffffffU}) {
    ASSERT_EQ(SendWithFiles(socket.get(), std::as_bytes(std::span(&request, 1)),
                            many),
              4);
    std::array<std::byte, 512> answer;
    std::vector<UniqueFd> files;
    ASSERT_GT(ReceiveWithFiles(socket.get(), answer, &files), 0);
    EXPECT_EQ(files.size(), 1U);
  }
  writing.Reset();
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);
}

// The keeper of a dialer reads nothing, whatever a daemon sends it.
TEST_F(DialerTest, Malicious_AKeeperTakesNothing) {
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  const Result<UniqueFd> keeper = ForkDialer(address_);
  ASSERT_TRUE(keeper.ok());
  const UniqueFd socket = FirstHelper(*keeper);
  const std::string bytes(4096, 'x');
  int sent = 0;
  while (::send(keeper->get(), bytes.data(), bytes.size(),
                MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    ++sent;
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(sent, 0);
  const uint32_t request = 7;
  ASSERT_EQ(::send(socket.get(), &request, sizeof request, MSG_NOSIGNAL), 4);
  std::array<std::byte, 512> answer;
  std::vector<UniqueFd> files;
  ASSERT_GT(ReceiveWithFiles(socket.get(), answer, &files), 0);
  EXPECT_EQ(files.size(), 1U);
}

TEST_F(DialerTest, OneThatWasKilledIsReplaced) {
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  auto dialer = StartDialerProcess(address_);
  ASSERT_TRUE(dialer.ok());
  ASSERT_TRUE((*dialer)->Dial(cancel_.get()).ok());
  const HelperCounts before = Dialers();
  const pid_t keeper = AwaitChildNamed(::getpid(), "tracefs-keep");
  for (uint64_t i = 1; i <= 2; ++i) {
    const pid_t killed = AwaitChildNamed(keeper, "tracefs-dial");
    ASSERT_NE(killed, 0);
    ASSERT_TRUE(Kill(killed));
    const auto fd = (*dialer)->Dial(cancel_.get());
    ASSERT_TRUE(fd.ok()) << fd.status().message();
    const HelperCounts now = Dialers();
    EXPECT_EQ(now.living, before.living);
    EXPECT_EQ(now.died, before.died + i);
    EXPECT_EQ(now.replaced, before.replaced + i);
  }
}

TEST_F(DialerTest, WithoutItsKeeperOneWorksOnAndIsNotReplaced) {
  const auto listener = Listen(address_);
  ASSERT_TRUE(listener.ok());
  auto dialer = StartDialerProcess(address_);
  ASSERT_TRUE(dialer.ok());
  ASSERT_TRUE((*dialer)->Dial(cancel_.get()).ok());
  const HelperCounts before = Dialers();
  const pid_t keeper = AwaitChildNamed(::getpid(), "tracefs-keep");
  const pid_t killed = AwaitChildNamed(keeper, "tracefs-dial");
  ASSERT_NE(killed, 0);
  ASSERT_TRUE(Kill(keeper));
  ASSERT_TRUE((*dialer)->Dial(cancel_.get()).ok());
  std::vector<std::string> told;
  std::mutex mu;
  SetNoticeSink([&](NoticeId id, const std::string& text) {
    const std::lock_guard lock(mu);
    if (id == NoticeId::kHelperDied) told.push_back(text);
  });
  ASSERT_TRUE(Kill(killed));
  EXPECT_EQ((*dialer)->Dial(cancel_.get()).status().error(), EPIPE);
  const HelperCounts now = Dialers();
  static_cast<void>(LookAtHelpers());
  SetNoticeSink(nullptr);
  EXPECT_EQ(now.living, before.living - 1);
  EXPECT_EQ(now.died, before.died + 1);
  EXPECT_EQ(now.replaced, before.replaced);
  // Once, with its address and what to do.
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find(address_.Text()), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("add it again"), std::string::npos) << told[0];
}

TEST_F(DialerTest, CanBeCancelled) {
  // A connection that hangs: nobody takes it from a queue of one.
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  net::Address hole{.transport = net::Transport::kTcp,
                    .host = "192.0.2.1",  // documentation: nobody is there
                    .port = "9"};
  auto dialer = StartDialerProcess(hole);
  ASSERT_TRUE(dialer.ok());
  const uint64_t one = 1;
  ASSERT_EQ(::write(cancel_.get(), &one, sizeof one),
            static_cast<ssize_t>(sizeof one));
  const auto fd = (*dialer)->Dial(cancel_.get());
  ASSERT_FALSE(fd.ok());
}

TEST_F(DialerTest, ANameThatIsUnknownIsSaidToBe) {
  const auto dialer = MakeDirectDialer({.transport = net::Transport::kTcp,
                                        .host = "no-such-host.invalid",
                                        .port = "9"});
  const auto fd = dialer->Dial(cancel_.get());
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.status().message().find("cannot be resolved"),
            std::string::npos);
}

// --- Sockets that others listen at.

class SocketOfOthersTest : public DialerTest {
 protected:
  void SetUp() override {
    DialerTest::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  // Listens at the address as user 65534 would.
  Result<UniqueFd> ListenAsStranger() const {
    Result<UniqueFd> listener = Listen(address_);
    EXPECT_TRUE(listener.ok()) << listener.status().message();
    EXPECT_EQ(::lchown(address_.host.c_str(), 65534, 65534), 0);
    return listener;
  }
  std::string Refusal() const {
    const auto fd = MakeDirectDialer(address_)->Dial(cancel_.get());
    EXPECT_TRUE(fd.ok() || fd.status().error() == EACCES);
    return fd.status().message();
  }
};

TEST_F(SocketOfOthersTest, Malicious_OneInACommonDirectoryGetsNoTrace) {
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 01777), 0);
  const auto listener = ListenAsStranger();
  EXPECT_NE(Refusal().find("belongs to user 65534"), std::string::npos);
  // Nor by the process that dials.
  auto dialer = StartDialerProcess(address_);
  ASSERT_TRUE(dialer.ok());
  EXPECT_EQ((*dialer)->Dial(cancel_.get()).status().error(), EACCES);
}

TEST_F(SocketOfOthersTest, Malicious_OneInADirectoryOfAThirdGetsNoTrace) {
  const auto listener = ListenAsStranger();
  ASSERT_EQ(::chown(folder_.Path("").c_str(), 65533, 65533), 0);
  EXPECT_NE(Refusal(), "ok");
}

TEST_F(SocketOfOthersTest, OneInItsOwnersDirectoryIsACollectors) {
  const auto listener = ListenAsStranger();
  ASSERT_EQ(::chown(folder_.Path("").c_str(), 65534, 65534), 0);
  EXPECT_EQ(Refusal(), "ok");
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0770), 0);
  EXPECT_NE(Refusal(), "ok");
}

TEST_F(SocketOfOthersTest, Malicious_ALinkToTheirsIsNoBetter) {
  const auto listener = ListenAsStranger();
  ASSERT_EQ(::chown(folder_.Path("").c_str(), 65534, 65534), 0);
  const TempFolder ours;
  ASSERT_EQ(::symlink(address_.host.c_str(), ours.Path("s").c_str()), 0);
  const net::Address through{.transport = net::Transport::kUnix,
                             .host = ours.Path("s")};
  EXPECT_FALSE(MakeDirectDialer(through)->Dial(cancel_.get()).ok());
}

TEST_F(SocketOfOthersTest, WhatIsNoSocketIsRefused) {
  folder_.Write("s", "");
  EXPECT_NE(Refusal().find("not a socket"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
