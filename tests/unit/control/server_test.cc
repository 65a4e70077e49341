// The control server and its client over a real socket: good requests, hostile
// ones, hundreds at a time, other users, streams, and its end.
#include "tracefs/control/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <latch>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tracefs/base/clock.h"
#include "tracefs/control/client.h"
#include "tracefs/control/tail_stream.h"

namespace tracefs {
namespace {

using nlohmann::json;
using std::chrono_literals::operator""s;

constexpr uint64_t kNsPerMs = 1'000'000;

// echo: quick, returns its text. size: quick, so many bytes. wait: blocks until
// let go. files: how many came, and what the first one holds. tail: a stream.
class TestHandler final : public ControlHandler {
 public:
  bool IsQuick(std::string_view command) const override {
    return command == "echo" || command == "size";
  }
  ControlAnswer Handle(ControlRequest& r) override {
    ++handled;
    if (r.command == "echo") {
      const Result<std::string> text = r.Text("text");
      return text.ok() ? ControlAnswer(json(*text).dump())
                       : ControlAnswer(text.status());
    }
    if (r.command == "size") {
      return ControlAnswer(json(std::string(*r.Number("bytes"), 'x')).dump());
    }
    if (r.command == "wait") {
      waiting.count_down();
      go_on.wait();
      return ControlAnswer("\"waited\"");
    }
    if (r.command == "files") {
      char text[16] = {};
      if (!r.files.empty()) {
        static_cast<void>(!::pread(r.files[0].get(), text, 15, 0));
      }
      return ControlAnswer(json{r.files.size(), text}.dump());
    }
    if (r.command == "tail") {
      ControlAnswer answer("\"follows\"");
      answer.stream = MakeTailStream(queue, [this] { ++streams_ended; });
      return answer;
    }
    return Status::Invalid("unknown command");
  }

  std::atomic<int> handled{0};
  std::atomic<int> streams_ended{0};
  std::latch waiting{1};
  std::latch go_on{1};
  std::shared_ptr<BlockQueue> queue = std::make_shared<BlockQueue>(1 << 20);
};

class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() {
    char name[] = "/tmp/tracefs-server-XXXXXX";
    directory_ = ::mkdtemp(name);
    ::chmod(directory_.c_str(), 0755);
    directories_ = {directory_ + "/control"};
    options_.name = "0:1.sock";
    options_.owner = ::geteuid();
  }
  ~ControlServerTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    auto folder = OpenControlFolder(directories_, options_.owner, covered_);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    auto server = ControlServer::Create(options_, *std::move(folder));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    ASSERT_TRUE(server_->Start(handler_).ok());
  }

  ControlClient Client() {
    auto client =
        ControlClient::ConnectSocket(server_->path(), options_.owner, 60s);
    EXPECT_TRUE(client.ok()) << client.status().message();
    return std::move(*client);
  }

  // A connection of which we send every byte ourselves.
  UniqueFd Raw() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, server_->path().c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof address),
              0);
    return fd;
  }

  static void Write(const UniqueFd& fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n =
          ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0) return;  // refused half-way
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  // All until the other side closes.
  static std::string ReadAll(const UniqueFd& fd) {
    std::string all;
    char buffer[65536];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (n <= 0) return all;
      all.append(buffer, static_cast<size_t>(n));
    }
  }
  static std::string ReadLine(const UniqueFd& fd) {
    std::string line;
    char c;
    while (::recv(fd.get(), &c, 1, 0) == 1 && c != '\n') line += c;
    return line;
  }
  static std::string MessageOf(std::string_view line) {
    const json j = json::parse(line, nullptr, false);
    return j.is_object() && j.contains("error")
               ? j["error"].value("message", "")
               : "no error: " + std::string(line);
  }
  // A byte without waiting: 0 = closed, -1 = nothing yet.
  static ssize_t Peek(const UniqueFd& fd) {
    char c;
    return ::recv(fd.get(), &c, 1, MSG_DONTWAIT | MSG_PEEK);
  }

  std::string directory_;
  std::vector<std::string> directories_;
  std::string covered_ = "/nowhere";
  ControlServerOptions options_;
  TestHandler handler_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, AnswersWhatItIsAsked) {
  Start();
  ControlClient client = Client();
  for (const char* text : {"one", "two"}) {
    const auto answer =
        client.Call(json{{"command", "echo"}, {"text", text}}.dump());
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(*answer, json(text).dump());
  }
  const auto unknown = client.Call(R"({"command":"fly"})");
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalid);
  EXPECT_EQ(unknown.status().message(), "unknown command");
}

