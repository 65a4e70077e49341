// A publisher for JetStream: many messages are on their way at a time, and each
// is acknowledged by the server that keeps it.
#include <cerrno>

#include "tracefs/base/units.h"
#include "tracefs/broker/nats_connection.h"
#include "tracefs/broker/publisher.h"

namespace tracefs {
namespace {

constexpr int64_t kMaxPending = 4096;
constexpr int64_t kAckMs = 10'000;
// What the server counts to a message besides its body.
constexpr size_t kNatsHeaderRoom = 1024;
constexpr char kNumberHeader[] = "Tracefs-Number";

class NatsPublisher final : public Publisher {
 public:
  explicit NatsPublisher(const BrokerSpec& spec)
      : spec_(spec),
        subject_(spec.subject + '.' + SubjectToken(spec.host) + '.' +
                 spec.tracer),
        events_(std::make_shared<NatsEvents>()) {
    events_->subject = subject_;
  }

  Status Connect() {
    auto made = NatsConnection::Connect(spec_, events_);
    if (!made.ok()) return made.status();
    connection_ = *std::move(made);
    jsOptions options;
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = kMaxPending;
    options.PublishAsync.AckHandler = &TellAcknowledged;
    options.PublishAsync.AckHandlerClosure = events_.get();
    const Result<jsCtx*> context = connection_->JetStream(&options);
    if (!context.ok()) return context.status();
    context_ = *context;
    // A user who may only publish cannot ask; the first message then tells.
    return spec_.create ? connection_->FindStream(spec_) : Status::Ok();
  }

  size_t max_message() const override {
    const int64_t most = natsConnection_GetMaxPayload(connection_->get());
    return most > static_cast<int64_t>(2 * kNatsHeaderRoom)
               ? static_cast<size_t>(most) - kNatsHeaderRoom
               : 1;
  }

  Status Publish(const std::string& id, ByteSpan message) override {
    natsMsg* made = nullptr;
    natsStatus s = natsMsg_Create(&made, subject_.c_str(), nullptr,
                                  reinterpret_cast<const char*>(message.data()),
                                  static_cast<int>(message.size()));
    NatsMessage owned(made);
    const auto set = [&](const char* name, const std::string& value) {
      if (s == NATS_OK) s = natsMsgHeader_Set(made, name, value.c_str());
    };
    set(kHostHeader, spec_.host);
    set(kTracerHeader, spec_.tracer);
    set(kNumberHeader, std::to_string(published_));
    if (s != NATS_OK) return NatsError(s, "publishing");
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = id.c_str();
    options.ExpectStream = spec_.stream.c_str();
    options.MaxWait = kAckMs;
    natsMsg* given = owned.release();
    s = js_PublishMsgAsync(context_, &given, &options);
    owned.reset(given);  // what it did not take
    if (s != NATS_OK) return NatsError(s, "publishing");
    ++published_;
    return Status::Ok();
  }

  Result<uint64_t> Acknowledged() override { return events_->progress.Take(); }
  int event_fd() const override { return events_->progress.event_fd(); }

 private:
  // On a thread of the library's; the message is ours.
  static void TellAcknowledged(jsCtx* /*context*/, natsMsg* message,
                               jsPubAck* /*ack*/, jsPubAckErr* error,
                               void* closure) {
    const NatsMessage owned(message);
    auto* const events = static_cast<NatsEvents*>(closure);
    if (error != nullptr) {
      std::string why = error->ErrText != nullptr && *error->ErrText != '\0'
                            ? error->ErrText
                            : natsStatus_GetText(error->Err);
      if (error->Err == NATS_NO_RESPONDERS) {
        why = "no stream takes " + events->subject +
              ", or it has no leader at the moment";
      }
      events->progress.Fail(EIO, "NATS did not take a message: " + why);
      return;
    }
    const char* text = nullptr;
    if (natsMsgHeader_Get(message, kNumberHeader, &text) != NATS_OK) return;
    if (const auto number = ParseUnsigned(text)) events->progress.Done(*number);
  }

  const BrokerSpec spec_;
  const std::string subject_;
  uint64_t published_ = 0;
  const std::shared_ptr<NatsEvents> events_;
  std::unique_ptr<NatsConnection> connection_;
  jsCtx* context_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Publisher>> MakeNatsPublisher(const BrokerSpec& spec) {
  auto publisher = std::make_unique<NatsPublisher>(spec);
  if (Status s = publisher->Connect(); !s.ok()) return s;
  return std::unique_ptr<Publisher>(std::move(publisher));
}

}  // namespace tracefs
