// Whether there is a library to ask (publisher.h, consumer.h).
#include "tracefs/broker/consumer.h"
#include "tracefs/broker/publisher.h"

#if TRACEFS_HAVE_NATS
#include <nats/nats.h>
#endif

namespace tracefs {

#if TRACEFS_HAVE_NATS
std::string BrokerLibrary(BrokerKind /*kind*/) {
  return std::string("libnats ") + nats_GetVersion();
}

Result<std::unique_ptr<Publisher>> MakePublisher(const BrokerSpec& spec) {
  return MakeNatsPublisher(spec);
}

Result<std::unique_ptr<Consumer>> MakeConsumer(const BrokerSpec& spec,
                                               const ConsumerOptions& options) {
  return MakeNatsConsumer(spec, options);
}
#else
std::string BrokerLibrary(BrokerKind /*kind*/) { return {}; }

Result<std::unique_ptr<Publisher>> MakePublisher(const BrokerSpec& spec) {
  return CheckBrokerBuilt(spec.kind);
}

Result<std::unique_ptr<Consumer>> MakeConsumer(
    const BrokerSpec& spec, const ConsumerOptions& /*options*/) {
  return CheckBrokerBuilt(spec.kind);
}
#endif

}  // namespace tracefs
