#include "drivers/output/feed/stream_sink.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"
#include "tracefs/export/escape.h"
#include "tracefs/export/feed_parts.h"
#include "tracefs/net/stream.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kHandshakePatience = std::chrono::seconds(10);
constexpr auto kFirstPause = milliseconds(100);
// At the end of a trace: for what waits to be sent.
constexpr auto kFarewell = std::chrono::seconds(3);

// Of syslog.
int SeverityOf(FeedMessage::Urgency urgency) {
  switch (urgency) {
    case FeedMessage::Urgency::kAlarm:
      return 1;  // alert
    case FeedMessage::Urgency::kLoss:
      return 4;  // warning
    case FeedMessage::Urgency::kOperation:
      break;
  }
  return 6;  // informational
}

void Signal(const UniqueFd& event) {
  const uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

// Without half a character at the end.
void CutUtf8(size_t bytes, std::string* text) {
  if (text->size() <= bytes) return;
  while (bytes != 0 &&
         (static_cast<unsigned char>((*text)[bytes]) & 0xc0) == 0x80) {
    --bytes;
  }
  text->resize(bytes);
}

// A block's messages, framed.
struct Batch {
  std::string bytes;
  std::vector<size_t> ends;  // of its messages
  BlockInfo info;
};

class StreamSink final : public FeedSink {
 public:
  StreamSink(StreamSinkOptions options, std::unique_ptr<Dialer> dialer)
      : options_(std::move(options)),
        dialer_(std::move(dialer)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~StreamSink() override { End(); }

  Status Initialize(const TraceIdentity& identity) override {
    if (!wake_ || !stop_) return Status::System(errno, "eventfd");
    lost_ = identity.lost;
    thread_ = StartThread("tracefs-feed", [this] { Run(); });
    return Status::Ok();
  }

  Status Write(const std::vector<FeedMessage>& messages,
               const BlockInfo& info) override {
    Batch batch;
    batch.info = info;
    for (const FeedMessage& message : messages) {
      batch.bytes += FrameMessage(message, options_);
      batch.ends.push_back(batch.bytes.size());
    }
    std::unique_lock lock(mu_);
    const auto has_room = [&] {
      return queue_.empty() ||
             queued_bytes_ + batch.bytes.size() <= options_.limit_bytes;
    };
    // Nobody waits twice for a receiver that does not come back.
    if (!has_room() && !gave_up_ && options_.deadline.count() > 0) {
      gave_up_ = !moved_.wait_for(lock, options_.deadline, has_room);
    }
    if (!has_room()) {
      return DroppedStatus(LossReason::kQueueFull,
                           Name() + ": the receiver is too slow or away");
    }
    gave_up_ = false;
    queued_bytes_ += batch.bytes.size();
    queue_.push_back(std::move(batch));
    lock.unlock();
    Signal(wake_);
    return Status::Ok();
  }

  Status Flush() override { return Status::Ok(); }

  Status Release() override {
    {
      std::unique_lock lock(mu_);
      finishing_ = true;
      lock.unlock();
      Signal(wake_);
      lock.lock();
      moved_.wait_for(lock, kFarewell, [this] { return ended_; });
    }
    End();
    if (queue_.empty()) return Status::Ok();
    // What is left, at the end of a trace that cannot tell any more.
    Status why = Status::SystemSaid(
        last_error_.ok() ? ETIMEDOUT : last_error_.error(),
        Name() + ": not delivered at the end" +
            (last_error_.ok() ? "" : ": " + last_error_.message()));
    for (const Batch& batch : queue_) {
      if (lost_) lost_(batch.info, why);
    }
    return why;
  }

  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

  std::optional<QueueGauge> Queue() const override {
    std::lock_guard lock(mu_);
    QueueGauge gauge{.blocks = queue_.size(),
                     .bytes = queued_bytes_,
                     .limit_bytes = options_.limit_bytes};
    for (const Batch& batch : queue_) gauge.events += batch.info.events;
    return gauge;
  }

 private:
  std::string Name() const { return options_.address.Text(); }

  void End() {
    Signal(stop_);
    if (thread_.joinable()) thread_.join();
  }

  void Run() {
    auto pause = std::chrono::nanoseconds(kFirstPause);
    while (!Done()) {
      const Status status = Converse(&pause);
      if (Done()) break;
      if (status.ok()) continue;
      NoteFailure(status);
      if (WaitFor(-1, 0, pause)) break;
      pause = std::min(2 * pause, options_.retry);
    }
    std::lock_guard lock(mu_);
    ended_ = true;
    moved_.notify_all();
  }

  bool Done() {
    pollfd stop = {stop_.get(), POLLIN, 0};
    if (::poll(&stop, 1, 0) > 0) return true;
    std::lock_guard lock(mu_);
    return finishing_ && queue_.empty();
  }

  // Once for each time that it goes away.
  void NoteFailure(const Status& status) {
    std::lock_guard lock(mu_);
    const bool first = last_error_.ok();
    last_error_ = status;
    if (first) {
      Notify(NoticeId::kOutputFailed,
             Name() + ": " + status.message() + "; what is sent there waits");
    }
  }

  // Waits for events on `fd` (-1: none); true if it is time to stop.
  bool WaitFor(int fd, short events, std::chrono::nanoseconds timeout,
               bool or_wake = false) {
    std::array<pollfd, 3> ready = {
        pollfd{stop_.get(), POLLIN, 0}, pollfd{fd, events, 0},
        pollfd{or_wake ? wake_.get() : -1, POLLIN, 0}};
    const auto ms = std::chrono::ceil<milliseconds>(timeout).count();
    ::poll(ready.data(), ready.size(),
           static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000)));
    if (ready[2].revents != 0) {
      uint64_t count;
      (void)!::read(wake_.get(), &count, sizeof count);
    }
    return ready[0].revents != 0;
  }

  Result<std::unique_ptr<net::Stream>> Connect() {
    Result<UniqueFd> fd = dialer_->Dial(stop_.get());
    if (!fd.ok()) return fd.status();
    if (options_.tls == nullptr) {
      return net::MakePlainStream(std::move(*fd),
                                  options_.framing == FeedFraming::kDatagram);
    }
    Result<std::unique_ptr<net::Stream>> stream =
        options_.tls->Wrap(std::move(*fd), options_.tls_name);
    if (!stream.ok()) return stream.status();
    const auto until = Clock::now() + kHandshakePatience;
    for (;;) {
      const Result<bool> done = (*stream)->Handshake();
      if (!done.ok()) return done.status();
      if (*done) return stream;
      if (Clock::now() >= until) {
        return Status::System(ETIMEDOUT, "TLS handshake");
      }
      if (WaitFor((*stream)->fd(), (*stream)->Events(true, false),
                  until - Clock::now())) {
        return Status::System(ECANCELED, "stopped");
      }
    }
  }

  // Connects, and sends until that fails or there is nothing more to send.
  Status Converse(std::chrono::nanoseconds* pause) {
    Result<std::unique_ptr<net::Stream>> connected = Connect();
    if (!connected.ok()) return connected.status();
    net::Stream& stream = **connected;
    // A message that was cut by the end of the last connection goes again.
    sent_ = MessageStart(sent_);
    std::vector<std::byte> ignored(net::kMaxPacketBytes);
    for (;;) {
      bool more = false;
      if (Status s = SendSome(stream, &more); !s.ok()) return s;
      if (!more) {
        *pause = kFirstPause;
        std::lock_guard lock(mu_);
        last_error_ = Status::Ok();
      }
      if (Done()) {
        stream.EndWriting();
        return Status::Ok();
      }
      // Nothing is expected from there but its end.
      const Result<net::Stream::Moved> moved = stream.Read(ignored);
      if (!moved.ok()) return moved.status();
      if (moved->ended) {
        return Status::SystemSaid(ECONNRESET,
                                  "the receiver closed the connection");
      }
      if (WaitFor(stream.fd(), stream.Events(true, more),
                  std::chrono::minutes(1), !more)) {
        return Status::Ok();
      }
    }
  }

  // The beginning of the first batch's message that `offset` lies in.
  size_t MessageStart(size_t offset) {
    std::lock_guard lock(mu_);
    if (queue_.empty()) return 0;
    const std::vector<size_t>& ends = queue_.front().ends;
    const auto after = std::upper_bound(ends.begin(), ends.end(), offset);
    return after == ends.begin() ? 0 : *std::prev(after);
  }

  // Sends what the connection takes; `more`: there is still something.
  Status SendSome(net::Stream& stream, bool* more) {
    for (;;) {
      const Batch* batch = nullptr;
      {
        std::lock_guard lock(mu_);
        if (!queue_.empty()) batch = &queue_.front();
      }
      *more = batch != nullptr;
      if (batch == nullptr) return Status::Ok();
      // Only this thread takes from the front: it stays where it is.
      while (sent_ < batch->bytes.size()) {
        ByteSpan piece = AsBytes(batch->bytes).subspan(sent_);
        if (options_.framing == FeedFraming::kDatagram) {
          piece = piece.first(
              *std::upper_bound(batch->ends.begin(), batch->ends.end(), sent_) -
              sent_);
        }
        const Result<net::Stream::Moved> moved = stream.Write(piece);
        if (!moved.ok()) return moved.status();
        if (moved->bytes == 0) return Status::Ok();
        sent_ += moved->bytes;
      }
      std::lock_guard lock(mu_);
      queued_bytes_ -= batch->bytes.size();
      queue_.pop_front();
      sent_ = 0;
      moved_.notify_all();
    }
  }

  const StreamSinkOptions options_;
  const std::unique_ptr<Dialer> dialer_;
  const UniqueFd wake_;  // eventfd: there is something to send
  const UniqueFd stop_;  // eventfd: end at once
  BlockLost lost_;
  std::thread thread_;
  size_t sent_ = 0;  // of the first batch; the thread's own

  mutable std::mutex mu_;
  std::condition_variable moved_;
  // Guarded by mu_.
  std::deque<Batch> queue_;
  uint64_t queued_bytes_ = 0;
  bool gave_up_ = false;
  bool finishing_ = false;
  bool ended_ = false;
  Status last_error_;  // since it could be reached last
};

}  // namespace

std::string FrameMessage(const FeedMessage& message,
                         const StreamSinkOptions& options) {
  if (options.framing == FeedFraming::kLines) return message.text + '\n';
  const int severity = SeverityOf(message.urgency);
  std::string text = '<' + std::to_string(options.facility * 8 + severity) +
                     ">1 " + Rfc3339(message.real_ns, 6) + ' ' +
                     (options.host.empty() ? "-" : options.host) + " tracefs " +
                     std::to_string(::getpid()) + ' ' +
                     std::string(message.id) + " - ";
  const bool ascii =
      std::all_of(message.text.begin(), message.text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) text += "\xef\xbb\xbf";  // "this is UTF-8"
  text += message.text;
  CutUtf8(StreamSinkOptions::kMaxSyslogBytes, &text);
  if (options.framing == FeedFraming::kDatagram) return text;
  return std::to_string(text.size()) + ' ' + text;
}

std::unique_ptr<FeedSink> MakeStreamSink(StreamSinkOptions options,
                                         std::unique_ptr<Dialer> dialer) {
  return std::make_unique<StreamSink>(std::move(options), std::move(dialer));
}

}  // namespace tracefs
