#include "tracefs/recv/fleet/options.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <span>

#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"
#include "tracefs/export/table.h"

namespace tracefs {
namespace {

constexpr std::array kTexts = {"group",       "subject",         "stream",
                               "create",      "creds",           "topic",
                               "broker-user", "broker-password", "broker-clear",
                               "sasl",        "hosts",           "every",
                               "gap",         "redeliver",       "merge"};
constexpr std::array kOfNats = {"subject", "stream", "create", "creds"};
constexpr std::array kOfKafka = {"topic", "sasl"};

Status TakeTime(const CommandLine& given, const char* name,
                std::chrono::nanoseconds* value, uint64_t most_hours = 1) {
  if (!given.Has(name)) return Status::Ok();
  const std::optional<uint64_t> ns = ParseDuration(given.Text(name));
  constexpr uint64_t kHour = 3'600'000'000'000;
  if (!ns || *ns > most_hours * kHour) {
    return Status::Invalid("--" + std::string(name) + ": " +
                           Quoted(given.Text(name)) +
                           " is no time of at most " +
                           std::to_string(most_hours) + "h, such as 30s");
  }
  *value = std::chrono::nanoseconds(*ns);
  return Status::Ok();
}

// Whole seconds: it goes by when files were made.
Status TakeMerging(const CommandLine& given, const std::string& format,
                   MergeRules* rules) {
  rules->format = format;
  rules->every_s = 0;
  if (!CanMerge(format)) {
    return given.Has("merge")
               ? Status::Invalid("--merge is for --format parquet and jsonl")
               : Status::Ok();
  }
  std::chrono::nanoseconds every = std::chrono::hours(1);
  if (Status s = TakeTime(given, "merge", &every, 24); !s.ok()) return s;
  rules->every_s = std::chrono::ceil<std::chrono::seconds>(every).count();
  return Status::Ok();
}

// A name a line; '#' begins a comment.
Status ReadHosts(const std::string& path, std::set<std::string>* hosts) {
  std::ifstream in(path);
  if (!in) return Status::System(errno, "--hosts '" + path + "'");
  std::string line;
  while (std::getline(in, line)) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t");
    if (first == line.npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t") - first + 1);
    if (!IsHostName(line)) {
      return Status::Invalid("--hosts '" + path + "': " + Quoted(line) +
                             " is no name of a host");
    }
    hosts->insert(line);
  }
  if (hosts->empty()) {
    return Status::Invalid("--hosts '" + path + "' names no host");
  }
  return Status::Ok();
}

Status TakeBroker(const CommandLine& given, BrokerSpec* spec) {
  const std::string text = given.Text("from");
  const size_t colon = text.find(':');
  const auto kind = ParseBrokerKind(text.substr(0, colon));
  if (colon == text.npos || !kind) {
    return Status::Invalid("--from: " + Quoted(text) +
                           " is neither nats:HOST:PORT,… nor "
                           "kafka:HOST:PORT,…");
  }
  spec->kind = *kind;
  const bool nats = *kind == BrokerKind::kNats;
  for (const char* name : nats ? std::span<const char* const>(kOfKafka)
                               : std::span<const char* const>(kOfNats)) {
    if (given.Has(name)) {
      return Status::Invalid("--" + std::string(name) + " is for --from " +
                             (nats ? "kafka:" : "nats:"));
    }
  }
  Result<std::vector<std::string>> servers =
      ParseServers(std::string_view(text).substr(colon + 1));
  if (!servers.ok()) return servers.status().Prefixed("--from");
  spec->servers = *std::move(servers);
  const auto take = [&](const char* name, std::string* value) {
    if (given.Has(name)) *value = given.Text(name);
  };
  take("subject", &spec->subject);
  take("stream", &spec->stream);
  take("topic", &spec->topic);
  take("sasl", &spec->sasl);
  take("ca", &spec->ca);
  take("cert", &spec->cert);
  take("tls-key", &spec->key);
  take("creds", &spec->creds);
  take("broker-user", &spec->user);
  take("broker-password", &spec->password);
  spec->create = given.Has("create");
  if (spec->cert.empty() != spec->key.empty() ||
      (!spec->cert.empty() && spec->ca.empty())) {
    return Status::Invalid("--cert and --tls-key go together, and with --ca");
  }
  if (spec->user.empty() != spec->password.empty()) {
    return Status::Invalid("--broker-user and --broker-password go together");
  }
  if (given.Has("sasl") && spec->user.empty()) {
    return Status::Invalid("--sasl goes with --broker-user");
  }
  spec->clear = given.Has("broker-clear");
  if (spec->clear && spec->user.empty()) {
    return Status::Invalid("--broker-clear goes with --broker-user");
  }
  if (Status s = spec->CheckSecrets("give --broker-clear"); !s.ok()) {
    return s.Prefixed("--broker-password: without --ca");
  }
  if (Status s = CheckBrokerName("--subject", spec->subject, true); !s.ok()) {
    return s;
  }
  if (Status s = CheckBrokerName("--topic", spec->topic, true); !s.ok()) {
    return s;
  }
  return CheckBrokerName("--stream", spec->stream, false);
}

}  // namespace

OptionGroup FleetOptionRows() {
  return {
      "Options for --from",
      {{"from", "BROKER",
        "take blocks from nats:HOST:PORT,… or kafka:HOST:PORT,… instead of "
        "listening, as one of a group, and store them in --out DIR by host and "
        "day: as traces or, with --format, as tables"},
       {"group", "NAME",
        "receivers of the same group share the work; default tracefs-recv"},
       {"subject", "NAME",
        "of NATS: what subjects begin with; default tracefs"},
       {"stream", "NAME", "of JetStream; default TRACEFS"},
       {"create", "", "make the stream if it is not there"},
       {"creds", "FILE", "a user's credentials for NATS"},
       {"topic", "NAME", "of Kafka; default tracefs"},
       {"broker-user", "NAME", "or a user of the broker's"},
       {"broker-password", "FILE", "a file with the password"},
       {"broker-clear", "",
        "send it even unencrypted, where others on the way can read it"},
       {.name = "sasl",
        .value = "HOW",
        .help = "how to log in to Kafka: plain, scram-sha-256 or scram-sha-512 "
                "(the default)",
        .words = "plain scram-sha-256 scram-sha-512"},
       {"hosts", "FILE", "names of hosts, a line each: others are refused"},
       {"every", "TIME",
        "with --format: how long blocks gather for a file; default 30s"},
       {"merge", "TIME",
        "with --format parquet or jsonl: files of each such time become one "
        "when it is over; default 1h, 0: never"},
       {"redeliver", "TIME",
        "when what a receiver had that was killed comes again; default 30s; of "
        "NATS for a new group, and with --format twice --every more"},
       {"gap", "TIME",
        "how long blocks wait for those before them; default 90s"}}};
}

Status CheckNoFleetOptions(const CommandLine& given) {
  for (const char* name : kTexts) {
    if (given.Has(name)) {
      return Status::Invalid("--" + std::string(name) + " is for --from");
    }
  }
  return Status::Ok();
}

Result<FleetOptions> ParseFleetOptions(const CommandLine& given) {
  FleetOptions options;
  for (const char* name :
       {"listen", "systemd", "max-clients", "max-per-peer", "max-block",
        "max-memory", "max-trace", "max-traces", "list"}) {
    if (given.Has(name)) {
      return Status::Invalid("--" + std::string(name) +
                             " does not go with --from");
    }
  }
  if (!given.Has("out")) {
    return Status::Invalid("--from needs --out DIR, where it stores");
  }
  if (Status s = TakeBroker(given, &options.broker); !s.ok()) return s;
  FleetStoreOptions& store = options.store;
  store.directory = given.Text("out");
  store.format = given.Text("format");
  if (!store.format.empty()) {
    const ExportFormat* const format = FindExportFormat(store.format);
    if (format == nullptr ||
        (format->kind != ExportKind::kLines && store.format != "parquet")) {
      return Status::Invalid("--format: with --from there are parquet, " +
                             LineFormatNames());
    }
  }
  if (given.Has("every") && store.format.empty()) {
    return Status::Invalid("--every is for --format");
  }
  if (Status s = TakeTime(given, "every", &store.every); !s.ok()) return s;
  if (Status s = TakeMerging(given, store.format, &options.housekeeping.merge);
      !s.ok()) {
    return s;
  }
  if (Status s = TakeTime(given, "gap", &store.gap_patience); !s.ok()) return s;
  if (given.Has("group")) options.consumer.group = given.Text("group");
  if (Status s = CheckBrokerName("--group", options.consumer.group, false);
      !s.ok()) {
    return s;
  }
  // What gathers must not come again meanwhile.
  options.consumer.patience = std::chrono::seconds(30);
  if (options.broker.kind == BrokerKind::kNats && !store.format.empty()) {
    options.consumer.patience += 2 * store.every;
  }
  if (Status s = TakeTime(given, "redeliver", &options.consumer.patience);
      !s.ok()) {
    return s;
  }
  // Brokers of Kafka refuse shorter sessions unless told.
  const int least = options.broker.kind == BrokerKind::kKafka ? 6 : 1;
  if (options.consumer.patience < std::chrono::seconds(least)) {
    return Status::Invalid("--redeliver: give at least " +
                           std::to_string(least) + "s");
  }
  if (given.Has("hosts")) {
    if (Status s = ReadHosts(given.Text("hosts"), &options.hosts); !s.ok()) {
      return s;
    }
  }
  options.quiet = given.Has("quiet");
  return options;
}

}  // namespace tracefs
