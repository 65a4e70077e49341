#include "tracefs/broker/spec.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tracefs/base/text_cursor.h"
#include "tracefs/net/address.h"

namespace tracefs {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxNameBytes = 128;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// "127.0.0.1:4222", "[::1]:4222", "localhost:4222".
bool IsOnThisMachine(const std::string& server) {
  const std::string host = server.substr(0, server.rfind(':'));
  in_addr four;
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return (ntohl(four.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  return host == "localhost" || host == "[::1]";
}

// The members that are text, with their names.
template <typename Spec, typename Visit>
void ForEachText(Spec& spec, Visit visit) {
  visit("subject", spec.subject);
  visit("stream", spec.stream);
  visit("topic", spec.topic);
  visit("compression", spec.compression);
  visit("sasl", spec.sasl);
  visit("ca", spec.ca);
  visit("cert", spec.cert);
  visit("key", spec.key);
  visit("creds", spec.creds);
  visit("user", spec.user);
  visit("password", spec.password);
  visit("host", spec.host);
  visit("tracer", spec.tracer);
}

}  // namespace

std::string_view BrokerName(BrokerKind kind) {
  return kind == BrokerKind::kNats ? "nats" : "kafka";
}

std::optional<BrokerKind> ParseBrokerKind(std::string_view name) {
  for (const BrokerKind kind : {BrokerKind::kNats, BrokerKind::kKafka}) {
    if (name == BrokerName(kind)) return kind;
  }
  return std::nullopt;
}

Status CheckBrokerBuilt(BrokerKind kind) {
  if (!BrokerLibrary(kind).empty()) return Status::Ok();
  const std::string library =
      kind == BrokerKind::kNats ? "libnats" : "librdkafka";
  return Status::Invalid(
      std::string(BrokerName(kind)) + ": this build is without " + library +
      "; install " + library + "-dev and build again, or take the packages");
}

Status BrokerSpec::CheckSecrets(std::string_view advice) const {
  if (user.empty() || tls() || clear) return Status::Ok();
  // What a server of Kafka says of others is believed: none of them need be on
  // this machine.
  if (kind == BrokerKind::kKafka && sasl != "plain") return Status::Ok();
  if (kind == BrokerKind::kNats &&
      std::all_of(servers.begin(), servers.end(), &IsOnThisMachine)) {
    return Status::Ok();
  }
  return Status::Invalid(
      std::string(kind == BrokerKind::kNats ? "NATS sends" : "plain sends") +
      " the password as it is, and whoever is on the way can read it: it needs "
      "TLS (ca); if it may be read there, " +
      std::string(advice));
}

Result<std::string> BrokerSpec::ReadPassword() const {
  errno = 0;
  std::ifstream in(password);
  std::string line;
  if (std::getline(in, line)) return line;
  return Status::System(errno != 0 ? errno : ENODATA,
                        "password file '" + password + "'");
}

std::string BrokerSpec::Name() const {
  std::string name = std::string(BrokerName(kind)) + ':';
  for (const std::string& server : servers) {
    if (&server != &servers.front()) name += ',';
    name += server;
  }
  return name;
}

std::string BrokerSpec::Text() const {
  Json json = {{"kind", BrokerName(kind)},
               {"servers", servers},
               {"create", create},
               {"clear", clear},
               {"replicas", replicas},
               {"stream_bytes", stream_bytes},
               {"message_bytes", message_bytes},
               {"lines", lines}};
  ForEachText(*this, [&](const char* name, const std::string& text) {
    json[name] = text;
  });
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<BrokerSpec> BrokerSpec::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status::Invalid("no broker is described");
  BrokerSpec spec;
  try {
    const auto kind = ParseBrokerKind(json.at("kind").get<std::string>());
    if (!kind) return Status::Invalid("a broker of no known kind is described");
    spec.kind = *kind;
    spec.servers = json.at("servers").get<std::vector<std::string>>();
    spec.create = json.at("create").get<bool>();
    spec.clear = json.at("clear").get<bool>();
    spec.replicas = json.at("replicas").get<uint32_t>();
    spec.stream_bytes = json.at("stream_bytes").get<uint64_t>();
    spec.message_bytes = json.at("message_bytes").get<uint64_t>();
    spec.lines = json.at("lines").get<bool>();
    ForEachText(spec, [&](const char* name, std::string& value) {
      value = json.at(name).get<std::string>();
    });
  } catch (const Json::exception&) {
    return Status::Invalid("a broker is not described in full");
  }
  return spec;
}

void BrokerSpec::MakeAbsolute() {
  for (std::string* const file : {&ca, &cert, &key, &creds, &password}) {
    std::error_code error;
    if (file->empty()) continue;
    const auto path = std::filesystem::absolute(*file, error);
    if (!error) *file = path;
  }
}

Result<std::vector<std::string>> ParseServers(std::string_view text) {
  std::vector<std::string> servers;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view server = text.substr(0, comma);
    for (const std::string_view scheme : {"nats://", "kafka://"}) {
      if (server.starts_with(scheme)) server.remove_prefix(scheme.size());
    }
    const Result<net::Address> address =
        net::ParseAddress(net::Transport::kTcp, server, /*listen=*/false);
    if (!address.ok()) return address.status();
    servers.push_back(address->Text().substr(4));  // without "tcp:"
    if (comma == text.npos) return servers;
    text.remove_prefix(comma + 1);
  }
}

Status CheckBrokerName(std::string_view what, std::string_view name,
                       bool dots) {
  bool after_dot = true;
  for (const char c : name) {
    const bool dot = dots && c == '.';
    if (!IsNameByte(c) && (!dot || after_dot)) {
      after_dot = true;
      break;
    }
    after_dot = dot;
  }
  if (!after_dot && name.size() <= kMaxNameBytes) return Status::Ok();
  return Status::Invalid(std::string(what) + ": " + Quoted(name) +
                         " is no name of letters, digits, '-' and '_'" +
                         (dots ? " with '.' between" : ""));
}

std::string SubjectToken(std::string_view host) {
  std::string token(host);
  for (char& c : token) {
    if (c == '_') {
      c = '=';
    } else if (c == '.') {
      c = '_';
    }
  }
  return token;
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsNameByte(c) || c == '.'; });
}

bool IsTracerName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), &IsNameByte);
}

}  // namespace tracefs
