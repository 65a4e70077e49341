// Publisher: hands messages to a broker, and learns which of them it keeps.
// One connection; when that is lost, so is the publisher.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/broker/spec.h"

namespace tracefs {

// Used by one thread.
class Publisher {
 public:
  virtual ~Publisher() = default;

  // Bytes of the longest message that the broker takes.
  virtual size_t max_message() const = 0;

  // Takes a copy. `id` tells the message from all others: a broker that has it
  // already keeps one. An error ends the publisher.
  virtual Status Publish(const std::string& id, ByteSpan message) = 0;

  // Of all messages in the order of Publish: how many, from the first on, the
  // broker has for certain. An error: it refused one, or is gone.
  virtual Result<uint64_t> Acknowledged() = 0;
  // Readable when Acknowledged would say something new.
  virtual int event_fd() const = 0;
};

// Connects, which takes some seconds at most for each server.
Result<std::unique_ptr<Publisher>> MakePublisher(const BrokerSpec& spec);

// The one of libnats, and that of librdkafka.
Result<std::unique_ptr<Publisher>> MakeNatsPublisher(const BrokerSpec& spec);
Result<std::unique_ptr<Publisher>> MakeKafkaPublisher(const BrokerSpec& spec);

// The names of headers that messages have.
inline constexpr char kHostHeader[] = "Tracefs-Host";
inline constexpr char kTracerHeader[] = "Tracefs-Tracer";
// The key of messages of Kafka: "web1.example/trace".
inline std::string KafkaKey(const std::string& host,
                            const std::string& tracer) {
  return host + '/' + tracer;
}

}  // namespace tracefs