TEST_F(ControlServerTest, SocketIsPrivateAndGoesWithTheServer) {
  Start();
  const std::string path = server_->path();
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  server_.reset();
  EXPECT_NE(::stat(path.c_str(), &st), 0);
}

TEST_F(ControlServerTest, LeftoverSocketOfADeadServerIsReplaced) {
  Start();
  const std::string path = server_->path();
  const std::string leftover = path + ".old";
  ASSERT_EQ(::link(path.c_str(), leftover.c_str()), 0);
  server_.reset();
  ASSERT_EQ(::rename(leftover.c_str(), path.c_str()), 0);
  Start();
  EXPECT_TRUE(Client().Call(R"({"command":"echo","text":"x"})").ok());
}

// The kernel gives the number of a mount that has ended to the next one, before
// the daemon of the first has cleared away.
TEST_F(ControlServerTest, SocketOfTheNextMountStaysWhenTheServerGoes) {
  Start();
  const std::unique_ptr<ControlServer> before = std::move(server_);
  Start();
  before->StopCommands();
  EXPECT_TRUE(Client().Call(R"({"command":"echo","text":"x"})").ok());
}

TEST_F(ControlServerTest, APathIsAsLongAsASocketTakes) {
  for (const size_t more : {0, 1}) {
    const size_t most = sizeof(sockaddr_un::sun_path) - 1;
    options_.name = std::string(most + more - directories_[0].size() - 1, 'x');
    auto folder = OpenControlFolder(directories_, options_.owner, covered_);
    ASSERT_TRUE(folder.ok());
    const auto server = ControlServer::Create(options_, *std::move(folder));
    EXPECT_EQ(server.ok(), more == 0) << server.status().message();
  }
}

TEST_F(ControlServerTest, NextDirectoryIsTriedWhereOneCannotBeUsed) {
  directories_.insert(directories_.begin(), directory_ + "/missing/control");
  Start();
  EXPECT_EQ(server_->path(), directory_ + "/control/0:1.sock");
}

TEST_F(ControlServerTest, NoSocketLiesWhereTheMountGoes) {
  directories_.push_back(directory_ + "/beside");
  covered_ = directory_ + "/control";
  Start();
  EXPECT_EQ(server_->path(), directory_ + "/beside/0:1.sock");
  covered_ = directory_;
  const auto none = OpenControlFolder(directories_, options_.owner, covered_);
  EXPECT_NE(none.status().message().find("beside' lies where the mount goes"),
            std::string::npos)
      << none.status().message();
}

TEST_F(ControlServerTest, SeveralRequestsAtOnceAreAnsweredInOrder) {
  Start();
  const UniqueFd fd = Raw();
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    requests += json{{"id", i}, {"command", "echo"}, {"text", "t"}}.dump();
    requests += '\n';
  }
  Write(fd, requests);
  // Half-closed: what was asked is answered all the same.
  ASSERT_EQ(::shutdown(fd.get(), SHUT_WR), 0);
  for (int i = 0; i < 100; ++i) {
    const json answer = json::parse(ReadLine(fd));
    EXPECT_EQ(answer["id"], i);
    EXPECT_EQ(answer["result"], "t");
  }
  EXPECT_EQ(ReadAll(fd), "");
}

