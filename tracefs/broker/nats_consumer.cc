// A consumer of JetStream: a durable pull consumer, the name of which is the
// group's; its members ask for messages and get others each.
#include <unordered_map>

#include "tracefs/broker/consumer.h"
#include "tracefs/broker/nats_connection.h"
#include "tracefs/broker/publisher.h"

namespace tracefs {
namespace {

constexpr int64_t kMaxNatsFetchBytes = int64_t{32} << 20;
constexpr int64_t kFlushMs = 10'000;

struct ListDeleter {
  natsMsgList list = {};
  ~ListDeleter() { natsMsgList_Destroy(&list); }
};

std::string HeaderOf(natsMsg* message, const char* name) {
  const char* text = nullptr;
  return natsMsgHeader_Get(message, name, &text) == NATS_OK && text != nullptr
             ? text
             : "";
}

class NatsConsumer final : public Consumer {
 public:
  NatsConsumer(const BrokerSpec& spec, const ConsumerOptions& options)
      : spec_(spec),
        options_(options),
        events_(std::make_shared<NatsEvents>()) {}
  NatsConsumer(const NatsConsumer&) = delete;
  NatsConsumer& operator=(const NatsConsumer&) = delete;
  ~NatsConsumer() override { natsSubscription_Destroy(subscription_); }

  Status Connect() {
    auto made = NatsConnection::Connect(spec_, events_);
    if (!made.ok()) return made.status();
    connection_ = *std::move(made);
    jsOptions options;
    jsOptions_Init(&options);
    const Result<jsCtx*> context = connection_->JetStream(&options);
    if (!context.ok()) return context.status();
    if (Status s = connection_->FindStream(spec_); !s.ok()) return s;
    const std::string filter = spec_.subject + ".>";
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Durable = options_.group.c_str();
    config.FilterSubject = filter.c_str();
    config.AckPolicy = js_AckExplicit;
    config.AckWait = options_.patience.count();
    config.MaxAckPending = static_cast<int64_t>(options_.max_messages) * 16;
    jsConsumerInfo* info = nullptr;
    jsErrCode code = static_cast<jsErrCode>(0);
    // One that is there stays as it is: changing it would have the server
    // forget whom it has sent what, and send that again after a while.
    natsStatus s = js_GetConsumerInfo(&info, *context, spec_.stream.c_str(),
                                      options_.group.c_str(), nullptr, &code);
    if (s == NATS_NOT_FOUND) {
      s = js_AddConsumer(&info, *context, spec_.stream.c_str(), &config,
                         nullptr, &code);
    }
    jsConsumerInfo_Destroy(info);
    if (s != NATS_OK) return NatsError(s, "group '" + options_.group + "'");
    jsSubOptions subscribe;
    jsSubOptions_Init(&subscribe);
    subscribe.Stream = spec_.stream.c_str();
    subscribe.Consumer = options_.group.c_str();
    s = js_PullSubscribe(&subscription_, *context, filter.c_str(),
                         options_.group.c_str(), &options, &subscribe, &code);
    if (s != NATS_OK) return NatsError(s, "group '" + options_.group + "'");
    // What was asked for comes: there is no more of it than that.
    natsSubscription_SetPendingLimits(subscription_, -1, -1);
    return Status::Ok();
  }

  Result<std::vector<Delivery>> Fetch(
      size_t most, std::chrono::milliseconds patience) override {
    // The connection's end is told beside.
    if (const auto lost = events_->progress.Take(); !lost.ok()) {
      return lost.status();
    }
    ListDeleter fetched;
    jsFetchRequest request;
    jsFetchRequest_Init(&request);
    request.Batch = static_cast<int>(most);
    request.MaxBytes = kMaxNatsFetchBytes;
    request.Expires = patience.count() * 1'000'000;
    const natsStatus s =
        natsSubscription_FetchRequest(&fetched.list, subscription_, &request);
    std::vector<Delivery> deliveries;
    // There may be some and an error: what is over then comes next time.
    if (fetched.list.Count == 0 && s != NATS_OK) {
      if (s == NATS_TIMEOUT) return deliveries;
      return NatsError(s, "fetching");
    }
    for (int i = 0; i < fetched.list.Count; ++i) {
      deliveries.push_back(Take(fetched.list.Msgs[i]));
    }
    return deliveries;
  }

  Status Acknowledge(std::span<const uint64_t> numbers) override {
    for (const uint64_t number : numbers) {
      const auto found = replies_.find(number);
      if (found == replies_.end()) continue;
      const natsStatus s = natsConnection_PublishString(
          connection_->get(), found->second.c_str(), "+ACK");
      if (s != NATS_OK) return NatsError(s, "acknowledging");
      replies_.erase(found);
    }
    const natsStatus s =
        natsConnection_FlushTimeout(connection_->get(), kFlushMs);
    return s == NATS_OK ? Status::Ok() : NatsError(s, "acknowledging");
  }

 private:
  // Where it is acknowledged, and of when it is. False if that would not be an
  // acknowledgement to our own group: the answer goes out with our rights,
  // wherever the broker says.
  bool TakeReply(natsMsg* message, Delivery* delivery) {
    const char* const reply = natsMsg_GetReply(message);
    jsMsgMetaData* meta = nullptr;
    const bool ours =
        reply != nullptr && natsMsg_GetMetaData(&meta, message) == NATS_OK &&
        meta->Stream != nullptr && meta->Consumer != nullptr &&
        spec_.stream == meta->Stream && options_.group == meta->Consumer;
    if (ours) {
      delivery->time_ns = meta->Timestamp;
      replies_[delivery->number] = reply;
    }
    jsMsgMetaData_Destroy(meta);
    return ours;
  }

  Delivery Take(natsMsg* message) {
    Delivery delivery;
    delivery.number = ++last_;
    if (!TakeReply(message, &delivery)) {
      delivery.body = "a message that the broker did not take from the stream";
      return delivery;
    }
    const std::string host = HeaderOf(message, kHostHeader);
    const std::string tracer = HeaderOf(message, kTracerHeader);
    // The server says who may publish to a subject; the headers must agree.
    const std::string subject =
        spec_.subject + '.' + SubjectToken(host) + '.' + tracer;
    if (!IsHostName(host) || !IsTracerName(tracer) ||
        subject != natsMsg_GetSubject(message)) {
      delivery.body = std::string("a message of ") +
                      natsMsg_GetSubject(message) +
                      " that does not say so itself";
      return delivery;
    }
    delivery.host = host;
    delivery.tracer = tracer;
    delivery.body.assign(natsMsg_GetData(message),
                         static_cast<size_t>(natsMsg_GetDataLength(message)));
    return delivery;
  }

  const BrokerSpec spec_;
  const ConsumerOptions options_;
  const std::shared_ptr<NatsEvents> events_;
  std::unique_ptr<NatsConnection> connection_;
  natsSubscription* subscription_ = nullptr;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, std::string> replies_;  // by number
};

}  // namespace

Result<std::unique_ptr<Consumer>> MakeNatsConsumer(
    const BrokerSpec& spec, const ConsumerOptions& options) {
  auto consumer = std::make_unique<NatsConsumer>(spec, options);
  if (Status s = consumer->Connect(); !s.ok()) return s;
  return std::unique_ptr<Consumer>(std::move(consumer));
}

}  // namespace tracefs
