#include "drivers/output/remote/link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tracefs/base/notice.h"

namespace tracefs {
namespace {

using Clock = Sender::Clock;

constexpr auto kGreetingPatience = std::chrono::seconds(10);
constexpr size_t kPieceBytes = 256 * 1024;
// Sent in one turn, before the receiver's answers are looked at again.
constexpr size_t kTurnBytes = 1 << 20;

}  // namespace

// One connection: its stream, what was read of the next reply, and how far the
// frame that is being sent has come.
class Link::Conversation {
 public:
  Conversation(const Sender& sender, net::Stream& stream)
      : sender_(sender), stream_(stream) {}

  Status Await(bool read, bool write, Clock::time_point until, bool or_wake) {
    return sender_.Await(stream_, read, write, until, or_wake);
  }

  // Reads what is there. An error if the peer has ended.
  Status ReadSome() {
    const auto moved = stream_.Read(buffer_);
    if (moved.ok() && !moved->ended) {
      replies_ += AsText(ByteSpan(buffer_).first(moved->bytes));
      return Status::Ok();
    }
    // What it said before it hung up tells more.
    if (const auto last = Next(); !last.ok()) return last.status();
    return moved.ok() ? Status::SystemSaid(ECONNRESET,
                                           "the receiver closed the connection")
                      : moved.status();
  }
  // The next reply, if it is there whole. A REFUSE is an error.
  Result<std::optional<net::Reply>> Next() {
    auto reply = net::TakeReply(replies_);
    if (reply.ok() && *reply && (*reply)->type == net::ReplyType::kRefuse) {
      return Status::SystemSaid(
          ECONNREFUSED, "the receiver says: " + Printable((*reply)->text));
    }
    return reply;
  }

  Status SendAll(std::string_view text) {
    const auto until = Clock::now() + kGreetingPatience;
    while (!text.empty()) {
      const auto moved = stream_.Write(AsBytes(text));
      if (!moved.ok()) return moved.status();
      text.remove_prefix(moved->bytes);
      if (text.empty()) break;
      if (Status s = Await(false, true, until, false); !s.ok()) return s;
    }
    return Status::Ok();
  }

  Result<net::Reply> AwaitReply() {
    const auto until = Clock::now() + kGreetingPatience;
    for (;;) {
      auto reply = Next();
      if (!reply.ok()) return reply.status();
      if (*reply) return **std::move(reply);
      if (Status s = Await(true, false, until, false); !s.ok()) {
        return s.error() == ETIMEDOUT
                   ? Status::SystemSaid(
                         ETIMEDOUT,
                         "it accepts connections but does not answer; is a "
                         "tracefs-recv there, and running?")
                   : s;
      }
      if (Status s = ReadSome(); !s.ok()) return s;
    }
  }

  // Sends from `frame`, which holds still; true once all of it is sent.
  Result<bool> SendFrom(const Backlog::Frame& frame, size_t* budget) {
    while (offset_ < frame.bytes) {
      if (*budget == 0) return false;
      const uint64_t left =
          std::min<uint64_t>(frame.bytes - offset_, kPieceBytes);
      ByteSpan piece;
      if (frame.memory != nullptr) {
        piece = {frame.memory.get() + offset_, left};
      } else if (Status s = Load(frame, left, &piece); !s.ok()) {
        return s;
      }
      const auto moved = stream_.Write(piece);
      if (!moved.ok()) return moved.status();
      if (moved->bytes == 0) return false;
      offset_ += moved->bytes;
      progressed_ = true;
      *budget -= std::min(*budget, moved->bytes);
    }
    offset_ = 0;
    loaded_ = {};
    return true;
  }
  bool TakeProgress() { return std::exchange(progressed_, false); }

 private:
  static std::string Printable(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    }
    return text;
  }

  // Reads a piece of a frame from its file.
  Status Load(const Backlog::Frame& frame, uint64_t bytes, ByteSpan* piece) {
    const uint64_t at = frame.offset + offset_;
    if (at < loaded_at_ || at >= loaded_at_ + loaded_.size()) {
      if (file_buffer_ == nullptr) {
        file_buffer_ = std::make_unique<std::byte[]>(kPieceBytes);
      }
      const ssize_t n = ::pread(frame.segment->fd.get(), file_buffer_.get(),
                                bytes, static_cast<off_t>(at));
      if (n <= 0) {
        return Status::System(n < 0 ? errno : EIO, "reading the spilled trace");
      }
      loaded_ = {file_buffer_.get(), static_cast<size_t>(n)};
      loaded_at_ = at;
    }
    *piece = loaded_.subspan(at - loaded_at_);
    *piece = piece->first(std::min<uint64_t>(piece->size(), bytes));
    return Status::Ok();
  }

