// MetricsServer: serves one text, made for each request, over HTTP: what
// Prometheus and the like collect (docs/metrics.md). And whether all is well.
//
// The HTTP is libmicrohttpd's, in one thread of its own. A client can only hold
// one of a bounded number of connections for a few seconds: headers are
// bounded, bodies and other methods refused.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

struct MHD_Daemon;

namespace tracefs {

class MetricsServer {
 public:
  static constexpr unsigned kMaxConnections = 64;
  static constexpr unsigned kMaxPerAddress = 16;  // of TCP
  static constexpr unsigned kIdleSeconds = 5;
  static constexpr size_t kMaxRequestBytes = 16 * 1024;

  // Whether this program was built with it.
  static bool Available();

  // Listens at HOST:PORT, [HOST]:PORT or unix:PATH (made with mode 0600, or
  // 0660 and a group if one is named; a leftover of ours without a listener is
  // replaced). Before the sandbox is entered. kInvalid for an address of
  // another form, kSystem if it is taken.
  static Result<std::unique_ptr<MetricsServer>> Open(const std::string& address,
                                                     const std::string& group);
  // One that listens already, at that address.
  static std::unique_ptr<MetricsServer> Adopt(UniqueFd listener,
                                              std::string address) {
    return std::unique_ptr<MetricsServer>(
        new MetricsServer(std::move(listener), std::move(address)));
  }
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Begins to answer GET /metrics with what `text` returns, OpenMetrics, or,
  // for clients that do not accept that, the older format; in a thread of its
  // own. `text` is used until Stop returns. With `health`, GET /health is
  // answered by 200, or 503 and the reason.
  Status Start(std::function<std::string()> text,
               std::function<Status()> health = {});
  void Stop();

  // Where it listens, with the port that was given for port 0.
  const std::string& address() const { return address_; }
  // Before Start.
  int listener() const { return listener_.get(); }
  // What makes the text. Threads: the server's own.
  const std::function<std::string()>& text() const { return text_; }
  const std::function<Status()>& health() const { return health_; }

 private:
  MetricsServer(UniqueFd listener, std::string address)
      : listener_(std::move(listener)), address_(std::move(address)) {}

  UniqueFd listener_;
  const std::string address_;
  std::function<std::string()> text_;
  std::function<Status()> health_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace tracefs
