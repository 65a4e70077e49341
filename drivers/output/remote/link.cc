#include "drivers/output/remote/link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr auto kGreetingPatience = std::chrono::seconds(10);
constexpr size_t kPieceBytes = 256 * 1024;
// Of one turn, before the receiver's answers are looked at again.
constexpr size_t kTurnBytes = 1 << 20;

void Signal(const UniqueFd& event) {
  const uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

int ToPollMs(nanoseconds duration) {
  const auto ms = std::chrono::ceil<milliseconds>(duration).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

}  // namespace

// One connection: its stream, what was read of the next reply, and how far the
// frame that is being sent has come.
class Link::Conversation {
 public:
  Conversation(const Link& link, std::unique_ptr<net::Stream> stream)
      : link_(link), stream_(std::move(stream)) {}

  net::Stream& stream() { return *stream_; }

  // Waits until the stream can do what is asked; kSystem ETIMEDOUT after
  // `until`, ECANCELED if the link is to end.
  Status Await(bool read, bool write, Clock::time_point until, bool or_wake) {
    if (read && stream_->HasPending()) return Status::Ok();
    std::array<pollfd, 3> ready = {
        pollfd{stream_->fd(), stream_->Events(read, write), 0},
        pollfd{link_.stop_.get(), POLLIN, 0},
        pollfd{or_wake ? link_.wake_.get() : -1, POLLIN, 0}};
    const int n =
        ::poll(ready.data(), ready.size(), ToPollMs(until - Clock::now()));
    if (n < 0 && errno != EINTR) return Status::System(errno, "poll");
    if (ready[1].revents != 0) return Status::System(ECANCELED, "stopped");
    if (ready[2].revents != 0) {
      uint64_t count;
      (void)!::read(link_.wake_.get(), &count, sizeof count);
    }
    if (n == 0 && Clock::now() >= until) {
      return Status::System(ETIMEDOUT, "no answer");
    }
    return Status::Ok();
  }

  // Reads what is there. An error if the peer has ended.
  Status ReadSome() {
    const auto moved = stream_->Read(buffer_);
    if (!moved.ok()) return moved.status();
    if (moved->ended) {
      return Status::SystemSaid(ECONNRESET,
                                "the receiver closed the connection");
    }
    replies_.append(reinterpret_cast<const char*>(buffer_.data()),
                    moved->bytes);
    return Status::Ok();
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

  Status Handshake() {
    const auto until = Clock::now() + kGreetingPatience;
    for (;;) {
      const Result<bool> done = stream_->Handshake();
      if (!done.ok()) return done.status();
      if (*done) return Status::Ok();
      if (Status s = Await(true, false, until, false); !s.ok()) return s;
    }
  }

  Status SendAll(std::string_view text) {
    const auto until = Clock::now() + kGreetingPatience;
    while (!text.empty()) {
      const auto moved = stream_->Write(AsBytes(text));
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
      if (Status s = ReadSome(); !s.ok()) {
        // What it said before it hung up tells more.
        auto last = Next();
        return last.ok() ? s : last.status();
      }
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
      const auto moved = stream_->Write(piece);
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
  bool InFrame() const { return offset_ != 0; }
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

  const Link& link_;
  const std::unique_ptr<net::Stream> stream_;
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
      dialer_(dialer),
      trace_(std::move(trace)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      sent_end_(trace_.sent_before ? UINT64_MAX : 0),
      random_(MonotonicNs() | 1) {}

Link::~Link() {
  Abort();
  if (thread_.joinable()) thread_.join();
}

void Link::Start() {
  thread_ = StartThread("tracefs-send", [this] { Run(); });
}

void Link::Finish() {
  {
    std::lock_guard lock(mu_);
    finishing_ = true;
  }
  Wake();
}

void Link::Abort() {
  {
    std::lock_guard lock(mu_);
    aborting_ = true;
  }
  Signal(stop_);
}

bool Link::AwaitEnd(std::chrono::steady_clock::time_point until) {
  if (!thread_.joinable()) return true;
  {
    std::unique_lock lock(mu_);
    if (!moved_.wait_until(lock, until, [this] { return ended_; })) {
      return false;
    }
  }
  thread_.join();
  return true;
}

std::unique_ptr<Backlog> Link::TakeBacklog() {
  std::lock_guard lock(mu_);
  return std::exchange(trace_.backlog, MakeMemoryBacklog());
}

void Link::Wake() { Signal(wake_); }

bool Link::Done() const {
  std::lock_guard lock(mu_);
  return aborting_ || (finishing_ && trace_.backlog->empty());
}

void Link::Run() {
  while (!Done()) {
    const Status status = Converse();
    if (status.ok() || Done()) continue;
    NoteFailure(status);
    if (Pause(NextPause())) break;
  }
  std::lock_guard lock(mu_);
  connected_ = false;
  ended_ = true;
  moved_.notify_all();
}

bool Link::Pause(nanoseconds duration) const {
  const auto until = Clock::now() + duration;
  for (;;) {
    const auto left = until - Clock::now();
    if (left <= nanoseconds(0)) return false;
    pollfd stop = {stop_.get(), POLLIN, 0};
    if (::poll(&stop, 1, ToPollMs(left)) > 0) return true;
  }
}

// Doubles from one attempt to the next, and is spread so that many senders do
// not come back to a receiver in the same moment.
nanoseconds Link::NextPause() {
  const uint64_t doublings = std::min<uint64_t>(attempt_++, 16);
  const nanoseconds most = std::min(
      options_.retry, (options_.retry / 100) * (int64_t{1} << doublings));
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const auto half = static_cast<uint64_t>(most.count()) / 2;
  return nanoseconds(half + random_ % (half + 1));
}

void Link::NoteFailure(const Status& why) {
  std::lock_guard lock(mu_);
  connected_ = false;
  sent_ = 0;
  ++failures_;
  last_failure_ = why.Prefixed(options_.address.Text());
  moved_.notify_all();
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
  std::lock_guard lock(mu_);
  Backlog& backlog = *trace_.backlog;
  if (!backlog.empty() && !welcome.live) {
    const uint64_t first = backlog.frame(0).info.sequence;
    if (welcome.next < first && welcome.next != 0) {
      Notify(NoticeId::kOutputFailed,
             options_.address.Text() +
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
    Notify(NoticeId::kOutputBack,
           options_.address.Text() + ": connected again, " +
               std::to_string(backlog.size()) + " blocks to send");
  }
  if (trace_.shorter) trace_.shorter(backlog);
  moved_.notify_all();
  return Status::Ok();
}

Status Link::Acknowledge(uint64_t next) {
  std::lock_guard lock(mu_);
  Backlog& backlog = *trace_.backlog;
  // It cannot have what was not sent. Of the backlog that tells nothing: all
  // that is in it may have been sent, and more be added later.
  if (next > sent_end_) {
    return Status::Corrupt("the receiver acknowledges what was not sent");
  }
  const size_t dropped = backlog.DropBefore(next);
  if (dropped == 0) return Status::Ok();
  sent_ -= std::min(sent_, dropped);
  attempt_ = 0;
  if (trace_.shorter) trace_.shorter(backlog);
  moved_.notify_all();
  return Status::Ok();
}

void Link::DropTooLarge(uint32_t max_frame) {
  std::vector<BlockInfo> dropped;
  {
    std::lock_guard lock(mu_);
    Backlog& backlog = *trace_.backlog;
    while (sent_ < backlog.size() && backlog.frame(sent_).bytes > max_frame) {
      dropped.push_back(backlog.frame(sent_).info);
      backlog.Drop(sent_);
    }
    if (!dropped.empty()) moved_.notify_all();
  }
  for (const BlockInfo& info : dropped) {
    if (!trace_.lost) continue;
    trace_.lost(info, Status::System(EMSGSIZE,
                                     options_.address.Text() +
                                         " takes blocks of at most " +
                                         std::to_string(max_frame) +
                                         " bytes; set a smaller buf, or raise "
                                         "--max-block there"));
  }
}

Status Link::Converse() {
  Result<UniqueFd> fd = dialer_.Dial(stop_.get());
  if (!fd.ok()) return fd.status();
  std::unique_ptr<net::Stream> stream;
  if (options_.tls != nullptr) {
    auto wrapped = options_.tls->Wrap(std::move(*fd), options_.tls_name);
    if (!wrapped.ok()) return wrapped.status();
    stream = std::move(*wrapped);
  } else {
    stream =
        net::MakePlainStream(std::move(*fd), options_.address.transport ==
                                                 net::Transport::kSeqpacket);
  }
  Conversation talk(*this, std::move(stream));
  if (Status s = talk.Handshake(); !s.ok()) return s;
  net::Hello hello;
  hello.preamble = trace_.preamble;
  {
    std::lock_guard lock(mu_);
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
  const uint32_t max_frame = welcome->max_frame;

  auto progress = Clock::now();
  for (;;) {
    DropTooLarge(max_frame);
    const Backlog::Frame* frame = nullptr;
    bool waiting = false;  // for an answer
    {
      std::lock_guard lock(mu_);
      if (aborting_ || (finishing_ && trace_.backlog->empty())) {
        talk.stream().EndWriting();
        return Status::Ok();
      }
      if (sent_ < trace_.backlog->size()) frame = &trace_.backlog->frame(sent_);
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
    if (Status s = talk.ReadSome(); !s.ok()) {
      const auto last = talk.Next();
      return last.ok() ? s : last.status();
    }
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
      std::lock_guard lock(mu_);
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
