#include "tracefs/recv/receiver.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/recv/client.h"
#include "tracefs/recv/line_limit.h"
#include "tracefs/recv/listening_sockets.h"
#include "tracefs/recv/room.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using net::RefuseReason;

constexpr size_t kReadBytes = 256 * 1024;
static_assert(kReadBytes >= net::kMaxPacketBytes);
constexpr int kTickMs = 100;
// For those who are told that the receiver ends.
constexpr auto kFarewell = milliseconds(1000);
// What a client leaves unread is not much: one refusal and some numbers.
constexpr size_t kMaxOutBytes = 4096;

// What is registered with epoll: clients have numbers from kFirstClient on.
constexpr uint64_t kStopEvent = 0;
constexpr uint64_t kKeeperEvent = 1;
constexpr uint64_t kReloadEvent = 2;
constexpr uint64_t kFirstListener = 3;
constexpr uint64_t kFirstClient = 1024;

class EpollReceiver final : public Receiver {
 public:
  EpollReceiver(ReceiverOptions options, Keeper& keeper)
      : options_(std::move(options)),
        keeper_(keeper),
        counts_(options_.counts != nullptr ? *options_.counts : own_counts_),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        buffer_(kReadBytes) {}

  Status Start() {
    if (!epoll_) return Status::System(errno, "epoll");
    Register(keeper_.event_fd(), kKeeperEvent, EPOLLIN);
    if (Status s = listeners_.Open(options_.listen,
                                   std::exchange(options_.handed, {}));
        !s.ok()) {
      return s;
    }
    for (size_t i = 0; i < listeners_.size(); ++i) {
      Register(listeners_.fd(i), kFirstListener + i, EPOLLIN);
    }
    if (options_.reload_fd >= 0) {
      Register(options_.reload_fd, kReloadEvent, EPOLLIN);
    }
    return Status::Ok();
  }

  std::vector<std::string> addresses() const override {
    return listeners_.Texts();
  }

  Status Run(int stop) override {
    Register(stop, kStopEvent, EPOLLIN);
    Status status = keeper_.Start();
    if (!status.ok()) return status;
    while (status.ok() && !stopping_) {
      Turn(kTickMs);
      status = Tick();
    }
    SayFarewell();
    const Status finished = keeper_.Finish();
    return status.ok() ? finished : status;
  }

 private:
  using Clients = std::unordered_map<uint64_t, std::unique_ptr<Client>>;