  const Sender& sender_;
  net::Stream& stream_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(net::kMaxPacketBytes);
  std::string replies_;
  uint64_t offset_ = 0;  // in the frame that is being sent
  bool progressed_ = false;
  std::unique_ptr<std::byte[]> file_buffer_;
  ByteSpan loaded_;  // of the frame's file
  uint64_t loaded_at_ = 0;
};

Link::Link(LinkOptions options, Dialer& dialer, Trace trace)
    : options_(std::move(options)),
      trace_(std::move(trace)),
      sent_end_(trace_.sent_before ? UINT64_MAX : 0),
      sender_(options_, dialer, *this) {}

std::unique_ptr<Backlog> Link::TakeBacklog() {
  const auto lock = sender_.Lock();
  return std::exchange(trace_.backlog, MakeMemoryBacklog());
}

void Link::NoteFailure(const Status& why) {
  connected_ = false;
  sent_ = 0;
  ++failures_;
  last_failure_ = why.Prefixed(options_.Name());
  // Once for each time that the connection is lost.
  if (std::exchange(told_, true)) return;
  Notify(NoticeId::kOutputFailed, last_failure_.message() + "; trying again, " +
                                      std::to_string(trace_.backlog->size()) +
                                      " blocks wait to be sent");
}

Status Link::Welcome(const net::Reply& welcome) {
  if (welcome.type != net::ReplyType::kWelcome) {
    return Status::Corrupt("the receiver did not answer HELLO with WELCOME");
  }
  if (welcome.version != net::kProtocolVersion) {
    return Status::Invalid("the receiver speaks version " +
                           std::to_string(welcome.version) +
                           " of the protocol: use the same Tracefs on both "
                           "sides");
  }
  const auto lock = sender_.Lock();
  Backlog& backlog = *trace_.backlog;
  if (!backlog.empty() && !welcome.live) {
    const uint64_t first = backlog.frame(0).info.sequence;
    if (welcome.next < first && welcome.next != 0) {
      Notify(NoticeId::kOutputFailed,
             options_.Name() +
                 " has lost blocks that it had acknowledged: it ends before "
                 "block " +
                 std::to_string(welcome.next) + ", the oldest here is " +
                 std::to_string(first));
    }
  }
  // Believing it would throw away what nobody has.
  if (welcome.next > sent_end_) {
    return Status::Corrupt("the receiver says that it has block " +
                           std::to_string(welcome.next - 1) +
                           ", which was never sent; it may have mixed up two "
                           "traces: look at what it keeps");
  }
  backlog.DropBefore(welcome.next);
  sent_ = 0;
  connected_ = true;
  if (std::exchange(told_, false)) {
    Notify(NoticeId::kOutputBack, options_.Name() + ": connected again, " +
                                      std::to_string(backlog.size()) +
                                      " blocks to send");
  }
  if (trace_.shorter) trace_.shorter(backlog);
  sender_.NotifyAll();
  return Status::Ok();
}

Status Link::Acknowledge(uint64_t next) {
  const auto lock = sender_.Lock();
  Backlog& backlog = *trace_.backlog;
  // It cannot have what was not sent. Of the backlog that tells nothing: all
  // that is in it may have been sent, and more be added later.
  if (next > sent_end_) {
    return Status::Corrupt("the receiver acknowledges what was not sent");
  }
  const size_t dropped = backlog.DropBefore(next);
  if (dropped == 0) return Status::Ok();
  sent_ -= std::min(sent_, dropped);
  sender_.ResetPause();
  if (trace_.shorter) trace_.shorter(backlog);
  sender_.NotifyAll();
  return Status::Ok();
}

