// Stream: one connection, plain or TLS, as bytes that come and go without
// blocking.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::net {

// Pieces of a seqpacket socket are no longer than this; a reader offers at
// least as much room.
inline constexpr size_t kMaxPacketBytes = 65536;

// Used by one thread.
class Stream {
 public:
  virtual ~Stream() = default;

  struct Moved {
    size_t bytes = 0;    // 0: nothing can be moved now
    bool ended = false;  // Read: the peer sends no more
  };
  // `out` has at least kMaxPacketBytes of room.
  virtual Result<Moved> Read(std::span<std::byte> out) = 0;
  virtual Result<Moved> Write(ByteSpan bytes) = 0;
  // Before anything else: true once the connection can be used. An error says
  // what to do.
  virtual Result<bool> Handshake() { return true; }
  // What poll(2) is to wait for by one who wants to read, to write or both.
  virtual short Events(bool read, bool write) const = 0;
  // True if Read has bytes that poll(2) does not know of.
  virtual bool HasPending() const { return false; }
  // Says that nothing more will be written.
  virtual void EndWriting() = 0;
  virtual int fd() const = 0;
};

// `fd` is a connected stream or seqpacket socket and non-blocking.
std::unique_ptr<Stream> MakePlainStream(UniqueFd fd, bool packets);

// Finds out that a peer is gone within about half a minute, and sends small
// messages at once. Does nothing to Unix sockets.
void SetLiveness(int fd);

}  // namespace tracefs::net
