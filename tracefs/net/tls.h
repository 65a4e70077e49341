// TLS 1.3 for traces: both sides show a certificate, both are checked against
// named authorities, and the receiver's name too. There is no way to switch any
// of it off, and no trust on first use.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "tracefs/net/stream.h"

namespace tracefs::net {

struct TlsFiles {
  std::string ca;    // certificates of the authorities that the peer's is from
  std::string cert;  // our certificate, then those between it and the authority
  std::string key;   // ours; PEM, unencrypted, readable by its owner only
  // The same in this order, opened by somebody else, who keeps them; -1:
  // opened here.
  std::array<int, 3> given = {-1, -1, -1};
};

// kSystem if the certificate, the first in the file, is over. For those whose
// library is told by its peer that something is wrong with a certificate, and
// not even that always.
Status CheckNotExpired(const std::string& cert);

// Read once; makes any number of connections. Threads: one makes, each stream
// has its own.
class TlsContext {
 public:
  enum class Role { kSender, kReceiver };

  // kInvalid names the file and what is wrong with it.
  static Result<std::unique_ptr<TlsContext>> Create(Role role,
                                                    const TlsFiles& files);
  virtual ~TlsContext() = default;

  // `host`, of a sender: the name or number that the peer's certificate must
  // have.
  virtual Result<std::unique_ptr<Stream>> Wrap(UniqueFd fd,
                                               const std::string& host) = 0;
  // Who the peer of a stream of this context is by the certificate it showed in
  // the handshake: the common name, or else the first DNS name; may be empty.
  virtual std::string PeerName(const Stream& stream) const = 0;
};

}  // namespace tracefs::net
