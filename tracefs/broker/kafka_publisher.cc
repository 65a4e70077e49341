// A publisher for Kafka: an idempotent producer, whose messages all replicas
// that are in step have before they count. Those of one host and tracer have
// one key, and so one partition and their order.
#include <cerrno>

#include "tracefs/base/event_fd.h"
#include "tracefs/broker/kafka_client.h"
#include "tracefs/broker/progress.h"
#include "tracefs/broker/publisher.h"

namespace tracefs {
namespace {

// What the broker counts to a message besides its body.
constexpr size_t kKafkaHeaderRoom = 2048;
constexpr char kIdHeader[] = "Tracefs-Id";
constexpr uint64_t kOne = 1;

class KafkaPublisher final : public Publisher, private KafkaClient {
 public:
  explicit KafkaPublisher(const BrokerSpec& spec)
      : KafkaClient(spec), key_(KafkaKey(spec.host, spec.tracer)) {}
  KafkaPublisher(const KafkaPublisher&) = delete;
  KafkaPublisher& operator=(const KafkaPublisher&) = delete;
  ~KafkaPublisher() override {
    if (handle_ == nullptr) return;
    rd_kafka_purge(handle_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    End(0);
  }

  Status Connect() {
    if (!ready_) return Status::System(errno, "connecting");
    const Status made =
        Make(RD_KAFKA_PRODUCER,
             {{"enable.idempotence", "true"},
              {"acks", "all"},
              {"compression.codec", spec_.compression},
              {"message.max.bytes", std::to_string(spec_.message_bytes)},
              // What waits is bounded by who publishes.
              {"queue.buffering.max.kbytes", "1048576"},
              {"linger.ms", "5"},
              {"request.timeout.ms", "10000"},
              // The block is kept where it comes from, and sent again.
              {"message.timeout.ms", "20000"}},
             [](rd_kafka_conf_t* conf) {
               rd_kafka_conf_set_dr_msg_cb(conf, &TellDelivered);
             });
    if (!made.ok()) return made;
    if (Status s = FindTopic(); !s.ok()) return s;
    // It is written to when the first event comes, and all are taken then.
    rd_kafka_queue_t* const queue = rd_kafka_queue_get_main(handle_);
    rd_kafka_queue_io_event_enable(queue, ready_.get(), &kOne, sizeof kOne);
    rd_kafka_queue_destroy(queue);
    return Status::Ok();
  }

  size_t max_message() const override {
    return spec_.message_bytes > 2 * kKafkaHeaderRoom
               ? static_cast<size_t>(spec_.message_bytes) - kKafkaHeaderRoom
               : 1;
  }

  Status Publish(const std::string& id, ByteSpan message) override {
    rd_kafka_headers_t* const headers = rd_kafka_headers_new(3);
    const auto add = [&](const char* name, const std::string& value) {
      rd_kafka_header_add(headers, name, -1, value.data(),
                          static_cast<ssize_t>(value.size()));
    };
    add(kHostHeader, spec_.host);
    add(kTracerHeader, spec_.tracer);
    add(kIdHeader, id);
    const rd_kafka_resp_err_t error = rd_kafka_producev(
        handle_, RD_KAFKA_V_TOPIC(spec_.topic.c_str()),
        RD_KAFKA_V_KEY(key_.data(), key_.size()),
        RD_KAFKA_V_VALUE(const_cast<std::byte*>(message.data()),
                         message.size()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers),
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a number that is ours
        RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(published_)), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_headers_destroy(headers);
      const Status fatal = FatalOf(handle_);
      return fatal.ok() ? KafkaError(error, "publishing") : fatal;
    }
    ++published_;
    return Status::Ok();
  }

  Result<uint64_t> Acknowledged() override {
    // Before, so that what comes meanwhile is told again.
    ready_.Clear();
    rd_kafka_poll(handle_, 0);
    const Result<uint64_t> all = progress_.Take();
    // Brokers that come back get what waits; one that waits too long fails.
    if (all.ok() && !fatal().ok()) return fatal();
    return all;
  }
  int event_fd() const override { return ready_.get(); }

 private:
  static void TellDelivered(rd_kafka_t* handle,
                            const rd_kafka_message_t* message, void* self) {
    auto* const publisher =
        static_cast<KafkaPublisher*>(static_cast<KafkaClient*>(self));
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      publisher->progress_.Done(reinterpret_cast<uint64_t>(message->_private));
      return;
    }
    // After a fatal error the library says of it only that it was in a queue.
    Status why = FatalOf(handle);
    if (why.ok()) {
      why = KafkaError(message->err, "Kafka did not take a message");
    }
    publisher->progress_.Fail(why.error(), why.message());
  }

  const std::string key_;
  const EventFd ready_;
  SendProgress progress_;
  uint64_t published_ = 0;
};

}  // namespace

Result<std::unique_ptr<Publisher>> MakeKafkaPublisher(const BrokerSpec& spec) {
  auto publisher = std::make_unique<KafkaPublisher>(spec);
  if (Status s = publisher->Connect(); !s.ok()) return s;
  return std::unique_ptr<Publisher>(std::move(publisher));
}

}  // namespace tracefs
