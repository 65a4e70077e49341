// What publishers and consumers of Kafka share: the library's handle, made as a
// BrokerSpec says, and what it tells of connections.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/broker/spec.h"

namespace tracefs {

// Used by one thread: the library's callbacks come while that one asks.
class KafkaClient {
 public:
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

 protected:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  explicit KafkaClient(BrokerSpec spec) : spec_(std::move(spec)) {}
  // A derived class has ended the handle by then, while its callbacks exist.
  virtual ~KafkaClient() = default;

  // Makes the handle, with `more` settings. `prepare` may set callbacks, whose
  // opaque pointer is this KafkaClient.
  Status Make(rd_kafka_type_t type, const Settings& more,
              void (*prepare)(rd_kafka_conf_t*));
  // Waits, some seconds at most, until a broker knows the topic.
  Status FindTopic();
  // An error after which nothing goes on, ever.
  const Status& fatal() const { return fatal_; }
  // The same asked of the library, which knows before it tells. Threads: any.
  static Status FatalOf(rd_kafka_t* handle);
  // The same, or no broker was there at some moment: the library looks for them
  // on, but nobody would be told.
  const Status& lost() const { return fatal_.ok() ? lost_ : fatal_; }
  // The handle is of no use any more; without waiting for anybody.
  void End(int destroy_flags);

  const BrokerSpec spec_;
  rd_kafka_t* handle_ = nullptr;

 private:
  static void TellError(rd_kafka_t* handle, int error, const char* reason,
                        void* self);
  void Heard(rd_kafka_resp_err_t error, const std::string& reason);

  std::string why_;  // the last error of a connection
  Status fatal_;
  Status lost_;
};

// "publishing: …", with the library's words.
Status KafkaError(rd_kafka_resp_err_t error, const std::string& what);

}  // namespace tracefs