// An empty line is a request, too, wherever it stands.
TEST_F(ControlServerTest, EachLineIsAnswered) {
  Start();
  const UniqueFd fd = Raw();
  const std::string echo = R"({"command":"echo","text":"x"})";
  for (const std::string& lines :
       {echo + "\n\n" + echo + "\n", "\n\n" + echo + "\n"}) {
    Write(fd, lines);
    int good = 0;
    for (const char c : lines) {
      if (c == '\n')
        good += ReadLine(fd).find("\"ok\":true") != std::string::npos;
    }
    EXPECT_EQ(good, lines[0] == '{' ? 2 : 1);
  }
}

TEST_F(ControlServerTest, NothingIsDoneWhereNobodyAsks) {
  Start();
  const UniqueFd idle = Raw();
  ASSERT_TRUE(Client().Call(R"({"command":"echo","text":"x"})").ok());
  const auto used = [] {
    timespec time;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto busy = [&] {
    const auto before = used();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return used() - before;
  };
  EXPECT_LT(busy(), std::chrono::milliseconds(30));
  // Nor where somebody comes and is not wanted any more.
  server_->StopCommands();
  EXPECT_LT(busy(), std::chrono::milliseconds(30));
}

TEST_F(ControlServerTest, FilesAreHandedOver) {
  Start();
  UniqueFd file(::open((directory_ + "/file").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(::write(file.get(), "contents", 8), 8);
  const int fds[] = {file.get(), file.get()};
  ControlClient client = Client();
  auto answer = client.Call(R"({"command":"files"})", fds);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, R"([2,"contents"])");
  // They belong to one request only.
  answer = client.Call(R"({"command":"files"})");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, R"([0,""])");
}

TEST_F(ControlServerTest, Malicious_MoreFilesThanAnyRequestNeeds) {
  Start();
  const auto open_fds = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         {});
  };
  const UniqueFd fd = Raw();
  const auto before = open_fds();
  std::vector<int> fds(kMaxRequestFiles, fd.get());
  for (int i = 0; i < 2; ++i) {
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxRequestFiles * sizeof(int))];
    char byte = ' ';
    iovec iov = {&byte, 1};
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
    ASSERT_EQ(::sendmsg(fd.get(), &message, 0), 1);
  }
  EXPECT_EQ(MessageOf(ReadLine(fd)), "too many file descriptors");
  EXPECT_EQ(ReadAll(fd), "");
  // All that were received are closed again, with the connection itself.
  for (int i = 0; i < 1000 && open_fds() > before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LE(open_fds(), before);
}

TEST_F(ControlServerTest, Malicious_GarbageIsAnsweredAndForgotten) {
  Start();
  const UniqueFd fd = Raw();
  constexpr std::string_view kGarbage("\n\0\xff\n{\n[[[[[[[\n", 14);
  Write(fd, kGarbage);
  Write(fd,
        "{\"command\":\"echo\"}\n"
        "{\"id\":5,\"command\":\"echo\",\"text\":\"fine\"}\n");
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(ReadLine(fd).find("\"ok\":false"), std::string::npos);
  }
  EXPECT_EQ(ReadLine(fd), R"({"id":5,"ok":true,"result":"fine"})");
}

TEST_F(ControlServerTest, Malicious_OversizedRequestEndsItsConnectionOnly) {
  Start();
  ControlClient other = Client();
  const UniqueFd fd = Raw();
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 5; ++i) Write(fd, megabyte);
  EXPECT_EQ(MessageOf(ReadLine(fd)), "request too long");
  EXPECT_EQ(ReadAll(fd), "");
  EXPECT_TRUE(other.Call(R"({"command":"echo","text":"x"})").ok());
  EXPECT_EQ(handler_.handled, 1);
}

