// What collectors are answered, over a real socket.
#include "tracefs/control/metrics_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class MetricsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MetricsServer::Available()) GTEST_SKIP() << "without libmicrohttpd";
    auto server = MetricsServer::Open("unix:" + path_, "");
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    EXPECT_EQ(server_->address(), "unix:" + path_);
  }
  // All that is answered, until the server closes.
  std::string Ask(const std::string& request) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0) {
      return "(no connection)";
    }
    const timeval patience = {60, 0};
    EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                           sizeof patience),
              0);
    EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string all;
    char buffer[4096];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (n <= 0) return all;
      all.append(buffer, static_cast<size_t>(n));
    }
  }
  std::string Get(const std::string& what, const std::string& headers = "",
                  const std::string& method = "GET") {
    return Ask(method + ' ' + what +
               " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers +
               "\r\n");
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("socket");
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, EachAnswerIsMadeAnewInTheFormatThatIsAskedFor) {
  int asked = 0;
  ASSERT_TRUE(server_
                  ->Start([&] {
                    return "# TYPE a counter\na_total " +
                           std::to_string(++asked) + "\n# EOF\n";
                  })
                  .ok());
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith("HTTP/1.1 200 "),
                    HasSubstr("Content-Type: text/plain; version=0.0.4"),
                    EndsWith("\r\n\r\n# TYPE a_total counter\na_total 1\n")));
  EXPECT_THAT(Get("/metrics",
                  "Accept: text/html, application/openmetrics-text;q=1\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "),
                    HasSubstr("Content-Type: application/openmetrics-text; "
                              "version=1.0.0; charset=utf-8"),
                    EndsWith("\r\n\r\n# TYPE a counter\na_total 2\n# EOF\n")));
  EXPECT_THAT(Get("/metrics", "Accept: text/plain\r\n"),
              EndsWith("a_total 3\n"));
  EXPECT_THAT(Get("/metrics", "", "HEAD"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
  EXPECT_EQ(asked, 4);
}

TEST_F(MetricsServerTest, NothingElseIsThere) {
  ASSERT_TRUE(server_->Start([] { return std::string("a 1\n"); }).ok());
  for (const char* path : {"/", "/metrics/", "/metric", "/health"}) {
    EXPECT_THAT(Get(path), AllOf(StartsWith("HTTP/1.1 404 "),
                                 EndsWith("metrics are at /metrics\n")))
        << path;
  }
  for (const char* method : {"PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(
        Get("/metrics", "", method),
        AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD"),
              EndsWith("only GET is answered\n")))
        << method;
  }
}

TEST_F(MetricsServerTest, HealthIsToldWithItsReason) {
  Status health = Status::Ok();
  ASSERT_TRUE(
      server_
          ->Start([] { return std::string("a 1\n"); }, [&] { return health; })
          .ok());
  EXPECT_THAT(Get("/health"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\nok\n")));
  health = Status::Invalid("the disk is full");
  EXPECT_THAT(Get("/health"), AllOf(StartsWith("HTTP/1.1 503 "),
                                    EndsWith("\r\n\r\nthe disk is full\n")));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsServerTest, Malicious_BodiesAndLongHeadersAreNotTaken) {
  ASSERT_TRUE(server_->Start([] { return std::string("a 1\n"); }).ok());
  EXPECT_THAT(Get("/metrics", "Content-Length: 3\r\n\r\nabc"),
              Not(HasSubstr("a 1\n")));
  EXPECT_THAT(
      Get("/metrics",
          "X: " + std::string(2 * MetricsServer::kMaxRequestBytes, 'x') +
              "\r\n"),
      Not(HasSubstr("a 1\n")));
  EXPECT_THAT(Get("/metrics"), EndsWith("a 1\n"));
}

TEST_F(MetricsServerTest, AfterStopNobodyAnswers) {
  ASSERT_TRUE(server_->Start([] { return std::string("a 1\n"); }).ok());
  EXPECT_THAT(Get("/metrics"), EndsWith("a 1\n"));
  server_->Stop();
  EXPECT_EQ(Get("/metrics"), "(no connection)");
  // Its socket is closed by now, and the number may be another file's.
  std::vector<UniqueFd> files;
  for (int i = 0; i < 20; ++i) files.emplace_back(::dup(0));
  server_->Stop();
  server_.reset();
  for (const UniqueFd& file : files) {
    EXPECT_GE(::fcntl(file.get(), F_GETFD), 0);
  }
}

}  // namespace
}  // namespace tracefs