void Link::PassTooLarge(uint32_t max_frame) {
  const Status why =
      Status::System(EMSGSIZE, options_.Name() + " takes blocks of at most " +
                                   std::to_string(max_frame) +
                                   " bytes; set a smaller buf, or raise "
                                   "--max-block, max_payload or "
                                   "message.max.bytes there");
  std::vector<BlockInfo> dropped;
  {
    const auto lock = sender_.Lock();
    Backlog& backlog = *trace_.backlog;
    if (!trace_.lost) {
      const bool before =
          std::exchange(too_large_, sent_ < backlog.size() &&
                                        backlog.frame(sent_).bytes > max_frame);
      if (!before && too_large_) {
        Notify(NoticeId::kOutputFailed,
               why.message() + "; " + std::to_string(backlog.size() - sent_) +
                   " blocks that an earlier process left stay where they are");
      }
      return;
    }
    while (sent_ < backlog.size() && backlog.frame(sent_).bytes > max_frame) {
      dropped.push_back(backlog.frame(sent_).info);
      backlog.Drop(sent_);
    }
    if (!dropped.empty()) sender_.NotifyAll();
  }
  for (const BlockInfo& info : dropped) trace_.lost(info, why);
}

Result<uint32_t> Link::Greet(Conversation& talk) {
  net::Hello hello;
  hello.preamble = trace_.preamble;
  {
    const auto lock = sender_.Lock();
    if (!trace_.backlog->empty()) {
      hello.first = trace_.backlog->frame(0).info.sequence;
    }
  }
  // Its verdict on our certificate comes after our side of the handshake, and
  // may be overtaken by the end of the connection.
  const auto maybe_refused = [&](const Status& s) {
    const int error = s.error();
    if (options_.tls == nullptr || (error != ECONNRESET && error != EPIPE)) {
      return s;
    }
    return Status::SystemSaid(
        error, s.message() +
                   "; perhaps it does not accept our certificate: look at what "
                   "the receiver says");
  };
  if (Status s = talk.SendAll(net::EncodeHello(hello)); !s.ok()) {
    return maybe_refused(s);
  }
  const Result<net::Reply> welcome = talk.AwaitReply();
  if (!welcome.ok()) return maybe_refused(welcome.status());
  if (Status s = Welcome(*welcome); !s.ok()) return s;
  return welcome->max_frame;
}

Status Link::Converse(net::Stream& stream) {
  Conversation talk(sender_, stream);
  const Result<uint32_t> greeted = Greet(talk);
  if (!greeted.ok()) return greeted.status();
  const uint32_t max_frame = *greeted;
  auto progress = Clock::now();
  for (;;) {
    PassTooLarge(max_frame);
    const Backlog::Frame* frame = nullptr;
    bool waiting = false;  // for an answer
    {
      const auto lock = sender_.Lock();
      if (sender_.Done()) {
        stream.EndWriting();
        return Status::Ok();
      }
      if (sent_ < trace_.backlog->size() && !too_large_) {
        frame = &trace_.backlog->frame(sent_);
      }
      waiting = sent_ != 0 || frame != nullptr;
    }
    // An idle receiver owes nothing.
    if (!waiting) progress = Clock::now();
    Status ready = talk.Await(true, frame != nullptr,
                              progress + options_.timeout, /*or_wake=*/true);
    if (!ready.ok()) {
      if (ready.error() != ETIMEDOUT) return ready;
      if (!waiting) continue;
      return Status::SystemSaid(
          ETIMEDOUT,
          "it has acknowledged nothing for some time; look at what it says, "
          "and at its disk");
    }
    if (Status s = talk.ReadSome(); !s.ok()) return s;
    for (;;) {
      const auto reply = talk.Next();
      if (!reply.ok()) return reply.status();
      if (!*reply) break;
      if ((*reply)->type != net::ReplyType::kAck) continue;
      if (Status s = Acknowledge((*reply)->next); !s.ok()) return s;
      progress = Clock::now();
      // What is being sent is still there: it was not sent whole.
    }
    size_t budget = kTurnBytes;
    while (frame != nullptr && budget != 0) {
      const Result<bool> whole = talk.SendFrom(*frame, &budget);
      if (!whole.ok()) return whole.status();
      if (!*whole) break;
      const auto lock = sender_.Lock();
      sent_end_ =
          std::max(sent_end_, trace_.backlog->frame(sent_).info.sequence + 1);
      ++sent_;
      frame = sent_ < trace_.backlog->size() &&
                      trace_.backlog->frame(sent_).bytes <= max_frame
                  ? &trace_.backlog->frame(sent_)
                  : nullptr;
    }
    if (talk.TakeProgress()) progress = Clock::now();
  }
}

}  // namespace tracefs