TEST_F(ControlServerTest, LongestRequestThatIsAllowedIsServed) {
  Start();
  std::string request = R"({"command":"echo","text":")";
  request += std::string(kMaxRequestBytes - request.size() - 3, 'y') + "\"}";
  ASSERT_EQ(request.size() + 1, kMaxRequestBytes);
  ControlClient client = Client();
  const auto answer = client.Call(request);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_GT(answer->size(), kMaxRequestBytes - 100);
  EXPECT_EQ(client.Call(request + " ").status().code(), StatusCode::kInvalid);
}

TEST_F(ControlServerTest, Malicious_HalfSentRequestDoesNotLast) {
  options_.limits.half_sent_ns = 50 * kNsPerMs;
  Start();
  const UniqueFd fd = Raw();
  Write(fd, "{\"command\":");
  EXPECT_EQ(MessageOf(ReadLine(fd)), "waited too long");
  EXPECT_EQ(ReadAll(fd), "");
}

TEST_F(ControlServerTest, Malicious_DripFedRequestDoesNotLastEither) {
  options_.limits.half_sent_ns = 200 * kNsPerMs;
  Start();
  const UniqueFd fd = Raw();
  const auto begin = std::chrono::steady_clock::now();
  while (Peek(fd) < 0 && std::chrono::steady_clock::now() - begin < 30s) {
    Write(fd, "x");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(MessageOf(ReadLine(fd)), "waited too long");
}

TEST_F(ControlServerTest, Malicious_ClientThatReadsNothingIsGivenUp) {
  options_.limits.stalled_ns = 50 * kNsPerMs;
  options_.max_connections = 1;
  Start();
  const UniqueFd fd = Raw();
  Write(fd, "{\"command\":\"size\",\"bytes\":30000000}\n");
  // Its place is free again once it was given up.
  for (int i = 0; i < 1000; ++i) {
    if (Client().Call(R"({"command":"echo","text":"x"})").ok()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "the connection stays";
}

TEST_F(ControlServerTest, LargeAnswerArrivesWhole) {
  Start();
  ControlClient client = Client();
  const auto answer = client.Call(R"({"command":"size","bytes":20000000})");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->size(), 20000002u);
}

TEST_F(ControlServerTest, IdleConnectionsEndAfterAWhile) {
  options_.limits.idle_ns = 50 * kNsPerMs;
  Start();
  const UniqueFd fd = Raw();
  EXPECT_EQ(MessageOf(ReadLine(fd)), "waited too long");
}

TEST_F(ControlServerTest, Malicious_HundredsOfIdleConnectionsShutNobodyOut) {
  Start();
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 500; ++i) idle.push_back(Raw());
  // Those that have sent half a request are idle too.
  for (int i = 0; i < 100; ++i) {
    idle.push_back(Raw());
    Write(idle.back(), "{");
  }
  for (int i = 0; i < 100; ++i) {
    const auto answer = Client().Call(R"({"command":"echo","text":"x"})");
    ASSERT_TRUE(answer.ok()) << answer.status().message();
  }
}

TEST_F(ControlServerTest, RoomIsMadeByWhoHasSaidNothingForLongest) {
  options_.max_connections = 4;
  Start();
  const std::string echo = R"({"command":"echo","text":"x"})"
                           "\n";
  const auto use = [&](const UniqueFd& fd) {
    Write(fd, echo);
    return ReadLine(fd);
  };
  // The first waits for its answer: it has been quiet longest, but is not idle.
  const UniqueFd busy = Raw();
  Write(busy, R"({"command":"wait"})"
              "\n");
  handler_.waiting.wait();
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(Raw());
    EXPECT_NE(use(idle.back()).find("\"x\""), std::string::npos);
  }
  EXPECT_NE(use(idle[0]).find("\"x\""), std::string::npos);
  // Now the second has been idle longest, then the third, then the first.
  std::set<size_t> there = {0, 1, 2};
  for (const size_t next : {1, 2, 0}) {
    idle.push_back(Raw());
    EXPECT_NE(use(idle.back()).find("\"x\""), std::string::npos);
    EXPECT_EQ(MessageOf(ReadLine(idle[next])),
              "closed to make room for others");
    there.erase(next);
    for (const size_t other : there) EXPECT_EQ(Peek(idle[other]), -1) << other;
  }
  EXPECT_EQ(Peek(busy), -1);
  handler_.go_on.count_down();
  EXPECT_NE(ReadLine(busy).find("waited"), std::string::npos);
}

