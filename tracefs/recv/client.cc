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

}  // namespace tracefs
