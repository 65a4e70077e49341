#include "tracefs/control/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tracefs/base/passed_files.h"
#include "tracefs/control/request.h"

namespace tracefs {
namespace {

constexpr size_t kReceiveBytes = 64 * 1024;
constexpr size_t kStreamBytes = 256 * 1024;
// Sent to one client before others get their turn.
constexpr size_t kTurnBytes = size_t{1} << 20;

}  // namespace

Connection::Connection(UniqueFd fd, uint64_t serial,
                       const ConnectionLimits& limits, uint64_t now)
    : fd_(std::move(fd)), serial_(serial), limits_(limits), active_at_(now) {}

short Connection::Events() const {
  short events = 0;
  // One request at a time: anything else the client sends waits in its socket.
  // From a client that follows a stream, only the end matters.
  const bool wants_input = stream_ != nullptr || (!busy_ && out_.empty());
  if (!closing_ && !input_ended_ && wants_input) events |= POLLIN;
  if (!out_.empty()) events |= POLLOUT;
  return events;
}

uint64_t Connection::Deadline() const {
  if (!out_.empty()) return progress_at_ + limits_.stalled_ns;
  if (busy_ || stream_ != nullptr) return 0;
  if (request_at_ != 0) return request_at_ + limits_.half_sent_ns;
  return active_at_ + limits_.idle_ns;
}

bool Connection::finished() const {
  if (closed_) return true;
  return out_.empty() && !busy_ &&
         (closing_ || (input_ended_ && stream_ == nullptr));
}

bool Connection::Receive(uint64_t now) {
  std::array<std::byte, kReceiveBytes> buffer;
  bool cut = false;
  const ssize_t n =
      ReceiveWithFiles(fd_.get(), buffer, &files_, &cut, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN;
  if (cut || files_.size() > kMaxRequestFiles) {
    files_.clear();
    violation_ = "too many file descriptors";
  }
  if (n == 0) {
    input_ended_ = true;
    return stream_ == nullptr;  // a client that follows one has left
  }
  active_at_ = now;
  if (stream_ != nullptr) return true;  // not requested, and not read
  if (in_.empty()) request_at_ = now;
  in_ += AsText(ByteSpan(buffer).first(static_cast<size_t>(n)));
  return true;
}

bool Connection::TakeLine(std::string* line, std::vector<UniqueFd>* files) {
  if (busy_ || !out_.empty() || stream_ != nullptr || closing_) return false;
  const size_t end = in_.find('\n', scanned_);
  if (end >= kMaxRequestBytes) {  // or there is none
    scanned_ = std::min(in_.size(), kMaxRequestBytes);
    if (in_.size() >= kMaxRequestBytes) violation_ = "request too long";
    return false;
  }
  line->assign(in_, 0, end);
  in_.erase(0, end + 1);
  scanned_ = 0;
  // The rest starts waiting only now.
  request_at_ = in_.empty() ? 0 : active_at_;
  if (in_.empty()) in_.shrink_to_fit();
  *files = std::exchange(files_, {});
  busy_ = true;
  return true;
}

void Connection::Answer(std::string_view line, uint64_t now) {
  busy_ = false;
  if (out_.empty()) progress_at_ = now;
  out_ += line;
}

void Connection::Follow(std::shared_ptr<ControlStream> stream) {
  stream_ = std::move(stream);
  in_.clear();
}

bool Connection::Transmit(uint64_t now) {
  size_t turn = 0;
  for (;;) {
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
      if (stream_ == nullptr || closing_) return true;
      // Asked first: data put into the stream after the last Take and before
      // its end must not be missed.
      const bool ended = stream_->ended();
      out_ = stream_->Take(kStreamBytes);
      if (out_.empty()) {
        closing_ = ended;
        return true;
      }
      progress_at_ = now;
      // The rest when poll says that there is room.
      if (turn >= kTurnBytes) return true;
    }
    const ssize_t n = ::send(fd_.get(), out_.data() + sent_,
                             out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<size_t>(n);
    turn += static_cast<size_t>(n);
    active_at_ = progress_at_ = now;
  }
}

}  // namespace tracefs
