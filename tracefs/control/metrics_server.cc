#include "tracefs/control/metrics_server.h"

#include <cerrno>
#include <cstring>

#include "tracefs/control/classic_metrics.h"
#include "tracefs/control/metrics_listener.h"

#if TRACEFS_HAVE_MICROHTTPD
#include <microhttpd.h>
#endif

namespace tracefs {

#if TRACEFS_HAVE_MICROHTTPD

namespace {

constexpr char kOpenMetrics[] = "application/openmetrics-text";
constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr char kClassicType[] = "text/plain; version=0.0.4; charset=utf-8";

// A client that does not ask for OpenMetrics may know only the older format.
bool AsksForOpenMetrics(MHD_Connection* connection) {
  const char* const accepted = MHD_lookup_connection_value(
      connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
  return accepted != nullptr && std::strstr(accepted, kOpenMetrics) != nullptr;
}

MHD_Result Respond(MHD_Connection* connection, unsigned status,
                   const std::string& text, const char* type) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

MHD_Result Answer(void* server, MHD_Connection* connection, const char* url,
                  const char* method, const char* /*version*/,
                  const char* /*data*/, size_t* data_size, void** seen) {
  constexpr char kText[] = "text/plain; charset=utf-8";
  // Called with the headers first; a body that follows is not wanted.
  if (*seen == nullptr) {
    *seen = server;
    if (std::strcmp(method, "GET") != 0 && std::strcmp(method, "HEAD") != 0) {
      return Respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                     "only GET is answered\n", kText);
    }
    return MHD_YES;
  }
  if (*data_size != 0) return MHD_NO;
  const auto& self = *static_cast<const MetricsServer*>(server);
  if (self.health() && std::strcmp(url, "/health") == 0) {
    const Status health = self.health()();
    return health.ok() ? Respond(connection, MHD_HTTP_OK, "ok\n", kText)
                       : Respond(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                                 health.message() + '\n', kText);
  }
  if (std::strcmp(url, "/metrics") != 0) {
    return Respond(connection, MHD_HTTP_NOT_FOUND, "metrics are at /metrics\n",
                   kText);
  }
  const std::string text = self.text()();
  return AsksForOpenMetrics(connection)
             ? Respond(connection, MHD_HTTP_OK, text, kOpenMetricsType)
             : Respond(connection, MHD_HTTP_OK, ClassicMetrics(text),
                       kClassicType);
}

// libmicrohttpd's messages are about clients and would fill the log.
void Silence(void*, const char*, va_list) {}

}  // namespace

bool MetricsServer::Available() { return true; }

Status MetricsServer::Start(std::function<std::string()> text,
                            std::function<Status()> health) {
  text_ = std::move(text);
  health_ = std::move(health);
  daemon_ = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, nullptr,
      nullptr, &Answer, this,                         //
      MHD_OPTION_EXTERNAL_LOGGER, &Silence, nullptr,  //
      MHD_OPTION_LISTEN_SOCKET, listener_.get(),      //
      MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,   //
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kMaxPerAddress,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,  //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    return Status::System(errno, "--metrics " + address_);
  }
  static_cast<void>(listener_.Release());  // it is the daemon's now
  return Status::Ok();
}

void MetricsServer::Stop() {
  if (daemon_ == nullptr) return;
  MHD_stop_daemon(daemon_);
  daemon_ = nullptr;
}

#else

bool MetricsServer::Available() { return false; }

Status MetricsServer::Start(std::function<std::string()>,
                            std::function<Status()>) {
  return Status::Ok();  // Open has failed before
}

void MetricsServer::Stop() {}

#endif

Result<std::unique_ptr<MetricsServer>> MetricsServer::Open(
    const std::string& address, const std::string& group) {
  if (!Available()) {
    return Status::Invalid(
        "--metrics: this program was built without libmicrohttpd; "
        "install libmicrohttpd-dev and build again");
  }
  Result<MetricsListener> listener = ListenForMetrics(address, group);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(listener->fd), std::move(listener->address)));
}

MetricsServer::~MetricsServer() { Stop(); }

}  // namespace tracefs
