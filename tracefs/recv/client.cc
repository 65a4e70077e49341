#include "tracefs/recv/client.h"

#include <algorithm>

#include "tracefs/format/frame.h"

namespace tracefs {

std::string SourceName(net::Transport transport, const PeerText& peer,
                       const std::string& certificate_name,
                       const format::Serial& serial) {
  const std::string number = format::SerialText(serial);
  switch (transport) {
    case net::Transport::kUdp:       // nobody listens there
    case net::Transport::kDatagram:  // nor there
      return number;
    case net::Transport::kTcp: {
      // "ip-10.0.0.7", "ip-2001-db8--".
      std::string host = peer.host.substr(0, peer.host.find('/'));
      std::replace(host.begin(), host.end(), ':', '-');
      return "ip-" + host + '.' + number;
    }
    case net::Transport::kUnix:
    case net::Transport::kSeqpacket:
      return "uid-" + std::to_string(peer.uid) + '.' + number;
    case net::Transport::kTls:
      break;
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "cn-";
  for (const char c : certificate_name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (plain) {
      name += c;
    } else {
      name += '%';
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
  }
  return name + '.' + number;
}

Result<std::optional<net::Hello>> Client::AddToHello(
    ByteSpan bytes, net::RefuseReason* reason) {
  *reason = net::RefuseReason::kBadHello;
  hello += AsText(bytes);
  constexpr size_t kStart = 12;
  if (hello.size() < kStart) return std::optional<net::Hello>();
  const auto length = net::HelloLength(AsBytes(hello).first(kStart));
  if (!length.ok()) return length.status();
  if (hello.size() < *length) return std::optional<net::Hello>();
  // A sender waits for the answer before it goes on.
  if (hello.size() > *length) return Status::Invalid("more than HELLO came");
  auto decoded = net::DecodeHello(AsBytes(hello));
  hello = {};
  if (decoded.ok()) return std::optional<net::Hello>(*std::move(decoded));
  if (decoded.status().code() == StatusCode::kInvalid) {
    *reason = net::RefuseReason::kVersion;
  }
  return decoded.status();
}

}  // namespace tracefs
