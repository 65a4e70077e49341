#include "tracefs/net/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tracefs::net {
namespace {

using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using SslPtr = std::unique_ptr<SSL, decltype(&SSL_free)>;

// Why OpenSSL's last call failed, and forgets it.
std::string Reason() {
  const unsigned long code = ::ERR_peek_error();
  ::ERR_clear_error();
  const char* text = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return text != nullptr ? text : "unknown error";
}

constexpr size_t kMaxPemBytes = size_t{4} << 20;

struct ClosesBio {
  void operator()(BIO* bio) const { ::BIO_free_all(bio); }
};
using BioPtr = std::unique_ptr<BIO, ClosesBio>;

// What stands in one of the files. A key leaves nothing behind.
class PemFile {
 public:
  // `what` and `path` are for messages; `given` as TlsFiles has it.
  static Result<PemFile> Read(const std::string& what, const std::string& path,
                              int given) {
    PemFile file;
    file.what_ = "TLS " + what + " '" + path + "'";
    file.path_ = path;
    file.fd_.Reset(given >= 0
                       ? ::fcntl(given, F_DUPFD_CLOEXEC, 0)
                       : ::open(path.c_str(),
                                O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file.fd_) return Status::System(errno, file.what_);
    file.bio_.reset(::BIO_new(::BIO_s_secmem()));
    if (file.bio_ == nullptr) return Status::System(ENOMEM, file.what_);
    std::array<char, 16384> buffer;
    Status status;
    for (off_t at = 0;;) {
      const ssize_t n =
          ::pread(file.fd_.get(), buffer.data(), buffer.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) status = Status::System(errno, file.what_);
      if (n <= 0) break;
      at += n;
      if (static_cast<size_t>(at) > kMaxPemBytes) {
        status = Status::Invalid(file.what_ + " is longer than 4 MiB");
        break;
      }
      ::BIO_write(file.bio_.get(), buffer.data(), static_cast<int>(n));
    }
    ::OPENSSL_cleanse(buffer.data(), buffer.size());
    if (!status.ok()) return status;
    return file;
  }

  // Whoever can read a private key can pretend to be us.
  Status CheckSecret() const {
    struct stat st;
    if (::fstat(fd_.get(), &st) != 0) return Status::System(errno, what_);
    if (!S_ISREG(st.st_mode)) return Status::Invalid(what_ + " is not a file");
    if ((st.st_mode & 077) != 0) {
      return Status::Invalid(what_ + " can be read by others; run chmod 600 '" +
                             path_ + "'");
    }
    if (st.st_uid != ::geteuid()) {
      return Status::Invalid(what_ + " belongs to user " +
                             std::to_string(st.st_uid) + ", not to us");
    }
    return Status::Ok();
  }

  BIO* bio() const { return bio_.get(); }
  Status Refused(const char* advice) const {
    return Status::Invalid(what_ + ": " + Reason() + advice);
  }

 private:
  PemFile() = default;

  std::string what_;
  std::string path_;
  UniqueFd fd_;
  BioPtr bio_;
};

// A key that asks for a passphrase must not wait at a terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

// Certificates, and lists of revoked ones, of those who are believed.
bool AddAuthorities(SSL_CTX* context, BIO* bio) {
  STACK_OF(X509_INFO)* const infos =
      ::PEM_X509_INFO_read_bio(bio, nullptr, &NoPassphrase, nullptr);
  if (infos == nullptr) return false;
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  int added = 0;
  for (int i = 0; i < sk_X509_INFO_num(infos); ++i) {
    const X509_INFO* info = sk_X509_INFO_value(infos, i);
    if (info->x509 != nullptr)
      added += ::X509_STORE_add_cert(store, info->x509);
    if (info->crl != nullptr) added += ::X509_STORE_add_crl(store, info->crl);
  }
  sk_X509_INFO_pop_free(infos, ::X509_INFO_free);
  if (added == 0) ERR_raise(ERR_LIB_PEM, PEM_R_NO_START_LINE);
  return added != 0;
}

// Our certificate, then those between it and the authority.
bool UseChain(SSL_CTX* context, BIO* bio) {
  using CertPtr = std::unique_ptr<X509, decltype(&::X509_free)>;
  CertPtr own(::PEM_read_bio_X509_AUX(bio, nullptr, &NoPassphrase, nullptr),
              &::X509_free);
  if (own == nullptr || ::SSL_CTX_use_certificate(context, own.get()) != 1) {
    return false;
  }
  for (;;) {
    CertPtr next(::PEM_read_bio_X509(bio, nullptr, &NoPassphrase, nullptr),
                 &::X509_free);
    if (next == nullptr) break;
    if (::SSL_CTX_add0_chain_cert(context, next.get()) != 1) return false;
    static_cast<void>(next.release());  // the context's now
  }
  const unsigned long last = ::ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(last) == ERR_LIB_PEM &&
                      ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (at_end) ::ERR_clear_error();
  return at_end;
}

bool UseKey(SSL_CTX* context, BIO* bio) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_bio_PrivateKey(bio, nullptr, &NoPassphrase, nullptr),
      &::EVP_PKEY_free);
  return key != nullptr && ::SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

class TlsStream final : public Stream {
 public:
  TlsStream(UniqueFd fd, SslPtr ssl, std::string host)
      : fd_(std::move(fd)), ssl_(std::move(ssl)), host_(std::move(host)) {}

