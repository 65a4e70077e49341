// A consumer of Kafka: a member of a group, among which the broker shares out
// the partitions of the topic. What is done is committed as a place in each of
// them: the first message that must come again.
#include <algorithm>
#include <chrono>
#include <memory>

#include "tracefs/broker/consumer.h"
#include "tracefs/broker/kafka_client.h"
#include "tracefs/broker/kafka_offsets.h"
#include "tracefs/broker/publisher.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxKafkaFetchBytes = size_t{32} << 20;
constexpr auto kCommitPause = std::chrono::seconds(1);
constexpr int64_t kMaxPollMs = 300'000;

template <auto Destroy>
struct KafkaDeleter {
  template <typename T>
  void operator()(T* thing) const {
    Destroy(thing);
  }
};
using Message =
    std::unique_ptr<rd_kafka_message_t, KafkaDeleter<rd_kafka_message_destroy>>;
using Places =
    std::unique_ptr<rd_kafka_topic_partition_list_t,
                    KafkaDeleter<rd_kafka_topic_partition_list_destroy>>;

std::string HeaderOf(const rd_kafka_message_t* message, const char* name) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_message_headers(message, &headers) !=
          RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, name, &value, &size) !=
          RD_KAFKA_RESP_ERR_NO_ERROR ||
      value == nullptr) {
    return {};
  }
  return {static_cast<const char*>(value), size};
}

// When it was made or, where the topic says so, when the broker took it. One
// from the future is one of now: it would hide all that come after it.
int64_t TimeOf(const rd_kafka_message_t* message) {
  const int64_t now = std::chrono::duration_cast<milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  rd_kafka_timestamp_type_t type;
  const int64_t time = rd_kafka_message_timestamp(message, &type);
  return (time > 0 ? std::min(time, now) : now) * 1'000'000;
}

class KafkaConsumer final : public Consumer, private KafkaClient {
 public:
  KafkaConsumer(const BrokerSpec& spec, const ConsumerOptions& options)
      : KafkaClient(spec), options_(options) {}
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;
  ~KafkaConsumer() override {
    // The group is told, unless there is nobody to tell.
    if (handle_ != nullptr && subscribed_ && lost().ok()) {
      rd_kafka_consumer_close(handle_);
    }
    End(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }

  Status Connect() {
    const int64_t session =
        std::chrono::duration_cast<milliseconds>(options_.patience).count();
    const Status made =
        Make(RD_KAFKA_CONSUMER,
             {{"group.id", options_.group},
              {"enable.auto.commit", "false"},
              {"enable.auto.offset.store", "false"},
              {"auto.offset.reset", "earliest"},
              {"session.timeout.ms", std::to_string(session)},
              {"heartbeat.interval.ms",
               std::to_string(std::clamp<int64_t>(session / 4, 100, 3000))},
              {"max.poll.interval.ms",
               std::to_string(std::max(session, kMaxPollMs))},
              {"queued.max.messages.kbytes", "32768"},
              {"fetch.message.max.bytes", "4194304"}},
             [](rd_kafka_conf_t* conf) {
               rd_kafka_conf_set_rebalance_cb(conf, &TellRebalanced);
             });
    if (!made.ok()) return made;
    if (Status s = FindTopic(); !s.ok()) return s;
    rd_kafka_poll_set_consumer(handle_);
    const Places topics(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(topics.get(), spec_.topic.c_str(),
                                      RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t error = rd_kafka_subscribe(handle_, topics.get());
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return KafkaError(error, "group '" + options_.group + "'");
    }
    subscribed_ = true;
    return Status::Ok();
  }

  Result<std::vector<Delivery>> Fetch(size_t most,
                                      milliseconds patience) override {
    if (Clock::now() - tried_ >= kCommitPause) {
      if (Status s = Commit(); !s.ok()) return s;
    }
    std::vector<Delivery> deliveries;
    size_t bytes = 0;
    while (deliveries.size() < most && bytes < kMaxKafkaFetchBytes) {
      // Those that are there, once there is one.
      const auto wait = deliveries.empty() ? patience : milliseconds(0);
      const Message message(
          rd_kafka_consumer_poll(handle_, static_cast<int>(wait.count())));
      if (!lost().ok()) return lost();
      if (message == nullptr) break;
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        // What was fetched is not acknowledged, and comes again.
        return KafkaError(message->err, rd_kafka_message_errstr(message.get()));
      }
      bytes += message->len;
      deliveries.push_back(Take(message.get()));
    }
    return deliveries;
  }

  Status Acknowledge(std::span<const uint64_t> numbers) override {
    for (const uint64_t number : numbers) offsets_.Acknowledge(number);
    return Commit();
  }

 private:
  Delivery Take(const rd_kafka_message_t* message) {
    Delivery delivery;
    delivery.number = offsets_.Take(message->partition, message->offset);
    delivery.time_ns = TimeOf(message);
    const std::string host = HeaderOf(message, kHostHeader);
    const std::string tracer = HeaderOf(message, kTracerHeader);
    const std::string_view key(static_cast<const char*>(message->key),
                               message->key == nullptr ? 0 : message->key_len);
    if (!IsHostName(host) || !IsTracerName(tracer) ||
        key != KafkaKey(host, tracer)) {
      delivery.body = "message " + std::to_string(message->offset) +
                      " of partition " + std::to_string(message->partition) +
                      " does not say whose it is";
      return delivery;
    }
    delivery.host = host;
    delivery.tracer = tracer;
    if (message->payload != nullptr) {
      delivery.body.assign(static_cast<const char*>(message->payload),
                           message->len);
    }
    return delivery;
  }

  // What cannot be committed now is committed later, or comes again.
  Status Commit() {
    const auto due = offsets_.Due();
    if (due.empty()) return Status::Ok();
    tried_ = Clock::now();
    const Places places(
        rd_kafka_topic_partition_list_new(static_cast<int>(due.size())));
    for (const auto& [partition, offset] : due) {
      rd_kafka_topic_partition_list_add(places.get(), spec_.topic.c_str(),
                                        partition)
          ->offset = offset;
    }
    const rd_kafka_resp_err_t error =
        rd_kafka_commit(handle_, places.get(), /*async=*/0);
    if (error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
        error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
      return KafkaError(error, "acknowledging");
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Status::Ok();
    for (int i = 0; i < places->cnt; ++i) {
      const rd_kafka_topic_partition_t& one = places->elems[i];
      if (one.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        offsets_.Committed(one.partition, one.offset);
      }
    }
    return Status::Ok();
  }

  static void TellRebalanced(rd_kafka_t* handle, rd_kafka_resp_err_t error,
                             rd_kafka_topic_partition_list_t* partitions,
                             void* self) {
    // What we have of them may be another's now: it is stored, found to be
    // there where it comes again, and not committed by us.
    static_cast<KafkaConsumer*>(static_cast<KafkaClient*>(self))
        ->offsets_.Forget();
    rd_kafka_assign(handle, error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
                                ? partitions
                                : nullptr);
  }

  const ConsumerOptions options_;
  bool subscribed_ = false;
  KafkaOffsets offsets_;
  Clock::time_point tried_{};
};

}  // namespace

Result<std::unique_ptr<Consumer>> MakeKafkaConsumer(
    const BrokerSpec& spec, const ConsumerOptions& options) {
  auto consumer = std::make_unique<KafkaConsumer>(spec, options);
  if (Status s = consumer->Connect(); !s.ok()) return s;
  return std::unique_ptr<Consumer>(std::move(consumer));
}

}  // namespace tracefs
