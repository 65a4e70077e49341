// Connection: one client of the control socket. Bytes in become lines, lines
// out become bytes; bounded in memory and time, whatever the client does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/control/handler.h"

namespace tracefs {

struct ConnectionLimits {
  // Between the first byte of a request and its last.
  uint64_t half_sent_ns = 10'000'000'000;
  // Without any request.
  uint64_t idle_ns = 60'000'000'000;
  // With an answer, or a stream, that the client does not read.
  uint64_t stalled_ns = 60'000'000'000;
};

// Used by the server's thread. Times are MonotonicNs().
class Connection {
 public:
  // `fd` does not block.
  Connection(UniqueFd fd, uint64_t serial, const ConnectionLimits& limits,
             uint64_t now);

  uint64_t serial() const { return serial_; }
  int fd() const { return fd_.get(); }
  // What poll(2) should wait for.
  short Events() const;
  // When something must have happened; 0: no limit.
  uint64_t Deadline() const;
  // No request is running, no answer under way.
  bool idle() const { return !busy_ && out_.empty() && stream_ == nullptr; }
  uint64_t last_activity() const { return active_at_; }

  // Reads what has arrived. False if the client is gone.
  bool Receive(uint64_t now);
  // Takes the next line, without its end, and the descriptors that came with
  // it, if there is one and the connection is idle; it is busy then.
  bool TakeLine(std::string* line, std::vector<UniqueFd>* files);
  // Why nothing more is to be read from this client; empty: no reason, or it
  // was taken already.
  std::string_view TakeViolation() { return std::exchange(violation_, {}); }

  // Queues a line, with its end, for output; the connection is no longer busy.
  void Answer(std::string_view line, uint64_t now);
  // What follows the answer, until it ends; the connection is closed then.
  void Follow(std::shared_ptr<ControlStream> stream);
  std::shared_ptr<ControlStream> TakeStream() { return std::move(stream_); }
  // Sends what can be sent now. False if the client is gone.
  bool Transmit(uint64_t now);
  // Sends the rest of the output, and ends the connection.
  void CloseAfterAnswer() { closing_ = true; }
  // It ends now.
  void Close() { closed_ = true; }
  // Nothing more can come of it.
  bool finished() const;

 private:
  const UniqueFd fd_;
  const uint64_t serial_;
  const ConnectionLimits limits_;

  std::string in_;
  size_t scanned_ = 0;  // bytes of in_ known to hold no line end
  std::vector<UniqueFd> files_;
  std::string_view violation_;
  bool input_ended_ = false;
  bool busy_ = false;

  std::string out_;
  size_t sent_ = 0;  // of out_
  bool closing_ = false;
  bool closed_ = false;
  std::shared_ptr<ControlStream> stream_;

  uint64_t active_at_;        // something moved
  uint64_t request_at_ = 0;   // first byte of an unfinished line; 0: none
  uint64_t progress_at_ = 0;  // something was sent, or began to wait
};

}  // namespace tracefs
