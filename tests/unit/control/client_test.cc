// A client whose server is slow, silent, long-winded, or gone.
#include "tracefs/control/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/control/request.h"

namespace tracefs {
namespace {

using std::chrono_literals::operator""s;
using testing::HasSubstr;

class ControlClientTest : public testing::Test {
 protected:
  ~ControlClientTest() override {
    done_ = true;
    if (server_.joinable()) server_.join();
  }

  // Takes one client and does that with it; then waits for the test's end.
  void Serve(const std::function<void(int fd)>& life, bool stays = true) {
    listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
               sizeof address),
        0);
    ASSERT_EQ(::listen(listener_.get(), 1), 0);
    server_ = std::thread([this, life, stays] {
      const UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      life(fd.get());
      while (stays && !done_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  static void Put(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  Result<ControlClient> Connected(std::chrono::seconds patience = 60s) {
    return ControlClient::ConnectSocket(path_, ::geteuid(), patience);
  }
  Result<std::string> Call(std::chrono::seconds patience = 60s,
                           std::string_view request = "{}",
                           std::span<const int> files = {}) {
    auto client = Connected(patience);
    EXPECT_TRUE(client.ok()) << client.status().message();
    return client->Call(request, files);
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("socket");
  UniqueFd listener_;
  std::atomic<bool> done_{false};
  std::thread server_;
};

TEST_F(ControlClientTest, AnAnswerMayComeInPiecesAndAStreamBehindIt) {
  Serve(
      [](int fd) {
        for (const char* piece : {"{\"ok\":", "true,\"result\"", ":5}\nstr"}) {
          Put(fd, piece);
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        Put(fd, "eam");
      },
      false);
  auto client = Connected();
  ASSERT_TRUE(client.ok());
  const auto answer = client->Call("{}");
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(*answer, "5");
  const UniqueFd rest = client->TakeStream();
  char text[100] = {};
  ASSERT_EQ(::recv(rest.get(), text, sizeof text, MSG_WAITALL), 6);
  EXPECT_STREQ(text, "stream");
}

TEST_F(ControlClientTest, ASilentMountIsNotWaitedForWithoutEnd) {
  Serve([](int) {});
  const auto answer = Call(0s);
  EXPECT_EQ(answer.status().error(), ETIMEDOUT);
  EXPECT_THAT(answer.status().message(), HasSubstr("does not answer"));
}

TEST_F(ControlClientTest, WhetherItWasDoneIsNotKnownWhereTheMountLeaves) {
  Serve(
      [](int fd) {
        char c;
        while (::recv(fd, &c, 1, 0) == 1 && c != '\n') {
        }
        Put(fd, "{\"ok\":true");
      },
      false);
  const auto answer = Call();
  EXPECT_EQ(answer.status().error(), ECONNRESET);
  EXPECT_THAT(answer.status().message(), HasSubstr("is not known"));
}

// It says why, does not read the rest, and is gone.
TEST_F(ControlClientTest, WhyARequestWasNotTakenIsToldAllTheSame) {
  Serve(
      [](int fd) {
        char c;
        EXPECT_EQ(::recv(fd, &c, 1, 0), 1);
        Put(fd,
            "{\"ok\":false,\"error\":{\"code\":\"system\",\"errno\":13,"
            "\"message\":\"not you\"}}\n");
      },
      false);
  const auto answer = Call(60s, std::string(kMaxRequestBytes - 1, ' '));
  EXPECT_EQ(answer.status().error(), EACCES);
  EXPECT_EQ(answer.status().message(), "not you");
}

TEST_F(ControlClientTest, Malicious_AnEndlessAnswerIsGivenUp) {
  Serve([](int fd) {
    const std::string mega(1 << 20, 'x');
    for (int i = 0; i < 32; ++i) Put(fd, mega);
  });
  const auto answer = Call();
  EXPECT_EQ(answer.status().code(), StatusCode::kCorrupt);
  EXPECT_THAT(answer.status().message(), HasSubstr("too long"));
}

TEST_F(ControlClientTest, Malicious_WhatIsNoAnswerIsNone) {
  Serve([](int fd) { Put(fd, "nonsense\n"); });
  EXPECT_EQ(Call().status().code(), StatusCode::kCorrupt);
}

TEST_F(ControlClientTest, FilesGoWithTheFirstByteAndOnlyThere) {
  std::atomic<size_t> messages{0};
  std::atomic<size_t> files{0};
  Serve([&](int fd) {
    char buffer[4096];
    for (bool end = false; !end;) {
      alignas(cmsghdr) char control[1000];
      iovec part = {buffer, sizeof buffer};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
      if (n <= 0) return;
      for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
           c = CMSG_NXTHDR(&message, c)) {
        ++messages;
        files += (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; CMSG_LEN(i * sizeof(int)) < c->cmsg_len; ++i) {
          int got;
          std::memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof got);
          ::close(got);
        }
      }
      end = buffer[n - 1] == '\n';
    }
    Put(fd, "{\"ok\":true,\"result\":1}\n");
  });
  const std::vector<int> some(3, listener_.get());
  const std::string request(kMaxRequestBytes - 1, ' ');
  const auto answer = Call(60s, request, some);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(messages, 1u);
  EXPECT_EQ(files, 3u);
  const std::vector<int> many(kMaxRequestFiles + 1, listener_.get());
  auto client = Connected();
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(client->Call("{}", many).status().code(), StatusCode::kInvalid);
}

TEST_F(ControlClientTest, WhoServesIsKnownAsAProcess) {
  Serve([](int) {});
  auto client = Connected();
  ASSERT_TRUE(client.ok());
  const UniqueFd process = client->ServerPidfd();
  ASSERT_TRUE(process);
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(process.get()));
  std::string line;
  while (std::getline(info, line) && !line.starts_with("Pid:")) {
  }
  EXPECT_EQ(line, "Pid:\t" + std::to_string(::getpid()));
}

TEST_F(ControlClientTest, WhereThereIsNoSocketThatIsSaid) {
  EXPECT_EQ(Connected().status().error(), ENOENT);
  // A path is as long as a socket takes.
  std::string path = path_;
  path.resize(sizeof(sockaddr_un::sun_path) - 1, 'x');
  const auto at = [&] {
    return ControlClient::ConnectSocket(path, 0, 1s).status();
  };
  EXPECT_EQ(at().error(), ENOENT);
  path += 'x';
  EXPECT_EQ(at().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace tracefs