  void Register(int fd, uint64_t id, uint32_t events,
                int how = EPOLL_CTL_ADD) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    static_cast<void>(::epoll_ctl(epoll_.get(), how, fd, &event));
  }

  // One wait, and what it brought.
  void Turn(int timeout_ms) {
    std::array<epoll_event, 256> ready;
    // TLS may have read more than was asked for.
    const int n =
        ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                     pending_.empty() ? timeout_ms : 0);
    for (int i = 0; i < n; ++i) {
      const uint64_t id = ready[static_cast<size_t>(i)].data.u64;
      if (id == kStopEvent) {
        stopping_ = true;
      } else if (id == kKeeperEvent) {
        TakeKeeperEvents();
      } else if (id == kReloadEvent) {
        net::TlsContext* const tls = options_.on_reload();
        if (tls != nullptr) options_.tls = tls;
      } else if (id < kFirstClient) {
        AcceptSome(id - kFirstListener);
      } else {
        Serve(id, ready[static_cast<size_t>(i)].events);
      }
    }
    for (const uint64_t id : std::exchange(pending_, {})) Serve(id, 0);
  }

  // --- Clients that come and go.

  void AcceptSome(size_t listener) {
    // As with reads: others get their turn.
    for (int i = 0; i < 16; ++i) {
      UniqueFd fd(::accept4(listeners_.fd(listener), nullptr, nullptr,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        // Out of descriptors: without room, all that wait would make us spin.
        if (errno == EMFILE || errno == ENFILE) MakeRoom(0);
        return;
      }
      Accept(listeners_.address(listener), std::move(fd));
    }
  }

  void Accept(const net::Address& address, UniqueFd fd) {
    auto client = std::make_unique<Client>();
    client->id = next_id_++;
    client->transport = address.transport;
    client->peer = DescribePeer(address, fd.get());
    client->since = Clock::now();
    net::SetLiveness(fd.get());
    if (address.transport == net::Transport::kTls) {
      auto stream = options_.tls->Wrap(std::move(fd), "");
      if (!stream.ok()) return;
      client->stream = std::move(*stream);
      client->tls = options_.tls;
    } else {
      client->stream = net::MakePlainStream(
          std::move(fd), address.transport == net::Transport::kSeqpacket);
      client->state = Client::State::kHello;
    }
    Client& c = *client;
    Register(c.stream->fd(), c.id, 0);
    clients_.emplace(c.id, std::move(client));
    ++counts_.connections;
    counts_.senders = clients_.size();
    if (++of_peer_[c.peer.host] > options_.limits.max_clients_per_peer) {
      return Refuse(c, RefuseReason::kBusy,
                    "more than " +
                        std::to_string(options_.limits.max_clients_per_peer) +
                        " connections from " + c.peer.host);
    }
    // A certificate has yet to be shown: there is more room for that.
    const bool may_be_known = address.transport == net::Transport::kTls;
    if (clients_.size() >
            options_.limits.max_clients +
                (may_be_known ? options_.limits.handshakes() : 0) &&
        !MakeRoom(c.id)) {
      return RefuseForRoom(c);
    }
    Update(c);
  }

  void RefuseForRoom(Client& client) {
    Refuse(client, RefuseReason::kBusy,
           "more than " + std::to_string(options_.limits.max_clients) +
               " senders");
  }

  // For that client, or for one that is not there yet. False: for nobody.
  bool MakeRoom(uint64_t newcomer) {
    std::map<uint64_t, Place> places;
    for (const auto& [id, client] : clients_) {
      places[id] = {.peer = client->peer.host,
                    .known = client->known(),
                    .sent = client->proven()};
    }
    const auto found = clients_.find(WhoMakesRoom(places, newcomer));
    if (found == clients_.end()) return false;
    Drop(*found->second, "no room: others are waiting");
    return true;
  }

  // It has nothing to do with its trace any more.
  void Detach(Client& client) {
    if (client.opened || client.state == Client::State::kOpening) {
      keeper_.Close(client.id);
      client.opened = false;
    }
    if (const auto found = sources_.find(client.source);
        found != sources_.end() && found->second == client.id) {
      sources_.erase(found);
    }
  }

  void Drop(Client& client, const std::string& why) {
    Detach(client);
    if (const auto found = of_peer_.find(client.peer.host);
        found != of_peer_.end() && --found->second == 0) {
      of_peer_.erase(found);
    }
    if (client.state != Client::State::kEnding) {
      Say(NoticeId::kSender, client, why);
    }
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.stream->fd(), nullptr);
    clients_.erase(client.id);
    counts_.senders = clients_.size();
  }

  // Tells the client and closes as soon as that is sent, or after a moment.
  void Refuse(Client& client, RefuseReason reason, const std::string& text) {
    ++counts_.refused[static_cast<size_t>(reason)];
    // Some refusals are how things go.
    const bool usual =
        reason == RefuseReason::kSuperseded || reason == RefuseReason::kClosing;
    Say(usual ? NoticeId::kSender : NoticeId::kSenderRefused, client,
        "refused: " + text);
    client.out += net::EncodeReply(
        {.type = net::ReplyType::kRefuse, .reason = reason, .text = text});
    Detach(client);
    const bool greeted = client.state != Client::State::kHandshake;
    client.state = Client::State::kEnding;
    client.since = Clock::now();
    if (!greeted || !SendOut(client)) return Drop(client, text);
    Update(client);
  }

  // --- What clients send.

  void Serve(uint64_t id, uint32_t events) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    Client& client = *found->second;
    // Nothing is read now that would tell, and epoll would go on about it.
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 &&
        (client.state == Client::State::kOpening || IsPaused(client))) {
      return Drop(client, "connection lost");
    }
    if (!SendOut(client)) return Drop(client, "connection lost");
    switch (client.state) {
      case Client::State::kHandshake:
        if (!Handshake(client)) return;
        break;
      case Client::State::kStreaming:
        if (!keeper_.Busy(id) && !ReadFrom(client)) return;
        break;
      case Client::State::kHello:
        if (!ReadFrom(client)) return;
        break;
      case Client::State::kOpening:
        break;
      case Client::State::kEnding:
        if (!Drain(client)) return;
        break;
    }
    ReadOn(client);
  }

  // What the client sends next is awaited, or is here already.
  void ReadOn(Client& client) {
    if (client.stream->HasPending() &&
        client.state != Client::State::kOpening && !IsPaused(client)) {
      pending_.push_back(client.id);
    }
    Update(client);
  }

  // It is not read from, because the keeper has enough.
  bool IsPaused(const Client& client) const {
    return client.state == Client::State::kStreaming && keeper_.Busy(client.id);
  }

  bool Handshake(Client& client) {
    const Result<bool> done = client.stream->Handshake();
    if (!done.ok()) {
      Drop(client, done.status().message());
      return false;
    }
    if (*done) client.state = Client::State::kHello;
    return true;
  }

  // The rest of what a refused client sends is of no interest; closing over it
  // would have the kernel throw away our answer.
  bool Drain(Client& client) {
    const auto moved = client.stream->Read(buffer_);
    if (!moved.ok() || moved->ended) {
      Drop(client, "");
      return false;
    }
    return true;
  }

  // False if the client is gone, or is to go.
  bool ReadFrom(Client& client) {
    const auto moved = client.stream->Read(buffer_);
    if (!moved.ok()) {
      Drop(client, moved.status().message());
      return false;
    }
    if (moved->ended) {
      // All it sent is here; it may wait for the last acknowledgement.
      client.ended = true;
      if (client.frames && client.acked == client.frames->next()) {
        Drop(client, "done");
        return false;
      }
      if (!client.frames) {
        Drop(client, "gone without a word");
        return false;
      }
      // Nothing more is awaited of it, and epoll would go on about its end.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.stream->fd(), nullptr);
      return true;
    }
    if (moved->bytes == 0) return true;
    const ByteSpan bytes(buffer_.data(), moved->bytes);
    if (client.state == Client::State::kStreaming) {
      client.since = Clock::now();
      return TakeFrames(client, bytes);
    }
    return TakeHello(client, bytes);
  }

  bool TakeHello(Client& client, ByteSpan bytes) {
    RefuseReason reason = RefuseReason::kBadHello;
    const auto hello = client.AddToHello(bytes, &reason);
    if (!hello.ok()) {
      Refuse(client, reason, hello.status().message());
      return false;
    }
    if (!hello->has_value()) return true;
    const format::Serial& serial = (*hello)->serial;
    std::string certificate;
    if (client.transport == net::Transport::kTls) {
      certificate = client.tls->PeerName(*client.stream);
      if (certificate.empty() || certificate.size() > 64) {
        Refuse(client, RefuseReason::kNotAllowed,
               "the sender's certificate has no common name and no DNS name "
               "of at most 64 bytes");
        return false;
      }
      client.peer.full += " (" + certificate + ")";
    }
    client.source =
        SourceName(client.transport, client.peer, certificate, serial);
    if (client.transport == net::Transport::kTls &&
        clients_.size() > options_.limits.max_clients && !MakeRoom(client.id)) {
      client.source.clear();
      RefuseForRoom(client);
      return false;
    }
    // The sender has noticed before us that the old connection is dead.
    if (const auto old = sources_.find(client.source); old != sources_.end()) {
      Refuse(*clients_.at(old->second), RefuseReason::kSuperseded,
             "the sender of this trace has connected again");
    }
    sources_[client.source] = client.id;
    client.frames.emplace(serial, 0, options_.limits.max_block_bytes);
    client.state = Client::State::kOpening;
    client.serial = serial;
    keeper_.Open(client.id, client.source, **hello);
    return true;
  }

  bool TakeFrames(Client& client, ByteSpan bytes) {
    pieces_.clear();
    const uint64_t before = client.frames->next();
    const Status parsed = client.frames->Feed(bytes, &pieces_);
    counts_.blocks += client.frames->next() - before;
    for (const FrameParser::Piece& piece : pieces_) {
      const Status kept =
          keeper_.Write(client.id, piece.bytes, piece.whole, piece.next);
      if (kept.ok()) {
        counts_.bytes += piece.bytes.size();
        continue;
      }
      Refuse(client,
             kept.error() == ENOSPC || kept.error() == EDQUOT
                 ? RefuseReason::kNoSpace
             : kept.code() == StatusCode::kInvalid ? RefuseReason::kTooLarge
                                                   : RefuseReason::kBusy,
             kept.message());
      return false;
    }
    if (parsed.ok()) return true;
    Refuse(client,
           parsed.code() == StatusCode::kInvalid ? RefuseReason::kTooLarge
                                                 : RefuseReason::kBadData,
           parsed.message());
    return false;
  }

  // --- What the keeper says.

  void TakeKeeperEvents() {
    for (const Keeper::Event& event : keeper_.TakeEvents()) {
      const auto found = clients_.find(event.client);
      if (found == clients_.end()) continue;
      Client& client = *found->second;
      if (client.state == Client::State::kEnding) continue;
      if (!event.status.ok()) {
        const int error = event.status.error();
        Refuse(client,
               error == ENOSPC    ? RefuseReason::kNoSpace
               : error == ENOBUFS ? RefuseReason::kBusy
                                  : RefuseReason::kNotAllowed,
               event.status.message());
        continue;
      }
      if (event.opened) {
        Welcome(client, event.next);
      } else {
        client.ack = event.next;
      }
      if (!SendOut(client) || (client.ended && !client.out.empty())) {
        Drop(client, "connection lost");
        continue;
      }
      if (client.ended && client.acked == client.frames->next()) {
        Drop(client, "done");
        continue;
      }
      ReadOn(client);
    }
  }

  void Welcome(Client& client, uint64_t next) {
    client.opened = true;
    client.state = Client::State::kStreaming;
    client.since = Clock::now();
    client.first = client.ack = client.acked = next;
    client.frames.emplace(client.serial, next, options_.limits.max_block_bytes);
    client.out +=
        net::EncodeReply({.type = net::ReplyType::kWelcome,
                          .next = next,
                          .live = keeper_.live(),
                          .max_frame = options_.limits.max_block_bytes});
    ++counts_.welcomed;
    Say(NoticeId::kSender, client,
        "trace " + client.source + " from block " + std::to_string(next) +
            " on");
  }

  // --- Answers.

  // False if the connection is broken.
  bool SendOut(Client& client) {
    for (;;) {
      if (client.out.empty()) {
        // However slowly a client reads, only the latest number is kept.
        if (client.ack <= client.acked) return true;
        client.out = net::EncodeReply(
            {.type = net::ReplyType::kAck, .next = client.ack});
        client.acked = client.ack;
      }
      if (client.out.size() > kMaxOutBytes) return false;
      if (client.state == Client::State::kHandshake) return true;
      const auto moved = client.stream->Write(AsBytes(client.out));
      if (!moved.ok()) return false;
      if (moved->bytes == 0) return true;
      client.out.erase(0, moved->bytes);
    }
  }

  // Tells epoll what the client waits for.
  void Update(Client& client) {
    if (client.state == Client::State::kEnding && client.out.empty() &&
        !std::exchange(client.ended, true)) {
      client.stream->EndWriting();
    }
    const bool paused = IsPaused(client);
    if (paused) {
      paused_.push_back(client.id);
      client.since = Clock::now();  // the fault is not its own
    }
    const bool read = client.state != Client::State::kOpening && !paused &&
                      (!client.ended || client.state == Client::State::kEnding);
    const bool write = !client.out.empty();
    const short wanted = client.stream->Events(read, write);
    const uint32_t events = ((wanted & POLLIN) != 0 ? EPOLLIN : 0U) |
                            ((wanted & POLLOUT) != 0 ? EPOLLOUT : 0U);
    if (events == client.events) return;
    client.events = events;
    Register(client.stream->fd(), client.id, events, EPOLL_CTL_MOD);
  }

  // --- Time.

  // Whether it has been quiet for too long.
  bool IsSlow(const Client& client, Clock::duration quiet) const {
    if (client.state == Client::State::kStreaming) {
      return client.frames->in_frame() && quiet > options_.limits.stall;
    }
    if (client.state == Client::State::kEnding) return quiet > kFarewell;
    return client.state != Client::State::kOpening &&
           quiet > options_.limits.greeting;
  }

  Status Tick() {
    const auto now = Clock::now();
    if (now - last_tick_ < milliseconds(kTickMs)) return Status::Ok();
    last_tick_ = now;
    counts_.last_turn_ns = MonotonicNs();
    if (options_.on_tick) options_.on_tick(clients_.size());
    for (const uint64_t id : std::exchange(paused_, {})) {
      if (const auto found = clients_.find(id); found != clients_.end()) {
        ReadOn(*found->second);
      }
    }
    std::vector<uint64_t> slow;
    for (const auto& [id, client] : clients_) {
      if (IsSlow(*client, now - client->since)) slow.push_back(id);
    }
    for (const uint64_t id : slow) {
      Client& client = *clients_.at(id);
      if (client.state == Client::State::kEnding ||
          client.state == Client::State::kHandshake) {
        Drop(client, "no TLS handshake in time");
      } else {
        Refuse(client, RefuseReason::kSlow,
               client.state == Client::State::kHello
                   ? "no HELLO in time"
                   : "a block does not come to its end");
      }
    }
    return keeper_.Tick();
  }

  std::vector<uint64_t> Everyone() const {
    std::vector<uint64_t> all;
    for (const auto& [id, client] : clients_) all.push_back(id);
    return all;
  }

  void SayFarewell() {
    static_cast<void>(keeper_.Finish());
    TakeKeeperEvents();
    for (const uint64_t id : Everyone()) {
      const auto found = clients_.find(id);
      if (found == clients_.end() ||
          found->second->state == Client::State::kEnding) {
        continue;
      }
      Refuse(*found->second, RefuseReason::kClosing, "the receiver ends");
    }
    const auto until = Clock::now() + kFarewell;
    while (!clients_.empty() && Clock::now() < until) Turn(kTickMs / 10);
    for (const uint64_t id : Everyone()) Drop(*clients_.at(id), "");
  }

  void Say(NoticeId id, const Client& client, const std::string& what) {
    if (options_.quiet || what.empty()) return;
    lines_.Say(id, std::string(net::TransportName(client.transport)) + ':' +
                       client.peer.full + ": " + what);
  }

  ReceiverOptions options_;  // `handed` and `tls` change
  Keeper& keeper_;
  ReceiverCounts own_counts_;
  ReceiverCounts& counts_;
  const UniqueFd epoll_;
  ListeningSockets listeners_;
  Clients clients_;
  std::map<std::string, size_t> of_peer_;    // connections
  std::map<std::string, uint64_t> sources_;  // traces and their clients
  uint64_t next_id_ = kFirstClient;
  std::vector<std::byte> buffer_;
  std::vector<FrameParser::Piece> pieces_;
  std::vector<uint64_t> pending_;  // clients with bytes that epoll cannot see
  std::vector<uint64_t> paused_;   // clients that are looked at in a tick
  bool stopping_ = false;
  Clock::time_point last_tick_ = Clock::now();
  LineLimit lines_;
};

}  // namespace

Result<std::unique_ptr<Receiver>> Receiver::Create(ReceiverOptions options,
                                                   Keeper& keeper) {
  auto receiver = std::make_unique<EpollReceiver>(std::move(options), keeper);
  if (Status s = receiver->Start(); !s.ok()) return s;
  return std::unique_ptr<Receiver>(std::move(receiver));
}

}  // namespace tracefs
