#include "drivers/output/remote/sender.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tracefs/base/clock.h"
#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

using net::Transport;
using std::chrono::nanoseconds;

constexpr auto kHandshakePatience = std::chrono::seconds(10);

int ToPollMs(nanoseconds duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration);
  return static_cast<int>(std::clamp<int64_t>(ms.count(), 0, 60'000));
}

bool IsPackets(Transport transport) {
  return transport == Transport::kSeqpacket || transport == Transport::kUdp ||
         transport == Transport::kDatagram;
}

}  // namespace

Sender::Sender(const SenderOptions& options, Dialer& dialer,
               SenderProtocol& protocol)
    : options_(options),
      dialer_(dialer),
      protocol_(protocol),
      random_(MonotonicNs() | 1) {}

Sender::~Sender() {
  Abort();
  if (thread_.joinable()) thread_.join();
}

Status Sender::Start(const char* name) {
  if (!wake_ || !stop_) return Status::System(EMFILE, "eventfd");
  return StartThread(
      name, [this] { Run(); }, &thread_);
}

void Sender::Finish() {
  {
    std::lock_guard lock(mu_);
    finishing_ = true;
  }
  Wake();
}

void Sender::Abort() {
  {
    std::lock_guard lock(mu_);
    aborting_ = true;
  }
  stop_.Set();
}

bool Sender::AwaitEnd(Clock::time_point until) {
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

void Sender::EndWithin(nanoseconds patience) {
  Finish();
  if (AwaitEnd(Clock::now() + patience)) return;
  Abort();
  thread_.join();
}

void Sender::Run() {
  std::unique_lock lock(mu_);
  while (!Done()) {
    lock.unlock();
    const Status status = Attempt();
    lock.lock();
    if (status.ok() || Done()) continue;
    protocol_.NoteFailure(status);
    NotifyAll();
    lock.unlock();
    Pause(NextPause());
    lock.lock();
  }
  ended_ = true;
  NotifyAll();
}

// One connection from beginning to end.
Status Sender::Attempt() {
  Result<UniqueFd> fd = dialer_.Dial(stop_.get());
  if (!fd.ok()) return fd.status();
  if (options_.tls == nullptr) {
    return protocol_.Converse(*net::MakePlainStream(
        *std::move(fd), IsPackets(options_.address.transport)));
  }
  const auto stream = options_.tls->Wrap(*std::move(fd), options_.tls_name);
  if (!stream.ok()) return stream.status();
  const auto until = Clock::now() + kHandshakePatience;
  for (;;) {
    const Result<bool> done = (*stream)->Handshake();
    if (!done.ok()) return done.status();
    if (*done) return protocol_.Converse(**stream);
    const Status s = Await(**stream, true, false, until, /*or_wake=*/false);
    if (s.error() == ETIMEDOUT)
      return Status::System(ETIMEDOUT, "TLS handshake");
    if (!s.ok()) return s;
  }
}

Status Sender::Await(const net::Stream& stream, bool read, bool write,
                     Clock::time_point until, bool or_wake) const {
  if (read && stream.HasPending()) return Status::Ok();
  std::array<pollfd, 3> ready = {
      pollfd{stream.fd(), stream.Events(read, write), 0},
      pollfd{stop_.get(), POLLIN, 0},
      pollfd{or_wake ? wake_.get() : -1, POLLIN, 0}};
  const int n =
      ::poll(ready.data(), ready.size(), ToPollMs(until - Clock::now()));
  if (n < 0 && errno != EINTR) return Status::System(errno, "poll");
  if (ready[1].revents != 0) return Status::System(ECANCELED, "stopped");
  if (ready[2].revents != 0) wake_.Clear();
  if (n == 0 && Clock::now() >= until) {
    return Status::System(ETIMEDOUT, "no answer");
  }
  return Status::Ok();
}

void Sender::Pause(nanoseconds duration) const {
  const auto until = Clock::now() + duration;
  pollfd stop = {stop_.get(), POLLIN, 0};
  while (Clock::now() < until && stop.revents == 0) {
    ::poll(&stop, 1, ToPollMs(until - Clock::now()));
  }
}

nanoseconds Sender::NextPause() {
  const nanoseconds first = options_.first_pause.count() != 0
                                ? options_.first_pause
                                : options_.retry / 100;
  const uint64_t doublings = std::min<uint64_t>(attempt_++, 16);
  const nanoseconds most =
      std::min(options_.retry, first * (int64_t{1} << doublings));
  if (!options_.spread) return most;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const auto half = static_cast<uint64_t>(most.count()) / 2;
  return nanoseconds(half + random_ % (half + 1));
}

}  // namespace tracefs
