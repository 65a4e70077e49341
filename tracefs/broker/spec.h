// BrokerSpec: which engine between hosts carries blocks, and how to get in.
// Made from a config or a command line, and sent as text to who connects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

enum class BrokerKind : uint8_t { kNats, kKafka };

// "nats", "kafka", and back.
std::string_view BrokerName(BrokerKind kind);
std::optional<BrokerKind> ParseBrokerKind(std::string_view name);

// What the library that speaks to it is: "libnats 3.4.1"; empty: this build was
// made without it.
std::string BrokerLibrary(BrokerKind kind);
// kInvalid, with what to install, if this build cannot speak to it.
Status CheckBrokerBuilt(BrokerKind kind);

struct BrokerSpec {
  BrokerKind kind = BrokerKind::kNats;
  std::vector<std::string> servers = {};  // HOST:PORT, the first that answers

  // Of NATS. What subjects begin with, before ".HOST.TRACER".
  std::string subject = "tracefs";
  std::string stream = "TRACEFS";
  bool create = false;        // the stream, if it is not there
  uint32_t replicas = 1;      // of what is made
  uint64_t stream_bytes = 0;  // that it may hold; 0: as its server lets

  // Of Kafka.
  std::string topic = "tracefs";
  std::string compression = "none";    // of batches; blocks may have their own
  uint64_t message_bytes = 1'000'000;  // that the topic takes
  std::string sasl = "scram-sha-512";  // how `user` proves who he is

  // Files that whoever connects reads, each time.
  std::string ca = {};
  std::string cert = {};
  std::string key = {};
  std::string creds = {};     // a user's credentials, for NATS
  std::string user = {};      // with `password`
  std::string password = {};  // a file whose first line it is
  bool clear = false;         // also where others could read it on the way

  // Who sends. Of receivers: empty.
  std::string host = {};
  std::string tracer = {};
  bool lines = false;  // of a feed; else blocks

  bool tls() const { return !ca.empty(); }
  // kInvalid if a password would cross the network in clear and `clear` does
  // not say that it may; `advice` is how that is said: "give --broker-clear".
  Status CheckSecrets(std::string_view advice) const;
  // The first line of the file `password`; kSystem if it has none.
  Result<std::string> ReadPassword() const;
  // "nats:a:4222,b:4222", for people.
  std::string Name() const;
  // All of it, and back.
  std::string Text() const;
  static Result<BrokerSpec> Parse(std::string_view text);

  // File names that stay right in another working directory.
  void MakeAbsolute();
};

// What `sasl` and `compression` may be.
inline constexpr std::string_view kSaslWords[] = {"plain", "scram-sha-256",
                                                  "scram-sha-512"};
inline constexpr std::string_view kCompressionWords[] = {"none", "zstd", "lz4",
                                                         "gzip", "snappy"};

// "a:4222,b:4222"; kInvalid says what is expected.
Result<std::vector<std::string>> ParseServers(std::string_view text);
// What subjects, topics, streams and groups may be called: letters, digits, '-'
// and '_', and with `dots` '.' between others.
Status CheckBrokerName(std::string_view what, std::string_view name, bool dots);

// The name of a host as one token of a subject, of no other host:
// "web1.example" -> "web1_example", "web_1" -> "web=1".
std::string SubjectToken(std::string_view host);
// Whether a name may be that of a host: letters, digits, '.', '-' and '_', not
// beginning with a dot, at most 253. It becomes the name of a folder.
bool IsHostName(std::string_view name);
// Whether a name may be that of a tracer, as it stands in subjects: the same
// without dots, at most 128.
bool IsTracerName(std::string_view name);

}  // namespace tracefs
