#include "tracefs/mount/process_feed.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/format/process_message.h"

namespace tracefs {
namespace {

// Messages that are not records; never in a trace.
constexpr uint16_t kEndTraces = 0xff01;
constexpr uint16_t kGoodbye = 0xff02;
constexpr uint16_t kFlush = 0xff03;
constexpr uint16_t kAdd = 0xff04;  // its contents are messages of a trace

// How far a trace may lag behind while processes are followed.
constexpr int kLagMs = 25;
constexpr size_t kReceiveBytes = size_t{64} << 10;
// Three lists of 6 MiB, paths and pipes.
constexpr size_t kMaxMessageBytes = size_t{32} << 20;
constexpr size_t kFixedBytes = size_t{64} << 10;

}  // namespace

Result<std::unique_ptr<ProcessFeed>> ProcessFeed::Create() {
  std::unique_ptr<ProcessFeed> feed(new ProcessFeed);
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Status::System(errno, "socket of process records");
  }
  feed->sender_.Reset(ends[0]);
  feed->receiver_.Reset(ends[1]);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Status::System(errno, "shared memory");
  feed->shared_ = new (memory) Shared;
  return feed;
}

ProcessFeed::~ProcessFeed() {
  Stop();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

// --- The sender. -----------------------------------------------------------

ProcessNeeds ProcessFeed::Wanted() const {
  return {.records = shared_->records.load(),
          .environment = shared_->environment.load()};
}

void ProcessFeed::SendAll(const std::byte* bytes, size_t size) {
  while (sender_ && size != 0) {
    const ssize_t n = ::send(sender_.get(), bytes, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sender_.Reset();
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

void ProcessFeed::Send(ProcessRecord& record) {
  const size_t room = kFixedBytes + record.argv.size() + record.environ.size() +
                      record.pipes.size() * sizeof(PipeEnd);
  if (buffer_.size() < room) buffer_.resize(room);
  shared_->stamping.store(MonotonicNs(), std::memory_order_seq_cst);
  record.time_ns = MonotonicNs();
  format::MessageWriter out(buffer_);
  if (format::WriteProcessRecord(out, record)) {
    SendAll(buffer_.data(), out.size());
  }
  shared_->stamping.store(0, std::memory_order_seq_cst);
}

// A message without contents.
void ProcessFeed::Order(uint16_t id) {
  std::array<std::byte, format::kMessageHeaderBytes> bytes;
  format::MessageWriter out(bytes);
  out.Begin(id);
  out.End();
  SendAll(bytes.data(), bytes.size());
}

bool ProcessFeed::AwaitAnswer(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (sender_) {
    // One answer is enough: a mount that others steer may send many, or none.
    char done = 0;
    const ssize_t n = ::recv(sender_.get(), &done, 1, MSG_DONTWAIT);
    if (n >= 0 || (errno != EINTR && errno != EAGAIN)) return n == 1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ready = {sender_.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(left.count()));
  }
  return false;
}

bool ProcessFeed::EndTraces(std::chrono::milliseconds patience) {
  Order(kEndTraces);
  return AwaitAnswer(patience);
}

bool ProcessFeed::AwaitFlushed(bool go_on, std::chrono::milliseconds patience) {
  // One that has ended says so by itself.
  if (go_on) Order(kFlush);
  return AwaitAnswer(patience);
}

bool ProcessFeed::FlushSent(std::chrono::milliseconds patience) {
  Order(kFlush);
  return AwaitAnswer(patience);
}

void ProcessFeed::SendMessages(ByteSpan messages) {
  std::array<std::byte, format::kMessageHeaderBytes> head;
  StoreLe<uint16_t>(head.data(), kAdd);
  StoreLe<uint32_t>(head.data() + 2,
                    static_cast<uint32_t>(head.size() + messages.size()));
  SendAll(head.data(), head.size());
  SendAll(messages.data(), messages.size());
}

void ProcessFeed::Close() { sender_.Reset(); }

void ProcessFeed::SayGoodbye() { Order(kGoodbye); }

// --- The mount. ------------------------------------------------------------

void ProcessFeed::TellWanted(ProcessNeeds needs) {
  shared_->records.store(needs.records);
  shared_->environment.store(needs.environment);
}

Status ProcessFeed::Start(ProcessSink& sink, Hooks hooks) {
  sink_ = &sink;
  hooks_ = std::move(hooks);
  sink_->HoldBack(MonotonicNs());
  return worker_.Start("tracefs-feed", [this] { Loop(); });
}

void ProcessFeed::Loop() {
  bool open = true;
  while (open && !worker_.ending()) {
    pollfd wait = {receiver_.get(), POLLIN, 0};
    ::poll(&wait, 1, kLagMs);
    // In this order: a record that gets its time after the first is sent after
    // it, or seen by the second.
    const uint64_t now = MonotonicNs();
    const uint64_t stamping = shared_->stamping.load(std::memory_order_seq_cst);
    open = Receive();
    sink_->HoldBack(stamping == 0 ? now : std::min(now, stamping));
  }
  // Sent before the mount went away.
  if (open) static_cast<void>(Receive());
  sink_->HoldBack(ProcessSink::kNothingHeld);
  if (!goodbye_ && !worker_.ending() && hooks_.abandoned) hooks_.abandoned();
}

void ProcessFeed::Answer() {
  const char done = 1;
  static_cast<void>(
      ::send(receiver_.get(), &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void ProcessFeed::TakeMessagesAtEnd() {
  if (!shared_->adds.load()) return;
  if (hooks_.flush) hooks_.flush();
  Answer();
  while (Receive()) {
    pollfd wait = {receiver_.get(), POLLIN, 0};
    ::poll(&wait, 1, -1);
  }
}

bool ProcessFeed::Receive() {
  for (;;) {
    const size_t had = buffer_.size();
    buffer_.resize(had + kReceiveBytes);
    const ssize_t n = ::recv(receiver_.get(), buffer_.data() + had,
                             kReceiveBytes, MSG_DONTWAIT);
    buffer_.resize(had + (n > 0 ? static_cast<size_t>(n) : 0));
    if (n > 0) {
      TakeMessages();
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

void ProcessFeed::TakeMessages() {
  size_t at = 0;
  while (buffer_.size() - at >= format::kMessageHeaderBytes) {
    const size_t length = LoadLe<uint32_t>(buffer_.data() + at + 2);
    // Our own sender does not lie; a command that took it over might.
    if (length < format::kMessageHeaderBytes || length > kMaxMessageBytes) {
      buffer_.clear();
      return;
    }
    if (buffer_.size() - at < length) break;
    const ByteSpan message(buffer_.data() + at, length);
    at += length;
    const auto id = LoadLe<uint16_t>(message.data());
    if (const auto kind = format::ProcessKindOf(id)) {
      ProcessRecord record;
      record.kind = *kind;
      if (format::ReadProcessRecord(
              message.subspan(format::kMessageHeaderBytes),
              format::BuiltInWidths(), &record)) {
        sink_->Take(record);
      }
    } else if (id == kEndTraces) {
      // However often it comes: they have one end, and nobody is waited for.
      if (std::exchange(ended_traces_, true)) continue;
      sink_->HoldBack(ProcessSink::kNothingHeld);
      if (hooks_.end_traces) hooks_.end_traces();
      Answer();
    } else if (id == kFlush) {
      if (hooks_.flush) hooks_.flush();
      Answer();
    } else if (id == kAdd) {
      if (hooks_.add) hooks_.add(message.subspan(format::kMessageHeaderBytes));
    } else if (id == kGoodbye) {
      goodbye_ = true;
    }
  }
  buffer_.erase(buffer_.begin(),
                buffer_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace tracefs
