#include "tracefs/broker/nats_connection.h"

#include <cerrno>
#include <deque>
#include <mutex>
#include <vector>

namespace tracefs {
namespace {

constexpr int64_t kConnectMs = 3000;
constexpr int64_t kPingMs = 10'000;  // a server that is silently gone
constexpr size_t kRetired = 16;
constexpr int64_t kWeekNs = int64_t{7} * 86'400 * 1'000'000'000;

// Keeps the events of the last few connections: the library's threads tell of
// their ends later, also when the process is about to end.
void Retire(std::shared_ptr<NatsEvents> events) {
  static std::mutex mu;
  static auto& retired = *new std::deque<std::shared_ptr<NatsEvents>>;
  std::lock_guard lock(mu);
  retired.push_back(std::move(events));
  if (retired.size() > kRetired) retired.pop_front();
}

Status SetCredentials(const BrokerSpec& spec, natsOptions* options) {
  if (!spec.creds.empty()) {
    // The library reads it at each attempt.
    const natsStatus s = natsOptions_SetUserCredentialsFromFiles(
        options, spec.creds.c_str(), nullptr);
    if (s != NATS_OK) return NatsError(s, "creds '" + spec.creds + "'");
  }
  if (spec.user.empty()) return Status::Ok();
  const Result<std::string> password = spec.ReadPassword();
  if (!password.ok()) return password.status();
  natsOptions_SetUserInfo(options, spec.user.c_str(), password->c_str());
  return Status::Ok();
}

Status SetTls(const BrokerSpec& spec, natsOptions* options) {
  if (!spec.tls()) return Status::Ok();
  natsStatus s = natsOptions_SetSecure(options, true);
  if (s == NATS_OK) {
    s = natsOptions_LoadCATrustedCertificates(options, spec.ca.c_str());
  }
  if (s != NATS_OK) return NatsError(s, "ca '" + spec.ca + "'");
  if (spec.cert.empty()) return Status::Ok();
  s = natsOptions_LoadCertificatesChain(options, spec.cert.c_str(),
                                        spec.key.c_str());
  return s == NATS_OK ? Status::Ok()
                      : NatsError(s, "cert '" + spec.cert + "' and key");
}

void TellClosed(natsConnection* connection, void* closure) {
  const char* why = nullptr;
  natsConnection_GetLastError(connection, &why);
  static_cast<NatsEvents*>(closure)->progress.Fail(
      ECONNRESET, std::string("the connection to NATS is lost") +
                      (why != nullptr && *why != '\0' ? ": " + std::string(why)
                                                      : std::string()));
}

// Errors that the server sends beside all else, as of permissions.
void TellError(natsConnection* connection, natsSubscription* /*subscription*/,
               natsStatus error, void* closure) {
  if (error == NATS_SLOW_CONSUMER) return;
  const char* why = nullptr;
  natsConnection_GetLastError(connection, &why);
  static_cast<NatsEvents*>(closure)->progress.Fail(
      EACCES,
      std::string("NATS says: ") +
          (why != nullptr && *why != '\0' ? why : natsStatus_GetText(error)));
}

}  // namespace

Status NatsError(natsStatus error, const std::string& what) {
  int number = EIO;
  if (error == NATS_NO_SERVER || error == NATS_CONNECTION_CLOSED) {
    number = ECONNREFUSED;
  } else if (error == NATS_TIMEOUT) {
    number = ETIMEDOUT;
  } else if (error == NATS_CONNECTION_AUTH_FAILED ||
             error == NATS_NOT_PERMITTED) {
    number = EACCES;
  }
  std::string text = what + ": " + natsStatus_GetText(error);
  natsStatus ignored;
  const char* const more = nats_GetLastError(&ignored);
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ')';
  return Status::SystemSaid(number, text);
}

Result<std::unique_ptr<NatsConnection>> NatsConnection::Connect(
    const BrokerSpec& spec, std::shared_ptr<NatsEvents> events) {
  natsOptions* made = nullptr;
  if (const natsStatus s = natsOptions_Create(&made); s != NATS_OK) {
    return NatsError(s, "NATS");
  }
  const NatsOptions options(made);
  std::vector<std::string> urls;
  std::vector<const char*> servers;
  for (const std::string& server : spec.servers) {
    urls.push_back((spec.tls() ? "tls://" : "nats://") + server);
  }
  for (const std::string& url : urls) servers.push_back(url.c_str());
  natsOptions_SetServers(made, servers.data(),
                         static_cast<int>(servers.size()));
  natsOptions_SetTimeout(made, kConnectMs);
  natsOptions_SetPingInterval(made, kPingMs);
  natsOptions_SetMaxPingsOut(made, 2);
  natsOptions_SetAllowReconnect(made, false);
  // What a server says of others is no reason to tell those who we are.
  natsOptions_SetIgnoreDiscoveredServers(made, true);
  natsOptions_SetName(made, "tracefs");
  natsOptions_SetClosedCB(made, &TellClosed, events.get());
  natsOptions_SetErrorHandler(made, &TellError, events.get());
  if (Status s = SetTls(spec, made); !s.ok()) return s;
  if (Status s = SetCredentials(spec, made); !s.ok()) return s;
  std::unique_ptr<NatsConnection> connection(
      new NatsConnection(std::move(events)));
  if (const natsStatus s =
          natsConnection_Connect(&connection->connection_, made);
      s != NATS_OK) {
    connection->connection_ = nullptr;
    return NatsError(s, "connecting");
  }
  return connection;
}

NatsConnection::~NatsConnection() {
  Retire(std::move(events_));
  jsCtx_Destroy(context_);
  if (connection_ == nullptr) return;
  natsConnection_Close(connection_);
  natsConnection_Destroy(connection_);
}

Result<jsCtx*> NatsConnection::JetStream(jsOptions* options) {
  const natsStatus s =
      natsConnection_JetStream(&context_, connection_, options);
  if (s != NATS_OK) return NatsError(s, "JetStream");
  return context_;
}

Status NatsConnection::FindStream(const BrokerSpec& spec) {
  jsStreamInfo* info = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  natsStatus s =
      js_GetStreamInfo(&info, context_, spec.stream.c_str(), nullptr, &code);
  jsStreamInfo_Destroy(info);
  if (s == NATS_OK) return Status::Ok();
  const std::string what = "stream '" + spec.stream + "'";
  if (s != NATS_NOT_FOUND) return NatsError(s, what);
  if (!spec.create) {
    return Status::SystemSaid(
        ENOENT, what + " is not there; make it with the subjects " +
                    spec.subject + ".>, or say create");
  }
  const std::string subjects = spec.subject + ".>";
  const char* const subject = subjects.c_str();
  const char* list[] = {subject};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = spec.stream.c_str();
  config.Subjects = list;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Replicas = spec.replicas;
  config.MaxAge = kWeekNs;
  if (spec.stream_bytes != 0) {
    config.MaxBytes = static_cast<int64_t>(spec.stream_bytes);
  }
  // A full stream refuses, and what comes waits at its sender.
  config.Discard = js_DiscardNew;
  info = nullptr;
  s = js_AddStream(&info, context_, &config, nullptr, &code);
  jsStreamInfo_Destroy(info);
  return s == NATS_OK ? Status::Ok() : NatsError(s, "making " + what);
}

}  // namespace tracefs
