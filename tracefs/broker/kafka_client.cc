#include "tracefs/broker/kafka_client.h"

#include <array>
#include <cerrno>
#include <thread>

#include "tracefs/base/join.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kConnectPatience = std::chrono::seconds(5);
constexpr int kAskMs = 500;
constexpr auto kAskPause = std::chrono::milliseconds(50);

// "scram-sha-512" -> "SCRAM-SHA-512".
std::string MechanismOf(std::string word) {
  for (char& c : word) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return word;
}

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};

}  // namespace

Status KafkaError(rd_kafka_resp_err_t error, const std::string& what) {
  int number = EIO;
  switch (error) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
      number = ECONNREFUSED;
      break;
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      number = ETIMEDOUT;
      break;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      number = EACCES;
      break;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      number = ENOENT;
      break;
    default:
      break;
  }
  return Status::SystemSaid(number, what + ": " + rd_kafka_err2str(error));
}

Status KafkaClient::Make(rd_kafka_type_t type, const Settings& more,
                         void (*prepare)(rd_kafka_conf_t*)) {
  const bool named = !spec_.user.empty();
  Settings settings = {
      {"bootstrap.servers", JoinWords(spec_.servers, ",")},
      {"client.id", "tracefs"},
      {"socket.keepalive.enable", "true"},
      {"reconnect.backoff.max.ms", "2000"},
      {"security.protocol",
       std::string(named ? "sasl_" : "") + (spec_.tls() ? "ssl" : "plaintext")},
  };
  if (spec_.tls()) {
    settings.emplace_back("ssl.ca.location", spec_.ca);
    settings.emplace_back("ssl.endpoint.identification.algorithm", "https");
  }
  if (!spec_.cert.empty()) {
    settings.emplace_back("ssl.certificate.location", spec_.cert);
    settings.emplace_back("ssl.key.location", spec_.key);
  }
  if (named) {
    const Result<std::string> password = spec_.ReadPassword();
    if (!password.ok()) return password.status();
    settings.emplace_back("sasl.mechanisms", MechanismOf(spec_.sasl));
    settings.emplace_back("sasl.username", spec_.user);
    settings.emplace_back("sasl.password", *password);
  }
  settings.insert(settings.end(), more.begin(), more.end());
  std::unique_ptr<rd_kafka_conf_t, ConfDeleter> conf(rd_kafka_conf_new());
  std::array<char, 512> text{};
  for (const auto& [name, value] : settings) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), text.data(),
                          text.size()) != RD_KAFKA_CONF_OK) {
      return Status::SystemSaid(EINVAL, "Kafka: " + std::string(text.data()));
    }
  }
  // What it has to say comes as errors.
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  rd_kafka_conf_set_error_cb(conf.get(), &TellError);
  rd_kafka_conf_set_opaque(conf.get(), this);
  prepare(conf.get());
  handle_ = rd_kafka_new(type, conf.get(), text.data(), text.size());
  if (handle_ == nullptr) {
    // Certificates and keys are read here.
    return Status::SystemSaid(EACCES, "Kafka: " + std::string(text.data()));
  }
  conf.release();  // it is the handle's
  return Status::Ok();
}

Status KafkaClient::FindTopic() {
  const auto until = Clock::now() + kConnectPatience;
  rd_kafka_topic_t* const topic =
      rd_kafka_topic_new(handle_, spec_.topic.c_str(), nullptr);
  if (topic == nullptr) return KafkaError(rd_kafka_last_error(), "topic");
  Status status;
  do {
    const struct rd_kafka_metadata* found = nullptr;
    rd_kafka_resp_err_t error =
        rd_kafka_metadata(handle_, 0, topic, &found, kAskMs);
    rd_kafka_poll(handle_, 0);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      status = !why_.empty() ? Status::SystemSaid(ECONNREFUSED, why_)
                             : KafkaError(error, "connecting");
      if (!lost().ok()) status = lost();
    } else {
      error = found->topic_cnt == 1 ? found->topics[0].err
                                    : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
      rd_kafka_metadata_destroy(found);
      status = error == RD_KAFKA_RESP_ERR_NO_ERROR
                   ? Status::Ok()
                   : KafkaError(error, "topic '" + spec_.topic + "'");
      // One that is being made has no leader at first.
      if (error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
          error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        std::this_thread::sleep_for(kAskPause);
      } else {
        break;
      }
    }
  } while (lost().ok() && Clock::now() < until);
  rd_kafka_topic_destroy(topic);
  return status;
}

void KafkaClient::End(int destroy_flags) {
  if (handle_ == nullptr) return;
  rd_kafka_destroy_flags(handle_, destroy_flags);
  handle_ = nullptr;
}

Status KafkaClient::FatalOf(rd_kafka_t* handle) {
  std::array<char, 512> text{};
  const rd_kafka_resp_err_t why =
      rd_kafka_fatal_error(handle, text.data(), text.size());
  if (why == RD_KAFKA_RESP_ERR_NO_ERROR) return Status::Ok();
  return KafkaError(why, "Kafka: " + std::string(text.data()));
}

void KafkaClient::TellError(rd_kafka_t* handle, int error, const char* reason,
                            void* self) {
  const auto kind = static_cast<rd_kafka_resp_err_t>(error);
  if (kind == RD_KAFKA_RESP_ERR__FATAL) {
    static_cast<KafkaClient*>(self)->fatal_ = FatalOf(handle);
    return;
  }
  static_cast<KafkaClient*>(self)->Heard(kind, reason);
}

void KafkaClient::Heard(rd_kafka_resp_err_t error, const std::string& reason) {
  // It says that all are down, and before that what each of them did.
  if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    why_ = reason;
    return;
  }
  lost_ = Status::SystemSaid(ECONNREFUSED, why_.empty() ? reason : why_);
}

}  // namespace tracefs
