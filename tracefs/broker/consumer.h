// Consumer: takes messages from a broker, as one of a group of which each gets
// others, and tells when they need not come again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/broker/spec.h"

namespace tracefs {

// A message. It comes again, to this consumer or to one after it, until it is
// acknowledged.
struct Delivery {
  std::string body = {};
  std::string host = {};    // as it says; checked as the name of a host
  std::string tracer = {};  // likewise
  int64_t time_ns = 0;      // when the broker took it; the same each time
  uint64_t number = 0;      // for Acknowledge
};

struct ConsumerOptions {
  std::string group = "tracefs-recv";
  // After which comes again what a consumer did not acknowledge that is gone.
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  size_t max_messages = 4096;  // of NATS: that are not acknowledged yet
};

// Used by one thread. An error means that the connection is of no use any more;
// what was not acknowledged comes again to the next one.
class Consumer {
 public:
  virtual ~Consumer() = default;
  // What there is, at least one message unless there is none for so long. An
  // empty `host`: what came is no message of ours, and why is in `body`.
  virtual Result<std::vector<Delivery>> Fetch(
      size_t most, std::chrono::milliseconds patience) = 0;
  // They are stored for good, or never wanted.
  virtual Status Acknowledge(std::span<const uint64_t> numbers) = 0;
};

Result<std::unique_ptr<Consumer>> MakeConsumer(const BrokerSpec& spec,
                                               const ConsumerOptions& options);

// The one of libnats, and that of librdkafka.
Result<std::unique_ptr<Consumer>> MakeNatsConsumer(
    const BrokerSpec& spec, const ConsumerOptions& options);
Result<std::unique_ptr<Consumer>> MakeKafkaConsumer(
    const BrokerSpec& spec, const ConsumerOptions& options);

}  // namespace tracefs