TEST_F(ControlServerTest, ManyClientsAtATimeAreAllServed) {
  options_.max_connections = 64;
  Start();
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int t = 0; t < 16; ++t) {
    clients.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        good += Client().Call(R"({"command":"echo","text":"x"})").ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 16 * 50);
}

TEST_F(ControlServerTest, SlowCommandHoldsUpNoQuickOne) {
  Start();
  auto slow = std::async(std::launch::async, [&] {
    return *Client().Call(R"({"command":"wait"})");
  });
  handler_.waiting.wait();
  ControlClient client = Client();
  EXPECT_TRUE(client.Call(R"({"command":"echo","text":"x"})").ok());
  handler_.go_on.count_down();
  EXPECT_EQ(slow.get(), "\"waited\"");
}

TEST_F(ControlServerTest, ClientThatLeavesDuringItsCommandHarmsNobody) {
  Start();
  {
    const UniqueFd fd = Raw();
    Write(fd, "{\"command\":\"wait\"}\n");
    handler_.waiting.wait();
  }
  handler_.go_on.count_down();
  EXPECT_TRUE(Client().Call(R"({"command":"files"})").ok());
  EXPECT_TRUE(Client().Call(R"({"command":"echo","text":"x"})").ok());
}

TEST_F(ControlServerTest, OtherUsersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  Start();
  const std::string path = server_->path();
  const auto ask_as = [&](uid_t uid) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresuid(uid, uid, uid) != 0) ::_exit(99);
      auto client = ControlClient::ConnectSocket(path, 0, 10s);
      if (!client.ok()) ::_exit(client.status().error());
      const auto answer = client->Call(R"({"command":"echo","text":"x"})");
      // And that is all that is said.
      char more;
      const UniqueFd rest = client->TakeStream();
      if (!answer.ok() && ::recv(rest.get(), &more, 1, 0) > 0) ::_exit(98);
      ::_exit(answer.ok() ? 0 : answer.status().error());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(ask_as(0), 0);
  EXPECT_EQ(ask_as(65534), EACCES);  // by the socket's mode
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(ask_as(65534), EACCES);  // by the server
  EXPECT_EQ(handler_.handled, 1);
}

TEST_F(ControlServerTest, WhoMountedItIsServedAndOthersAreNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  options_.owner = 65534;
  ASSERT_EQ(::mkdir((directory_ + "/control").c_str(), 0755), 0);
  Start();
  ASSERT_EQ(::chmod(server_->path().c_str(), 0666), 0);
  for (const uid_t uid : {65534u, 65533u, 0u}) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresuid(uid, uid, uid) != 0) ::_exit(99);
      auto client = ControlClient::ConnectSocket(server_->path(), 65534, 10s);
      const auto answer = client->Call(R"({"command":"echo","text":"x"})");
      ::_exit(answer.ok() ? 0 : answer.status().error());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), uid == 65533 ? EACCES : 0) << uid;
  }
}

