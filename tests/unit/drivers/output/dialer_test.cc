// The process that makes connections for a daemon which cannot.
#include "drivers/output/remote/dialer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "tests/support/net_world.h"
#include "tracefs/recv/listener.h"

namespace tracefs {
namespace {

class DialerTest : public testing::Test {
 protected:
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

}  // namespace
}  // namespace tracefs
