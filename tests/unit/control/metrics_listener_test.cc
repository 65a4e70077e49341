// Where metrics are served, and the older of the two text formats.
#include "tracefs/control/metrics_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/control/classic_metrics.h"

namespace tracefs {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MetricsListenerTest : public testing::Test {
 protected:
  static bool Connects(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                     sizeof address) == 0;
  }
  static std::string Refused(const std::string& address,
                             const std::string& group = "") {
    const auto listener = ListenForMetrics(address, group);
    return listener.ok() ? "(listens)" : listener.status().message();
  }
  struct stat StatOf(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::lstat(path.c_str(), &st), 0);
    return st;
  }
  TempFolder folder_;
  const std::string path_ = folder_.Path("socket");
};

TEST_F(MetricsListenerTest, WhatIsNoAddressIsRefused) {
  for (const std::string bad :
       {"", "9100", ":9100", "localhost:", "localhost:x", "localhost:65536",
        "localhost:-1", "::1:9100", "[::1:9100", "::1]:9100", "unix:"}) {
    EXPECT_THAT(Refused(bad), StartsWith("--metrics is HOST:PORT, [HOST]:PORT "
                                         "or unix:PATH, not '" +
                                         bad + "'"));
  }
  EXPECT_THAT(Refused("no.such.host.invalid:1"),
              StartsWith("--metrics no.such.host.invalid:1: "));
}

TEST_F(MetricsListenerTest, TellsThePortThatItGot) {
  for (const std::string host : {"127.0.0.1", "[127.0.0.1]", "[::1]"}) {
    const auto listener = ListenForMetrics(host + ":0", "");
    if (!listener.ok() && host == "[::1]") continue;  // no IPv6 here
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ASSERT_EQ(::getsockname(listener->fd.get(),
                            reinterpret_cast<sockaddr*>(&bound), &size),
              0);
    const int port =
        ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    EXPECT_EQ(listener->address, host + ":" + std::to_string(port));
    EXPECT_NE(::fcntl(listener->fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(listener->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    // It is taken now.
    EXPECT_THAT(Refused(listener->address),
                testing::EndsWith("Address already in use"));
  }
}

TEST_F(MetricsListenerTest, ASocketFileIsForItsOwnerAlone) {
  const auto listener = ListenForMetrics("unix:" + path_, "");
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener->address, "unix:" + path_);
  EXPECT_EQ(StatOf(path_).st_mode, S_IFSOCK | 0600u);
  EXPECT_TRUE(Connects(path_));
}

TEST_F(MetricsListenerTest, OneWithoutAListenerIsReplacedAndOthersStay) {
  { ASSERT_TRUE(ListenForMetrics("unix:" + path_, "").ok()); }
  ASSERT_FALSE(Connects(path_));
  const auto listener = ListenForMetrics("unix:" + path_, "");
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  ASSERT_TRUE(Connects(path_));
  EXPECT_THAT(Refused("unix:" + path_), HasSubstr("Address already in use"));
  EXPECT_TRUE(Connects(path_)) << "the one that listens stays";
  const std::string file = folder_.Write("file", "x");
  EXPECT_THAT(Refused("unix:" + file), HasSubstr("Address already in use"));
  EXPECT_EQ(TempFolder::Read(file), "x");
}

TEST_F(MetricsListenerTest, APathIsAsLongAsASocketTakes) {
  const std::string most(sizeof(sockaddr_un::sun_path) - 1 - path_.size() - 1,
                         'x');
  EXPECT_TRUE(ListenForMetrics("unix:" + path_ + "." + most, "").ok());
  EXPECT_EQ(Refused("unix:" + path_ + ".x" + most),
            "--metrics: the path of a socket has at most 107 bytes");
}

TEST_F(MetricsListenerTest, AGroupMayUseIt) {
  const gid_t mine = ::getegid();
  const group* const named = ::getgrgid(mine);
  ASSERT_NE(named, nullptr);
  const std::string name = named->gr_name;
  for (const std::string& group : {name, std::to_string(mine)}) {
    const auto listener = ListenForMetrics("unix:" + path_, group);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    EXPECT_EQ(StatOf(path_).st_mode, S_IFSOCK | 0660u);
    EXPECT_EQ(StatOf(path_).st_gid, mine);
  }
  if (::geteuid() == 0) {
    const auto listener = ListenForMetrics("unix:" + path_, "4242");
    ASSERT_TRUE(listener.ok());
    EXPECT_EQ(StatOf(path_).st_gid, 4242u);
    EXPECT_EQ(StatOf(path_).st_uid, 0u);
    ASSERT_TRUE(ListenForMetrics("unix:" + path_ + "2", "4294967294").ok());
    EXPECT_EQ(StatOf(path_ + "2").st_gid, 4294967294u) << "the last there is";
  }
}

TEST_F(MetricsListenerTest, AGroupThatIsNoneLeavesNoSocket) {
  for (const std::string group : {"no-such-group", "4294967295", "-1"}) {
    EXPECT_EQ(Refused("unix:" + path_, group),
              "--metrics-group: there is no group '" + group + "'");
    EXPECT_NE(::access(path_.c_str(), F_OK), 0);
  }
}

TEST(ClassicMetricsTest, FamiliesAreNamedLikeTheirSamples) {
  EXPECT_EQ(ClassicMetrics("# TYPE a counter\n"
                           "# UNIT a seconds\n"
                           "# HELP a What a is.\n"
                           "a_total 1\n"
                           "# TYPE b gauge\n"
                           "# HELP b\n"
                           "b{x=\"# HELP no\"} 2\n"
                           "# TYPE c info\n"
                           "# HELP c Of c.\n"
                           "c_info{v=\"1\"} 1\n"
                           "# EOF\n"),
            "# TYPE a_total counter\n"
            "# HELP a_total What a is.\n"
            "a_total 1\n"
            "# TYPE b gauge\n"
            "# HELP b \n"
            "b{x=\"# HELP no\"} 2\n"
            "# TYPE c_info gauge\n"
            "# HELP c_info Of c.\n"
            "c_info{v=\"1\"} 1\n");
  EXPECT_EQ(ClassicMetrics(""), "");
  EXPECT_EQ(ClassicMetrics("a 1"), "a 1\n") << "without an end";
}

}  // namespace
}  // namespace tracefs
