// A connection to NATS, with what JetStream needs. Its user makes it
// again, never the library: what was sent before a break must not be taken for
// delivered.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/broker/progress.h"
#include "tracefs/broker/spec.h"

namespace tracefs {

template <auto Destroy>
struct NatsDeleter {
  template <typename T>
  void operator()(T* thing) const {
    Destroy(thing);
  }
};
using NatsOptions =
    std::unique_ptr<natsOptions, NatsDeleter<natsOptions_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, NatsDeleter<natsMsg_Destroy>>;

// What threads of the library tell. They may do so for a moment after the
// connection is gone: it is kept for that long.
struct NatsEvents {
  SendProgress progress;
  std::string subject = {};
};

class NatsConnection {
 public:
  // `events` is told when the connection ends.
  static Result<std::unique_ptr<NatsConnection>> Connect(
      const BrokerSpec& spec, std::shared_ptr<NatsEvents> events);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  natsConnection* get() const { return connection_; }

  // The context, with those options; destroyed with the connection.
  Result<jsCtx*> JetStream(jsOptions* options);
  // Looks for the stream and, where the spec says so, makes it.
  Status FindStream(const BrokerSpec& spec);

 private:
  explicit NatsConnection(std::shared_ptr<NatsEvents> events)
      : events_(std::move(events)) {}

  std::shared_ptr<NatsEvents> events_;
  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
};

// "connecting: …", with the library's words.
Status NatsError(natsStatus error, const std::string& what);

}  // namespace tracefs
