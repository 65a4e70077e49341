// TLS: both sides are who they should be, or nothing is sent.
#include "tracefs/net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "drivers/output/remote/remote.h"
#include "tests/support/net_world.h"

namespace tracefs {
namespace {

using net::TlsContext;
using net::TlsFiles;
using std::chrono::milliseconds;
using test::Certificates;
using test::FakeTrace;
using test::RunningReceiver;

class TlsTest : public testing::Test {
 protected:
  TlsTest() { ::mkdir(folder_.Path("out").c_str(), 0700); }

  static std::shared_ptr<TlsContext> Context(TlsContext::Role role,
                                             const TlsFiles& files) {
    auto context = TlsContext::Create(role, files);
    EXPECT_TRUE(context.ok()) << context.status().message();
    return context.ok() ? std::move(*context) : nullptr;
  }
  // Sends three blocks; the status of Release.
  Status SendWith(const TlsFiles& receiver_files, const TlsFiles& sender_files,
                  const std::string& name) {
    const auto receiver_tls =
        Context(TlsContext::Role::kReceiver, receiver_files);
    RunningReceiver receiver({.transport = net::Transport::kTls,
                              .out = folder_.Path("out"),
                              .tls = receiver_tls.get()});
    RemoteOptions options;
    options.link.address = receiver.address();
    options.link.tls_name = name;
    options.link.retry = milliseconds(100);
    options.deadline = milliseconds(1);
    options.linger = milliseconds(1500);
    options.link.tls = Context(TlsContext::Role::kSender, sender_files);
    const auto driver =
        MakeRemote(options, MakeDirectDialer(options.link.address), nullptr);
    EXPECT_TRUE(driver->Initialize(trace_.identity()).ok());
    for (uint64_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(trace_.WriteTo(*driver, i).ok());
    }
    return driver->Release();
  }

  const TempFolder folder_;
  Certificates certificates_{folder_};
  const FakeTrace trace_{1, 100'000};
};

TEST_F(TlsTest, ATraceOfACertifiedSenderUnderItsName) {
  const Status status =
      SendWith(certificates_.Make("collector", "IP:127.0.0.1"),
               certificates_.Make("web/1 ü", ""), "127.0.0.1");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(TempFolder::Read(folder_.Path("out/cn-web%2f1%20%c3%bc." +
                                            trace_.SerialFileName())) ==
              trace_.File(3));
}

TEST_F(TlsTest, ANameInsteadOfAnAddress) {
  EXPECT_TRUE(SendWith(certificates_.Make("x", "DNS:collector.example"),
                       certificates_.Make("", "DNS:web.example"),
                       "collector.example")
                  .ok());
  EXPECT_TRUE(std::filesystem::exists(
      folder_.Path("out/cn-web%2eexample." + trace_.SerialFileName())));
}

TEST_F(TlsTest, Malicious_AReceiverOfAnotherNameGetsNothing) {
  const Status status =
      SendWith(certificates_.Make("collector", "DNS:collector.example"),
               certificates_.Make("web", ""), "127.0.0.1");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("not for '127.0.0.1'"), std::string::npos)
      << status.message();
}

TEST_F(TlsTest, Malicious_TheCommonNameIsNoHostName) {
  EXPECT_FALSE(SendWith(certificates_.Make("collector.example", "DNS:other"),
                        certificates_.Make("web", ""), "collector.example")
                   .ok());
}

TEST_F(TlsTest, Malicious_AReceiverOfAnotherAuthorityGetsNothing) {
  TlsFiles receiver = certificates_.Make("collector", "IP:127.0.0.1", true);
  receiver.ca = certificates_.ca();
  const Status status =
      SendWith(receiver, certificates_.Make("web", ""), "127.0.0.1");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("check that `ca`"), std::string::npos)
      << status.message();
}

TEST_F(TlsTest, Malicious_AnExpiredReceiverGetsNothing) {
  const Status status = SendWith(
      certificates_.Make("collector", "IP:127.0.0.1", false, /*valid_days=*/-1),
      certificates_.Make("web", ""), "127.0.0.1");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("expired"), std::string::npos)
      << status.message();
}

TEST_F(TlsTest, Malicious_ASenderOfAnotherAuthorityIsRefused) {
  const Status status =
      SendWith(certificates_.Make("collector", "IP:127.0.0.1"),
               certificates_.Make("web", "", true), "127.0.0.1");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("does not accept our certificate"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.Path("out")));
}

// Older versions, and no certificate at all, do not come through.
TEST_F(TlsTest, Malicious_OnlyVersionThreeAndOnlyWithACertificate) {
  const auto receiver_tls =
      Context(TlsContext::Role::kReceiver,
              certificates_.Make("collector", "IP:127.0.0.1"));
  RunningReceiver receiver({.transport = net::Transport::kTls,
                            .out = folder_.Path("out"),
                            .tls = receiver_tls.get()});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    SSL_CTX* const context = ::SSL_CTX_new(::TLS_client_method());
    ::SSL_CTX_set_max_proto_version(context, version);
    BIO* const connection = ::BIO_new_ssl_connect(context);
    ::BIO_set_conn_hostname(connection,
                            ("127.0.0.1:" + receiver.address().port).c_str());
    const std::string hello = net::EncodeHello({.preamble = trace_.preamble()});
    char answer[64];
    const bool served = ::BIO_do_connect(connection) == 1 &&
                        ::BIO_write(connection, hello.data(),
                                    static_cast<int>(hello.size())) > 0 &&
                        ::BIO_read(connection, answer, sizeof answer) > 0;
    EXPECT_FALSE(served);
    ::BIO_free_all(connection);
    ::SSL_CTX_free(context);
  }
}

TEST_F(TlsTest, FilesThatWillNotDoAreNamed) {
  const TlsFiles good = certificates_.Make("web", "");
  const auto message = [](const TlsFiles& files) {
    const auto context = TlsContext::Create(TlsContext::Role::kSender, files);
    return context.ok() ? "accepted" : context.status().message();
  };
  TlsFiles files = good;
  files.ca = folder_.Path("none");
  EXPECT_NE(message(files).find(files.ca), std::string::npos);
  files = good;
  files.cert = files.key;
  EXPECT_NE(message(files).find("`cert`"), std::string::npos) << message(files);
  files = good;
  files.key = certificates_.Make("other", "").key;
  EXPECT_NE(message(files).find("key values mismatch"), std::string::npos)
      << message(files);
  files = good;
  ::chmod(files.key.c_str(), 0644);
  EXPECT_NE(message(files).find("chmod 600"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
