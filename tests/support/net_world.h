// What tests of the network share: a receiver in this process and certificates
// of an authority of our own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_trace.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/tls.h"
#include "tracefs/recv/keeper.h"
#include "tracefs/recv/receiver.h"
#include "tracefs/recv/retention.h"

namespace tracefs::test {

// A receiver that runs in a thread of its own until it is stopped.
class RunningReceiver {
 public:
  struct Options {
    net::Transport transport = net::Transport::kUnix;
    std::string where = {};  // path or HOST:PORT
    std::string out = {};    // directory
    ReceiverLimits limits = {};
    net::TlsContext* tls = nullptr;
    uint64_t max_trace_bytes = 0;
    size_t max_traces = 65536;
    RetentionRules retention = {};
  };
  // Fails the test if it cannot be made.
  explicit RunningReceiver(const Options& options);
  // With a keeper of the test's.
  RunningReceiver(const Options& options, std::unique_ptr<Keeper> keeper);
  ~RunningReceiver() { Stop(); }

  void Stop();
  // Where it listens; of TCP and TLS, 127.0.0.1 and the port.
  const net::Address& address() const { return address_; }

 private:
  void Start(const Options& options);

  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<Receiver> receiver_;
  net::Address address_;
  UniqueFd stop_;
  std::thread thread_;
};

// A client by hand, for what a driver would never do.
class RawClient {
 public:
  explicit RawClient(const net::Address& address);
  void Send(std::string_view bytes) const;
  // The next reply; type kRefuse with the text "closed" at the end of the
  // connection, and "timeout" if nothing comes.
  net::Reply Receive();
  // HELLO and the answer to it.
  net::Reply Greet(const FakeTrace& trace, uint64_t first = 0);
  void EndWriting() const;
  int fd() const { return fd_.get(); }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
  std::string replies_;
};

// Certificates and keys in files of a folder.
class Certificates {
 public:
  explicit Certificates(const TempFolder& folder);
  // Files with the authority's certificate.
  std::string ca() const { return ca_; }
  std::string other_ca() const { return other_ca_; }
  // Makes a certificate with that common name, valid for the DNS name or IP
  // address `san` ("DNS:localhost", "IP:127.0.0.1"; empty: none).
  net::TlsFiles Make(const std::string& name, const std::string& san,
                     bool other_authority = false, long valid_days = 1);

 private:
  struct Authority;
  const TempFolder& folder_;
  std::shared_ptr<Authority> authority_;
  std::shared_ptr<Authority> other_;
  std::string ca_;
  std::string other_ca_;
};

// Waits for up to ten seconds until `condition` holds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace tracefs::test
