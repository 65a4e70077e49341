#include "tests/support/net_world.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "drivers/output/remote/connect.h"
#include "tracefs/base/thread.h"
#include "tracefs/recv/file_keeper.h"

namespace tracefs::test {

RunningReceiver::RunningReceiver(const Options& options) {
  auto keeper = MakeFileKeeper({.directory = options.out,
                                .max_trace_bytes = options.max_trace_bytes,
                                .max_traces = options.max_traces,
                                .retention = options.retention});
  EXPECT_TRUE(keeper.ok()) << keeper.status().message();
  keeper_ = std::move(*keeper);
  Start(options);
}

RunningReceiver::RunningReceiver(const Options& options,
                                 std::unique_ptr<Keeper> keeper)
    : keeper_(std::move(keeper)) {
  Start(options);
}

void RunningReceiver::Start(const Options& options) {
  auto address = net::ParseAddress(
      options.transport, options.where.empty() ? "127.0.0.1:0" : options.where,
      /*listen=*/true);
  EXPECT_TRUE(address.ok()) << address.status().message();
  auto receiver = Receiver::Create({.listen = {*address},
                                    .limits = options.limits,
                                    .tls = options.tls,
                                    .quiet = true},
                                   *keeper_);
  EXPECT_TRUE(receiver.ok()) << receiver.status().message();
  receiver_ = std::move(*receiver);
  address_ = *net::ParseListenAddress(receiver_->addresses()[0]);
  stop_.Reset(::eventfd(0, EFD_CLOEXEC));
  // Over TLS a peer that has gone is a SIGPIPE, which tracefs-recv ignores.
  const Status started = StartThread(
      "receiver",
      [this] {
        const Status status = receiver_->Run(stop_.get());
        EXPECT_TRUE(status.ok()) << status.message();
      },
      &thread_);
  EXPECT_TRUE(started.ok()) << started.message();
}

void RunningReceiver::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof one),
            static_cast<ssize_t>(sizeof one));
  thread_.join();
  receiver_.reset();
  keeper_.reset();
}

RawClient::RawClient(const net::Address& address) {
  auto fd = ConnectTo(address, /*cancel=*/-1);
  EXPECT_TRUE(fd.ok()) << fd.status().message();
  if (fd.ok()) fd_ = std::move(*fd);
}

void RawClient::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    pollfd ready = {fd_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 10'000) != 1) return;
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return;  // the test sees what is answered
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

net::Reply RawClient::Receive() {
  for (;;) {
    auto reply = net::TakeReply(replies_);
    EXPECT_TRUE(reply.ok());
    if (!reply.ok()) return {};
    if (*reply) return **reply;
    pollfd ready = {fd_.get(), POLLIN, 0};
    net::Reply end{.type = net::ReplyType::kRefuse, .text = "timeout"};
    if (::poll(&ready, 1, 10'000) != 1) return end;
    char bytes[4096];
    const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    end.text = "closed";
    if (n <= 0) return end;
    replies_.append(bytes, static_cast<size_t>(n));
  }
}

net::Reply RawClient::Greet(const FakeTrace& trace, uint64_t first) {
  Send(net::EncodeHello({.first = first, .preamble = trace.preamble()}));
  return Receive();
}

void RawClient::EndWriting() const { ::shutdown(fd_.get(), SHUT_WR); }

struct Certificates::Authority {
  using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using CertPtr = std::unique_ptr<X509, decltype(&X509_free)>;

  KeyPtr key{::EVP_EC_gen("P-256"), &::EVP_PKEY_free};
  CertPtr cert{nullptr, &::X509_free};
  long serial = 1;

  static void AddExtension(X509* cert, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    ::X509V3_set_ctx(&context, cert, cert, nullptr, nullptr, 0);
    X509_EXTENSION* const extension =
        ::X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    ASSERT_NE(extension, nullptr) << value;
    ::X509_add_ext(cert, extension, -1);
    ::X509_EXTENSION_free(extension);
  }

  // A certificate for `subject`, signed by this authority (by itself while it
  // has none).
  CertPtr Sign(EVP_PKEY* subject, const std::string& name,
               const std::string& san, long valid_days) {
    CertPtr made(::X509_new(), &::X509_free);
    ::X509_set_version(made.get(), X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), ++serial);
    ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), -10L * 86400);
    ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), valid_days * 86400);
    if (!name.empty()) {
      ::X509_NAME_add_entry_by_txt(
          ::X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    }
    ::X509_set_issuer_name(
        made.get(), ::X509_get_subject_name(cert ? cert.get() : made.get()));
    ::X509_set_pubkey(made.get(), subject);
    AddExtension(made.get(), NID_basic_constraints,
                 cert ? "CA:FALSE" : "critical,CA:TRUE");
    if (!san.empty()) AddExtension(made.get(), NID_subject_alt_name, san);
    ::X509_sign(made.get(), key.get(), ::EVP_sha256());
    return made;
  }
};

namespace {

void WritePem(const std::string& path, X509* cert, EVP_PKEY* key) {
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr) << path;
  if (cert != nullptr) {
    ::PEM_write_X509(file, cert);
  } else {
    ::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  }
  std::fclose(file);
  ::chmod(path.c_str(), 0600);
}

}  // namespace

Certificates::Certificates(const TempFolder& folder)
    : folder_(folder),
      authority_(std::make_shared<Authority>()),
      other_(std::make_shared<Authority>()),
      ca_(folder.Path("ca.pem")),
      other_ca_(folder.Path("other-ca.pem")) {
  authority_->cert =
      authority_->Sign(authority_->key.get(), "authority", "", 30);
  other_->cert = other_->Sign(other_->key.get(), "other authority", "", 30);
  WritePem(ca_, authority_->cert.get(), nullptr);
  WritePem(other_ca_, other_->cert.get(), nullptr);
}

net::TlsFiles Certificates::Make(const std::string& name,
                                 const std::string& san, bool other_authority,
                                 long valid_days) {
  Authority& by = other_authority ? *other_ : *authority_;
  const Authority::KeyPtr key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  const auto cert = by.Sign(key.get(), name, san, valid_days);
  const std::string stem = folder_.Path("cert-" + std::to_string(by.serial) +
                                        (other_authority ? "-other" : ""));
  WritePem(stem + ".pem", cert.get(), nullptr);
  WritePem(stem + ".key", nullptr, key.get());
  return {.ca = ca_, .cert = stem + ".pem", .key = stem + ".key"};
}

bool Eventually(const std::function<bool()>& condition) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace tracefs::test