  Result<bool> Handshake() override {
    ::ERR_clear_error();
    const int rc = ::SSL_do_handshake(ssl_.get());
    if (rc == 1) return true;
    const int error = Note(rc);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      return false;
    }
    const long verdict = ::SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) {
      ::ERR_clear_error();
      std::string advice =
          "; check that `ca` has the authority of the peer's certificate";
      if (verdict == X509_V_ERR_HOSTNAME_MISMATCH ||
          verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        advice = "; it is not for '" + host_ +
                 "': connect to a name that the certificate has, or give it "
                 "one";
      } else if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) {
        advice = "; renew it";
      }
      return Status::System(
          EPROTO, std::string("TLS: the peer's certificate was refused: ") +
                      ::X509_verify_cert_error_string(verdict) + advice);
    }
    return Failed(error, "TLS handshake");
  }

  Result<Moved> Read(std::span<std::byte> out) override {
    ::ERR_clear_error();
    size_t n = 0;
    const int rc = ::SSL_read_ex(ssl_.get(), out.data(), out.size(), &n);
    if (rc == 1) {
      read_wants_write_ = false;
      return Moved{.bytes = n};
    }
    switch (const int error = ::SSL_get_error(ssl_.get(), rc)) {
      case SSL_ERROR_WANT_READ:
        read_wants_write_ = false;
        return Moved{};
      case SSL_ERROR_WANT_WRITE:
        read_wants_write_ = true;
        return Moved{};
      case SSL_ERROR_ZERO_RETURN:
        return Moved{.ended = true};
      default:
        return Failed(error, "receiving over TLS");
    }
  }

  Result<Moved> Write(ByteSpan bytes) override {
    ::ERR_clear_error();
    size_t n = 0;
    const int rc = ::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n);
    if (rc == 1) {
      write_wants_read_ = false;
      return Moved{.bytes = n};
    }
    switch (const int error = ::SSL_get_error(ssl_.get(), rc)) {
      case SSL_ERROR_WANT_WRITE:
        write_wants_read_ = false;
        return Moved{};
      case SSL_ERROR_WANT_READ:
        write_wants_read_ = true;
        return Moved{};
      default:
        return Failed(error, "sending over TLS");
    }
  }

  short Events(bool read, bool write) const override {
    if (!SSL_is_init_finished(ssl_.get())) {
      return SSL_want_write(ssl_.get()) ? POLLOUT : POLLIN;
    }
    short events = 0;
    if (read) events |= read_wants_write_ ? POLLOUT : POLLIN;
    if (write) events |= write_wants_read_ ? POLLIN : POLLOUT;
    return events;
  }
  bool HasPending() const override {
    return ::SSL_has_pending(ssl_.get()) == 1;
  }
  void EndWriting() override {
    ::ERR_clear_error();
    static_cast<void>(::SSL_shutdown(ssl_.get()));
    ::ERR_clear_error();
  }
  int fd() const override { return fd_.get(); }

  SSL* ssl() const { return ssl_.get(); }

 private:
  int Note(int rc) const { return ::SSL_get_error(ssl_.get(), rc); }

  static Status Failed(int error, std::string_view what) {
    // A peer that cuts the connection without a word.
    if (error == SSL_ERROR_SYSCALL) {
      const int code = errno;
      ::ERR_clear_error();
      return Status::System(code != 0 ? code : ECONNRESET, what);
    }
    const unsigned long code = ::ERR_peek_error();
    if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      ::ERR_clear_error();
      return Status::System(ECONNRESET, what);
    }
    std::string text = Reason();
    // The peer's verdict on our own certificate comes as an alert.
    if (text.find("alert") != std::string::npos &&
        (text.find("certificate") != std::string::npos ||
         text.find("unknown ca") != std::string::npos)) {
      text +=
          "; the peer does not accept our certificate: check `cert` and the "
          "authority that the peer trusts";
    }
    return Status::System(EPROTO, std::string(what) + ": " + text);
  }

  const UniqueFd fd_;
  const SslPtr ssl_;
  const std::string host_;
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
};

class Context final : public TlsContext {
 public:
  Context(ContextPtr context, Role role)
      : context_(std::move(context)), role_(role) {}

