// The rows of the drivers for brokers: their options, and how they are made.
#include "drivers/output/rows.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "drivers/output/broker/courier.h"
#include "drivers/output/broker/line_feed.h"
#include "drivers/output/feed/option.h"
#include "drivers/output/framing.h"
#include "drivers/output/remote/waiting.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {
namespace {

constexpr OptionRow kSubject = {.name = "subject", .type = ValueType::kText};
constexpr OptionRow kStream = {.name = "stream", .type = ValueType::kText};
constexpr OptionRow kTracer = {.name = "tracer", .type = ValueType::kText};
constexpr OptionRow kCreate = {.name = "create"};
constexpr OptionRow kReplicas = {
    .name = "replicas", .type = ValueType::kCount, .min = 1, .max = 5};
constexpr OptionRow kStreamSize = {.name = "stream_size",
                                   .type = ValueType::kSize,
                                   .min = uint64_t{1} << 20,
                                   .max = uint64_t{1} << 50};
constexpr OptionRow kCa = {.name = "ca", .type = ValueType::kText};
constexpr OptionRow kCert = {.name = "cert", .type = ValueType::kText};
constexpr OptionRow kKey = {.name = "key", .type = ValueType::kText};
constexpr OptionRow kUser = {.name = "user", .type = ValueType::kText};
constexpr OptionRow kPassword = {.name = "password", .type = ValueType::kText};
constexpr OptionRow kClear = {.name = "password_in_clear"};

constexpr auto kNatsOptions =
    WithWaitingOptions({kSubject,
                        kStream,
                        kTracer,
                        kCreate,
                        kReplicas,
                        kStreamSize,
                        kCa,
                        kCert,
                        kKey,
                        {.name = "creds", .type = ValueType::kText},
                        kUser,
                        kPassword,
                        kClear});

constexpr auto kKafkaOptions = WithWaitingOptions(
    {{.name = "topic", .type = ValueType::kText},
     kTracer,
     {.name = "compression",
      .type = ValueType::kChoice,
      .words = kCompressionWords},
     {.name = "message_size",
      .type = ValueType::kSize,
      .min = uint64_t{64} << 10,
      .max = uint64_t{256} << 20},
     kCa,
     kCert,
     kKey,
     {.name = "sasl", .type = ValueType::kChoice, .words = kSaslWords},
     kUser,
     kPassword,
     kClear});

// kInvalid if something is given without what it needs.
Status CheckTogether(const ConfigEntry& entry) {
  constexpr std::array<std::array<std::string_view, 2>, 8> kNeeds = {
      {{"cert", "key"},
       {"key", "cert"},
       {"cert", "ca"},
       {"user", "password"},
       {"password", "user"},
       {"password_in_clear", "password"},
       {"sasl", "user"},
       {"stream_size", "create"}}};
  for (const auto& [option, needed] : kNeeds) {
    if (!entry.Has(option) || entry.Has(needed)) continue;
    return Status::Invalid(entry.name + ": " + std::string(option) +
                           " goes together with " + std::string(needed));
  }
  if (entry.Has("creds") && entry.Has("user")) {
    return Status::Invalid(entry.name + ": give either creds or user");
  }
  return Status::Ok();
}

// What receivers would not believe must not be made up: two hosts could get one
// name.
Result<std::string> HostName() {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  if (IsHostName(host.data())) return std::string(host.data());
  return Status::Invalid("the name of this host, " + Quoted(host.data()) +
                         ", has other bytes than letters, digits, '.', '-' and "
                         "'_': give it another one (hostname(1))");
}

Result<BrokerSpec> SpecOf(const ConfigEntry& entry) {
  BrokerSpec spec;
  spec.kind = entry.name == "kafka" ? BrokerKind::kKafka : BrokerKind::kNats;
  Result<std::vector<std::string>> servers = ParseServers(entry.value.text);
  if (!servers.ok()) return servers.status().Prefixed(entry.name);
  spec.servers = *std::move(servers);
  spec.subject = entry.Text("subject", spec.subject);
  spec.stream = entry.Text("stream", spec.stream);
  spec.create = entry.Has("create");
  spec.replicas = static_cast<uint32_t>(entry.Number("replicas", 1));
  spec.stream_bytes = entry.Number("stream_size");
  spec.topic = entry.Text("topic", spec.topic);
  spec.compression = entry.Text("compression", spec.compression);
  spec.message_bytes = entry.Number("message_size", spec.message_bytes);
  spec.sasl = entry.Text("sasl", spec.sasl);
  spec.ca = entry.Text("ca");
  spec.cert = entry.Text("cert");
  spec.key = entry.Text("key");
  spec.creds = entry.Text("creds");
  spec.user = entry.Text("user");
  spec.password = entry.Text("password");
  spec.clear = entry.Has("password_in_clear");
  Result<std::string> host = HostName();
  if (!host.ok()) return host.status().Prefixed(entry.name);
  spec.host = *std::move(host);
  spec.tracer = entry.Text("tracer", "trace");
  spec.lines = !FeedOf(entry).empty();
  if (Status s = CheckBrokerName("subject", spec.subject, /*dots=*/true);
      !s.ok()) {
    return s.Prefixed(entry.name);
  }
  if (Status s = CheckBrokerName("stream", spec.stream, /*dots=*/false);
      !s.ok()) {
    return s.Prefixed(entry.name);
  }
  if (Status s = CheckBrokerName("topic", spec.topic, /*dots=*/true); !s.ok()) {
    return s.Prefixed(entry.name);
  }
  if (Status s = CheckBrokerName("tracer", spec.tracer, /*dots=*/false);
      !s.ok()) {
    return s.Prefixed(entry.name);
  }
  if (Status s = spec.CheckSecrets("say password_in_clear"); !s.ok()) {
    return s.Prefixed(entry.name);
  }
  return spec;
}

Status Check(const ConfigEntry& entry) {
  if (Status s = SpecOf(entry).status(); !s.ok()) return s;
  if (Status s = CheckTogether(entry); !s.ok()) return s;
  return CheckWaiting(entry);
}

// A broker need not be there yet, but what speaks to it must.
Status Probe(const ConfigEntry& entry) {
  const Result<BrokerSpec> spec = SpecOf(entry);
  if (!spec.ok()) return spec.status();
  if (Status s = CheckBrokerBuilt(spec->kind); !s.ok()) return s;
  for (const std::string* file :
       {&spec->ca, &spec->cert, &spec->key, &spec->creds, &spec->password}) {
    if (!file->empty() && ::access(file->c_str(), R_OK) != 0) {
      return Status::System(errno, entry.name + ": '" + *file + "'");
    }
  }
  return ProbeWaiting(entry);
}

Result<std::unique_ptr<Dialer>> CourierOf(const BrokerSpec& spec,
                                          Given* given) {
  Result<UniqueFd> keeper = given->any() ? given->Take() : ForkCourier(spec);
  if (!keeper.ok()) return keeper.status();
  return MakeProcessDialer(HelperKind::kCourier, spec.Name(),
                           *std::move(keeper));
}

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  const Result<BrokerSpec> spec = SpecOf(entry);
  if (!spec.ok()) return spec.status();
  if (Status s = CheckBrokerBuilt(spec->kind); !s.ok()) return s;
  RemoteOptions options = WaitingOf(entry);
  options.link.name = spec->Name();
  options.link.retry = entry.Duration("retry", options.link.retry);
  Result<std::unique_ptr<Dialer>> dialer = CourierOf(*spec, &inputs.given);
  if (!dialer.ok()) return dialer.status();
  std::unique_ptr<Dialer> leftovers;
  if (Spills(entry)) {
    Result<std::unique_ptr<Dialer>> second = CourierOf(*spec, &inputs.given);
    if (!second.ok()) return second.status();
    leftovers = *std::move(second);
    if (Status s = OpenSpill(entry, &inputs.given, &options); !s.ok()) return s;
  }
  const LossPolicy when_full = options.when_full;
  std::unique_ptr<OutputDriver> driver =
      MakeRemote(std::move(options), *std::move(dialer), std::move(leftovers));
  if (spec->lines) {
    driver = MakeBrokerFeed(MakeFeedFormat(FeedOf(entry)),
                            MakeFraming(std::move(driver)));
  }
  return MadeOutputDriver{.driver = std::move(driver), .when_full = when_full};
}

// In the order in which Make takes them.
std::vector<Wish> Wishes(const ConfigEntry& entry) {
  const Result<BrokerSpec> spec = SpecOf(entry);
  if (!spec.ok()) return {};
  return WaitingWishes(entry,
                       {{.path = spec->Text(), .kind = Wish::Kind::kCourier}});
}

OutputDriverRow Row(std::string_view name, std::string_view help,
                    std::span<const OptionRow> options) {
  OutputDriverRow row;
  row.entry = {.name = name,
               .role = EntryRole::kDriver,
               .value = {.type = ValueType::kText, .required = true},
               .options = options};
  row.help = help;
  row.make = &Make;
  row.wishes = &Wishes;
  row.check = &Check;
  row.probe = &Probe;
  row.feed = &FeedOf;
  return row;
}

}  // namespace

OutputDriverRow NatsRow() {
  return Row("nats", "a stream of NATS JetStream, of servers HOST:PORT,…",
             kNatsOptions);
}

OutputDriverRow KafkaRow() {
  return Row("kafka", "a topic of Kafka, of brokers HOST:PORT,…",
             kKafkaOptions);
}

}  // namespace tracefs
