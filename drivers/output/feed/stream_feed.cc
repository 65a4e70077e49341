#include "drivers/output/feed/stream_feed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "tracefs/base/notice.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

// At the end of a trace: for what waits to be sent.
constexpr auto kFarewell = std::chrono::seconds(3);

// The severity of syslog.
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

class StreamFeed final : public Feed, SenderProtocol {
 public:
  StreamFeed(std::unique_ptr<FeedFormat> format, StreamFeedOptions options,
             std::unique_ptr<Dialer> dialer)
      : Feed(std::move(format)),
        options_(std::move(options)),
        dialer_(std::move(dialer)),
        sender_(options_, *dialer_, *this) {}

  Status Initialize(const TraceIdentity& identity) override {
    lost_ = identity.lost;
    return sender_.Start("tracefs-feed");
  }

  Status Send(const std::vector<FeedMessage>& messages,
              const BlockInfo& info) override {
    Batch batch;
    batch.info = info;
    for (const FeedMessage& message : messages) {
      batch.bytes += FrameMessage(message, options_);
      batch.ends.push_back(batch.bytes.size());
    }
    std::unique_lock lock = sender_.Lock();
    const auto has_room = [&] {
      return queue_.empty() ||
             queued_bytes_ + batch.bytes.size() <= options_.limit_bytes;
    };
    // Nobody waits twice for a receiver that does not come back.
    if (!has_room() && !gave_up_ && options_.deadline.count() > 0) {
      gave_up_ = !sender_.WaitFor(lock, options_.deadline, has_room);
    }
    if (!has_room()) {
      return DroppedStatus(LossReason::kQueueFull,
                           Name() + ": the receiver is too slow or away");
    }
    gave_up_ = false;
    queued_bytes_ += batch.bytes.size();
    queue_.push_back(std::move(batch));
    lock.unlock();
    sender_.Wake();
    return Status::Ok();
  }

  Status Flush() override { return Status::Ok(); }

  Status Release() override {
    sender_.EndWithin(kFarewell);
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
    const auto lock = sender_.Lock();
    QueueGauge gauge{.blocks = queue_.size(),
                     .bytes = queued_bytes_,
                     .limit_bytes = options_.limit_bytes};
    for (const Batch& batch : queue_) gauge.events += batch.info.events;
    return gauge;
  }

 private:
  std::string Name() const { return options_.address.Text(); }

  bool AllSent() const override { return queue_.empty(); }

  // Told once for each time that it goes away.
  void NoteFailure(const Status& why) override {
    if (last_error_.ok()) {
      Notify(NoticeId::kOutputFailed,
             Name() + ": " + why.message() + "; what is sent there waits");
    }
    last_error_ = why;
  }

  Status Converse(net::Stream& stream) override {
    // A message that was cut by the end of the last connection goes again.
    sent_ = MessageStart(sent_);
    std::vector<std::byte> ignored(net::kMaxPacketBytes);
    for (;;) {
      bool more = false;
      if (Status s = SendSome(stream, &more); !s.ok()) return s;
      {
        const auto lock = sender_.Lock();
        if (!more) {
          sender_.ResetPause();
          last_error_ = Status::Ok();
        }
        if (sender_.Done()) {
          stream.EndWriting();
          return Status::Ok();
        }
      }
      // Nothing is expected from there but its end.
      const Result<net::Stream::Moved> moved = stream.Read(ignored);
      if (!moved.ok()) return moved.status();
      if (moved->ended) {
        return Status::SystemSaid(ECONNRESET,
                                  "the receiver closed the connection");
      }
      if (Status s = sender_.Await(stream, true, more,
                                   Sender::Clock::time_point::max(),
                                   /*or_wake=*/!more);
          !s.ok()) {
        return s;
      }
    }
  }

  // The beginning of the first batch's message that `offset` lies in.
  size_t MessageStart(size_t offset) {
    const auto lock = sender_.Lock();
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
        const auto lock = sender_.Lock();
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
      const auto lock = sender_.Lock();
      queued_bytes_ -= batch->bytes.size();
      queue_.pop_front();
      sent_ = 0;
      sender_.NotifyAll();
    }
  }

  const StreamFeedOptions options_;
  const std::unique_ptr<Dialer> dialer_;
  BlockLost lost_;
  size_t sent_ = 0;  // of the first batch; the thread's own

  // Guarded by the sender's lock.
  std::deque<Batch> queue_;
  uint64_t queued_bytes_ = 0;
  bool gave_up_ = false;
  Status last_error_;  // since it could be reached last

  Sender sender_;  // the last: it ends before the others go
};

}  // namespace

std::string FrameMessage(const FeedMessage& message,
                         const StreamFeedOptions& options) {
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
  CutUtf8(StreamFeedOptions::kMaxSyslogBytes, &text);
  if (options.framing == FeedFraming::kDatagram) return text;
  return std::to_string(text.size()) + ' ' + text;
}

std::unique_ptr<Feed> MakeStreamFeed(std::unique_ptr<FeedFormat> format,
                                     StreamFeedOptions options,
                                     std::unique_ptr<Dialer> dialer) {
  return std::make_unique<StreamFeed>(std::move(format), std::move(options),
                                      std::move(dialer));
}

}  // namespace tracefs