  Result<std::unique_ptr<Stream>> Wrap(UniqueFd fd,
                                       const std::string& host) override {
    ::ERR_clear_error();
    SslPtr ssl(::SSL_new(context_.get()), &::SSL_free);
    if (ssl == nullptr || ::SSL_set_fd(ssl.get(), fd.get()) != 1) {
      return Status::System(ENOMEM, "TLS: " + Reason());
    }
    if (role_ == Role::kReceiver) {
      ::SSL_set_accept_state(ssl.get());
    } else {
      ::SSL_set_connect_state(ssl.get());
      X509_VERIFY_PARAM* const wanted = ::SSL_get0_param(ssl.get());
      ::X509_VERIFY_PARAM_set_hostflags(wanted,
                                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
      // A number is looked for among the certificate's numbers.
      if (::X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1) {
        ::ERR_clear_error();
        if (::SSL_set1_host(ssl.get(), host.c_str()) != 1 ||
            ::SSL_set_tlsext_host_name(ssl.get(), host.c_str()) != 1) {
          return Status::Invalid("TLS: '" + host + "' is no host name");
        }
      }
    }
    return std::unique_ptr<Stream>(
        std::make_unique<TlsStream>(std::move(fd), std::move(ssl), host));
  }

  std::string PeerName(const Stream& stream) const override {
    const auto& tls = static_cast<const TlsStream&>(stream);
    const std::unique_ptr<X509, decltype(&::X509_free)> cert(
        ::SSL_get1_peer_certificate(tls.ssl()), &::X509_free);
    if (cert == nullptr) return {};
    X509_NAME* const subject = ::X509_get_subject_name(cert.get());
    const int at =
        ::X509_NAME_get_index_by_NID(subject, NID_commonName, /*lastpos=*/-1);
    if (at >= 0) {
      return Utf8(
          ::X509_NAME_ENTRY_get_data(::X509_NAME_get_entry(subject, at)));
    }
    const std::unique_ptr<GENERAL_NAMES, decltype(&::GENERAL_NAMES_free)> names(
        static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(
            cert.get(), NID_subject_alt_name, nullptr, nullptr)),
        &::GENERAL_NAMES_free);
    for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
      const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
      if (name->type == GEN_DNS) return Utf8(name->d.dNSName);
    }
    return {};
  }

 private:
  static std::string Utf8(const ASN1_STRING* text) {
    unsigned char* bytes = nullptr;
    const int n = text == nullptr ? -1 : ::ASN1_STRING_to_UTF8(&bytes, text);
    if (n < 0) return {};
    std::string copy(reinterpret_cast<const char*>(bytes),
                     static_cast<size_t>(n));
    OPENSSL_free(bytes);
    return copy;
  }

  const ContextPtr context_;
  const Role role_;
};

}  // namespace

Status CheckNotExpired(const std::string& cert) {
  Result<PemFile> file = PemFile::Read("certificate", cert, -1);
  if (!file.ok()) return file.status();
  ::ERR_clear_error();
  const std::unique_ptr<X509, decltype(&::X509_free)> own(
      ::PEM_read_bio_X509_AUX(file->bio(), nullptr, &NoPassphrase, nullptr),
      &::X509_free);
  if (own == nullptr) return file->Refused("");
  const ASN1_TIME* const end = ::X509_get0_notAfter(own.get());
  if (::X509_cmp_current_time(end) > 0) return Status::Ok();
  const BioPtr text(::BIO_new(::BIO_s_mem()));
  std::array<char, 64> when{};
  if (text != nullptr && ::ASN1_TIME_print(text.get(), end) == 1) {
    ::BIO_read(text.get(), when.data(), static_cast<int>(when.size() - 1));
  }
  return Status::SystemSaid(EKEYEXPIRED, "TLS certificate '" + cert +
                                             "' has expired, " + when.data() +
                                             "; renew it");
}

Result<std::unique_ptr<TlsContext>> TlsContext::Create(Role role,
                                                       const TlsFiles& files) {
  ::ERR_clear_error();
  const Result<PemFile> key = PemFile::Read("key", files.key, files.given[2]);
  if (!key.ok()) return key.status();
  if (Status s = key->CheckSecret(); !s.ok()) return s;
  const Result<PemFile> ca =
      PemFile::Read("authorities", files.ca, files.given[0]);
  if (!ca.ok()) return ca.status();
  const Result<PemFile> cert =
      PemFile::Read("certificate", files.cert, files.given[1]);
  if (!cert.ok()) return cert.status();
  ContextPtr context(::SSL_CTX_new(::TLS_method()), &::SSL_CTX_free);
  if (context == nullptr) return Status::System(ENOMEM, "TLS: " + Reason());
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  ::SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
  // Each connection proves both sides again.
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  ::SSL_CTX_set_verify(context.get(),
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  if (!AddAuthorities(context.get(), ca->bio())) {
    return ca->Refused("; `ca` is a file with certificates in PEM");
  }
  if (!UseChain(context.get(), cert->bio())) {
    return cert->Refused("; `cert` is a file with a certificate in PEM");
  }
  if (!UseKey(context.get(), key->bio())) {
    return key->Refused(
        "; `key` is a file with the private key of the certificate `cert`, in "
        "PEM, without a passphrase");
  }
  return std::unique_ptr<TlsContext>(
      std::make_unique<Context>(std::move(context), role));
}

}  // namespace tracefs::net
