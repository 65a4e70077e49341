#include "tracefs/net/address.h"

#include <sys/un.h>

#include <array>
#include <span>

#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"

namespace tracefs::net {
namespace {

constexpr std::array<std::string_view, 6> kNames = {
    "tcp", "tls", "unix", "seqpacket", "udp", "datagram"};
// Those a tracefs-recv can listen at come first.
constexpr size_t kListenNames = 4;

// What people paste: "tcp://host:9900/" for "host:9900", "unix:///run/s" for
// "/run/s". Behind "tcp:", which was taken already, "//host:9900" is left.
Status TakeScheme(const Address& address, std::string_view* text) {
  const std::string own = std::string(TransportName(address.transport)) + "://";
  if (text->starts_with(own)) {
    text->remove_prefix(own.size());
  } else if (address.is_unix()) {
    if (text->starts_with("///")) text->remove_prefix(2);
    return {};
  } else if (text->starts_with("//")) {
    text->remove_prefix(2);
  } else if (const size_t at = text->find("://"); at != text->npos) {
    return Status::Invalid(Quoted(*text) + " is an address of " +
                           Quoted(text->substr(0, at)) + ", not of " +
                           std::string(TransportName(address.transport)) +
                           "; write HOST:PORT");
  }
  if (!address.is_unix() && text->ends_with('/')) text->remove_suffix(1);
  return {};
}

// "host:9900", "[::1]:9900", ":9900": nothing but a host and a port.
bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || !ParseUnsigned(text.substr(colon + 1)))
    return false;
  const std::string_view host = text.substr(0, colon);
  return host.find_first_of(":/") == host.npos || host.starts_with('[');
}

}  // namespace

std::string_view TransportName(Transport transport) {
  return kNames[static_cast<size_t>(transport)];
}

std::string Address::Text() const {
  std::string text(TransportName(transport));
  text += ':';
  if (is_unix()) return text + host;
  const bool v6 = host.find(':') != std::string::npos;
  return text + (v6 ? '[' + host + ']' : host) + ':' + port;
}

Result<Address> ParseAddress(Transport transport, std::string_view text,
                             bool listen) {
  Address address{.transport = transport};
  if (Status s = TakeScheme(address, &text); !s.ok()) return s;
  if (address.is_unix()) {
    if (text.empty() || text.size() >= sizeof(sockaddr_un::sun_path)) {
      return Status::Invalid("the path of a socket has 1 to " +
                             std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                             " bytes, not " + std::to_string(text.size()));
    }
    address.host = text;
    return address;
  }
  if (text.find('@') != text.npos) {
    return Status::Invalid(Quoted(text) +
                           ": a user and a password do not stand in an "
                           "address; write HOST:PORT, and see which options "
                           "take them");
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Status::Invalid(Quoted(text) +
                           " lacks a port; write HOST:PORT, as "
                           "collector.example:9900 or [::1]:9900");
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Status::Invalid("write the address of " + Quoted(text) +
                           " between brackets, as [::1]:9900");
  }
  const auto number = ParseUnsigned(port);
  if (!number || *number > 65535 || (*number == 0 && !listen)) {
    return Status::Invalid(Quoted(port) + " is no port; 1 to 65535 are");
  }
  if (host.empty() && !listen) {
    return Status::Invalid(Quoted(text) + " lacks a host before the port");
  }
  if (host.size() > 255) return Status::Invalid("the host name is too long");
  address.host = host;
  address.port = port;
  return address;
}

Result<Address> ParseAddressText(std::string_view text) {
  const size_t colon = text.find(':');
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (text.substr(0, colon) != kNames[i]) continue;
    if (colon == std::string_view::npos) break;
    return ParseAddress(static_cast<Transport>(i), text.substr(colon + 1),
                        /*listen=*/false);
  }
  return Status::Invalid(Quoted(text) + " is no address");
}

Result<Address> ParseListenAddress(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (size_t i = 0; i < kListenNames; ++i) {
    if (name == kNames[i] && colon != std::string_view::npos) {
      return ParseAddress(static_cast<Transport>(i), text.substr(colon + 1),
                          /*listen=*/true);
    }
  }
  if (IsHostAndPort(text)) {
    return ParseAddress(Transport::kTcp, text, /*listen=*/true);
  }
  return Status::Invalid(
      Quoted(text) + " does not begin with a kind of socket" +
      DidYouMean(name, std::span(kNames).first(kListenNames)) +
      "; write tcp:HOST:PORT, tls:HOST:PORT, unix:PATH or "
      "seqpacket:PATH");
}

}  // namespace tracefs::net