TEST_F(ControlServerTest, Malicious_SocketOfAnotherUserIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  // A server that runs as nobody, where a mount of user 65533 is expected.
  const std::string path = directory_ + "/fake.sock";
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(99);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(fd, 1);
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto client = ControlClient::ConnectSocket(path, 65533, 10s);
  EXPECT_EQ(client.status().error(), EPERM);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(ControlServerTest, StreamFollowsItsAnswerToTheEnd) {
  Start();
  const auto output = MakeBlockQueueOutput(handler_.queue);
  ControlClient client = Client();
  ASSERT_EQ(*client.Call(R"({"command":"tail"})"), "\"follows\"");
  const UniqueFd fd = client.TakeStream();
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    const std::string block(10000, static_cast<char>('a' + i % 26));
    // The reader below is us: no more than the queue and socket can hold.
    while (!output->Write(AsBytes(block), {}, {.sequence = 1}).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    sent += block;
    if (i % 10 == 9) {
      std::string got(sent.size(), 0);
      ASSERT_EQ(::recv(fd.get(), got.data(), got.size(), MSG_WAITALL),
                static_cast<ssize_t>(got.size()));
      ASSERT_EQ(got, sent);
      sent.clear();
    }
  }
  ASSERT_TRUE(output->Write(AsBytes("end"), {}, {.sequence = 1}).ok());
  ASSERT_TRUE(output->Release().ok());
  EXPECT_EQ(ReadAll(fd), "end");
  for (int i = 0; i < 2000 && handler_.streams_ended == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(handler_.streams_ended, 1);
}

TEST_F(ControlServerTest, StreamEndsWhenItsClientLeaves) {
  Start();
  {
    ControlClient client = Client();
    ASSERT_TRUE(client.Call(R"({"command":"tail"})").ok());
  }
  for (int i = 0; i < 5000 && handler_.streams_ended == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(handler_.streams_ended, 1);
}

TEST_F(ControlServerTest, SlowReaderOfAStreamHoldsUpNobody) {
  Start();
  const auto output = MakeBlockQueueOutput(handler_.queue);
  ControlClient slow = Client();
  ASSERT_TRUE(slow.Call(R"({"command":"tail"})").ok());
  const std::string block(100000, 'x');
  bool refused = false;
  for (int i = 0; i < 100000 && !refused; ++i) {
    refused = !output->Write(AsBytes(block), {}, {.sequence = 1}).ok();
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(Client().Call(R"({"command":"echo","text":"x"})").ok());
}

TEST_F(ControlServerTest, RestOfAStreamIsSentWhenTheServerStops) {
  Start();
  const auto output = MakeBlockQueueOutput(handler_.queue);
  ControlClient client = Client();
  ASSERT_TRUE(client.Call(R"({"command":"tail"})").ok());
  const UniqueFd fd = client.TakeStream();
  server_->StopCommands();
  ASSERT_TRUE(output->Write(AsBytes("last"), {}, {.sequence = 1}).ok());
  ASSERT_TRUE(output->Release().ok());
  server_->Stop();
  EXPECT_EQ(ReadAll(fd), "last");
  EXPECT_EQ(handler_.streams_ended, 1);
}

TEST_F(ControlServerTest, StopDoesNotWaitForAStalledStream) {
  Start();
  ControlClient client = Client();
  ASSERT_TRUE(client.Call(R"({"command":"tail"})").ok());
  server_->Stop();  // the stream never ends
  EXPECT_EQ(handler_.streams_ended, 1);
}

TEST_F(ControlServerTest, RunningCommandIsWaitedForAndLaterOnesAreRefused) {
  Start();
  auto slow = std::async(std::launch::async, [&] {
    return Client().Call(R"({"command":"wait"})");
  });
  handler_.waiting.wait();
  ControlClient other = Client();
  ASSERT_TRUE(other.Call(R"({"command":"echo","text":"x"})").ok());
  std::thread stopper([&] { server_->StopCommands(); });
  // Refused from the moment the stop was asked for.
  Result<std::string> late = other.Call(R"({"command":"echo","text":"x"})");
  for (int i = 0; i < 1000; ++i) {
    struct stat st;
    if (::stat(server_->path().c_str(), &st) != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  handler_.go_on.count_down();
  stopper.join();
  late = other.Call(R"({"command":"files"})");
  EXPECT_EQ(late.status().error(), ESHUTDOWN);
  server_->Stop();
  const Result<std::string> answer = slow.get();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(*answer, "\"waited\"");
}

}  // namespace
}  // namespace tracefs
