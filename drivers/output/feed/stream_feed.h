// StreamFeed: sends the events of a feed over a connection, as lines or as
// syslog messages (RFC 5424; RFC 6587 and 5425 count their octets, RFC 5426
// sends one a datagram).
//
// A thread of its own sends; what waits is bounded. When the receiver goes away
// it is dialled again, and what waits is sent then. None of these protocols has
// answers: what the system had taken when a connection broke may be lost, and
// nobody can know.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "drivers/output/feed/feed.h"
#include "drivers/output/remote/sender.h"

namespace tracefs {

enum class FeedFraming : uint8_t {
  kLines,     // as it is, with a line end
  kOctets,    // syslog, with its length before
  kDatagram,  // syslog, a packet each
};

struct StreamFeedOptions : SenderOptions {
  // Longer syslog messages are cut: RFC 5424 has receivers take 2048 bytes, and
  // all that matter take this.
  static constexpr size_t kMaxSyslogBytes = 8192;

  StreamFeedOptions() {
    retry = std::chrono::seconds(5);
    first_pause = std::chrono::milliseconds(100);
    spread = false;
  }

  FeedFraming framing = FeedFraming::kLines;
  int facility = 16;  // of syslog: local0
  std::string host;   // of syslog: who we are
  uint64_t limit_bytes = uint64_t{16} << 20;
  // How long a Write may wait for room; 0: not at all.
  std::chrono::nanoseconds deadline{0};
  size_t buffer_bytes = 0;  // of a block; 0 = any
};

// A message as it is sent. For tests, too.
std::string FrameMessage(const FeedMessage& message,
                         const StreamFeedOptions& options);

std::unique_ptr<Feed> MakeStreamFeed(std::unique_ptr<FeedFormat> format,
                                     StreamFeedOptions options,
                                     std::unique_ptr<Dialer> dialer);

}  // namespace tracefs
