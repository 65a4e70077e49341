// Whether there is a library to ask (publisher.h, consumer.h).
#include "tracefs/broker/consumer.h"
#include "tracefs/broker/publisher.h"
#include "tracefs/net/tls.h"

#if TRACEFS_HAVE_NATS
#include <nats/nats.h>
#endif
#if TRACEFS_HAVE_KAFKA
#include <librdkafka/rdkafka.h>
#endif

namespace tracefs {

std::string BrokerLibrary(BrokerKind kind) {
#if TRACEFS_HAVE_NATS
  if (kind == BrokerKind::kNats) {
    return std::string("libnats ") + nats_GetVersion();
  }
#endif
#if TRACEFS_HAVE_KAFKA
  if (kind == BrokerKind::kKafka) {
    return std::string("librdkafka ") + rd_kafka_version_str();
  }
#endif
  static_cast<void>(kind);
  return {};
}

namespace {

// One of the libraries says that the server has hung up, the other what the
// server's alert says.
Status CheckOwn(const BrokerSpec& spec) {
  return spec.cert.empty() ? Status::Ok() : net::CheckNotExpired(spec.cert);
}

}  // namespace

Result<std::unique_ptr<Publisher>> MakePublisher(const BrokerSpec& spec) {
  if (Status s = CheckOwn(spec); !s.ok()) return s;
#if TRACEFS_HAVE_NATS
  if (spec.kind == BrokerKind::kNats) return MakeNatsPublisher(spec);
#endif
#if TRACEFS_HAVE_KAFKA
  if (spec.kind == BrokerKind::kKafka) return MakeKafkaPublisher(spec);
#endif
  return CheckBrokerBuilt(spec.kind);
}

Result<std::unique_ptr<Consumer>> MakeConsumer(const BrokerSpec& spec,
                                               const ConsumerOptions& options) {
  if (Status s = CheckOwn(spec); !s.ok()) return s;
#if TRACEFS_HAVE_NATS
  if (spec.kind == BrokerKind::kNats) return MakeNatsConsumer(spec, options);
#endif
#if TRACEFS_HAVE_KAFKA
  if (spec.kind == BrokerKind::kKafka) return MakeKafkaConsumer(spec, options);
#endif
  static_cast<void>(options);
  return CheckBrokerBuilt(spec.kind);
}

}  // namespace tracefs
