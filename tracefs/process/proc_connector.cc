// Netlink talk with cn_proc (proc_connector.h).
#include "tracefs/process/proc_connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

// Since Linux 6.6 the subscription may name the events wanted (struct
// proc_input of linux/cn_proc.h there); older kernels know the first word only
// and ignore a longer message.
struct Subscription {
  uint32_t operation;
  uint32_t events;
};
constexpr uint32_t kWantedEvents =
    proc_event::PROC_EVENT_EXEC | proc_event::PROC_EVENT_SID |
    proc_event::PROC_EVENT_COMM | proc_event::PROC_EVENT_EXIT;

// Room for a burst of events while the listener waits for a processor.
constexpr int kReceiveBytes = 1 << 20;
constexpr uint64_t kAckTimeoutNs = 100'000'000;

// The namespaces made at boot have fixed numbers (linux/proc_ns.h). Elsewhere
// the kernel would not even answer.
bool InInitialNamespaces() {
  constexpr ino_t kInitialUser = 0xeffffffd;
  constexpr ino_t kInitialPid = 0xeffffffc;
  struct stat st;
  if (::stat("/proc/self/ns/user", &st) == 0 && st.st_ino != kInitialUser) {
    return false;
  }
  return ::stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == kInitialPid;
}

// `head`: up to event_data; `body`: what follows its first word, `first`.
std::optional<ProcEvent> ReadEvent(ByteSpan head, uint32_t what, uint32_t first,
                                   ByteCursor body) {
  using Kind = ProcEvent::Kind;
  ProcEvent event;
  event.cpu = LoadLe<uint32_t>(head.data() + offsetof(proc_event, cpu));
  event.time_ns =
      LoadLe<uint64_t>(head.data() + offsetof(proc_event, timestamp_ns));
  const auto second = body.TakeLe<uint32_t>();
  if (!second) return std::nullopt;
  event.tid = first;
  event.pid = *second;
  switch (what) {
    case proc_event::PROC_EVENT_FORK: {
      const auto child = body.TakeLe<uint32_t>();
      const auto child_pid = body.TakeLe<uint32_t>();
      if (!child || !child_pid) return std::nullopt;
      event.kind = Kind::kFork;
      event.child_tid = *child;
      event.child_pid = *child_pid;
      return event;
    }
    case proc_event::PROC_EVENT_EXEC:
      event.kind = Kind::kExec;
      return event;
    case proc_event::PROC_EVENT_SID:
      event.kind = Kind::kSession;
      return event;
    case proc_event::PROC_EVENT_COMM: {
      const auto comm = body.Take(16);
      if (!comm) return std::nullopt;
      event.kind = Kind::kComm;
      event.comm = AsText(*comm);
      event.comm = event.comm.substr(0, event.comm.find('\0'));
      return event;
    }
    case proc_event::PROC_EVENT_EXIT: {
      const auto code = body.TakeLe<uint32_t>();
      if (!code) return std::nullopt;
      event.kind = Kind::kExit;
      event.exit_code = *code;
      return event;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool ParseProcEvents(ByteSpan datagram, ProcConnector::Observer* observer,
                     int* ack_error) {
  constexpr size_t kEventHead = offsetof(proc_event, event_data);
  bool acknowledged = false;
  while (datagram.size() >= sizeof(nlmsghdr)) {
    const auto header = LoadLe<nlmsghdr>(datagram.data());
    if (header.nlmsg_len < sizeof(nlmsghdr) ||
        header.nlmsg_len > datagram.size()) {
      break;
    }
    ByteCursor body(
        datagram.subspan(sizeof header, header.nlmsg_len - sizeof header));
    const size_t step = NLMSG_ALIGN(header.nlmsg_len);
    datagram = datagram.subspan(std::min(step, datagram.size()));

    const std::optional<ByteSpan> cn = body.Take(sizeof(cn_msg));
    if (!cn) continue;
    const auto idx = LoadLe<uint32_t>(cn->data());
    const auto val = LoadLe<uint32_t>(cn->data() + 4);
    if (idx != CN_IDX_PROC || val != CN_VAL_PROC) continue;
    const std::optional<ByteSpan> event = body.Take(kEventHead);
    if (!event) continue;
    const auto what = LoadLe<uint32_t>(event->data());
    const std::optional<uint32_t> first = body.TakeLe<uint32_t>();
    if (!first) continue;
    if (what == proc_event::PROC_EVENT_NONE) {
      acknowledged = true;
      *ack_error = static_cast<int>(*first);
      continue;
    }
    if (observer == nullptr) continue;
    const auto full = ReadEvent(*event, what, *first, body);
    if (!full) continue;
    observer->OnEvent(*full);
    // A fork changes nobody.
    if (full->kind != ProcEvent::Kind::kFork) observer->OnChange(full->tid);
  }
  return acknowledged;
}

Result<std::unique_ptr<ProcConnector>> ProcConnector::Open(Wanted wanted) {
  if (!InInitialNamespaces()) {
    return Status::System(EOPNOTSUPP,
                          "process events outside the initial namespaces");
  }
  UniqueFd socket(::socket(AF_NETLINK,
                           SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           NETLINK_CONNECTOR));
  if (!socket) return Status::System(errno, "open the proc connector");
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
             sizeof address) != 0) {
    return Status::System(errno, "join the proc connector's events");
  }
  const int size = kReceiveBytes;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size,
                   sizeof size) != 0) {
    // As much as an ordinary user may have; losses are noticed anyway.
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  return std::unique_ptr<ProcConnector>(
      new ProcConnector(std::move(socket), wanted));
}

ProcConnector::~ProcConnector() { Stop(); }

bool ProcConnector::Send(ByteSpan operation) {
  std::array<std::byte, NLMSG_SPACE(sizeof(cn_msg) + sizeof(Subscription))>
      message{};
  nlmsghdr header = {};
  header.nlmsg_len =
      static_cast<uint32_t>(NLMSG_LENGTH(sizeof(cn_msg) + operation.size()));
  header.nlmsg_type = NLMSG_DONE;
  cn_msg cn = {};
  cn.id.idx = CN_IDX_PROC;
  cn.id.val = CN_VAL_PROC;
  cn.len = static_cast<uint16_t>(operation.size());
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + NLMSG_HDRLEN, &cn, sizeof cn);
  std::memcpy(message.data() + NLMSG_HDRLEN + sizeof cn, operation.data(),
              operation.size());
  return ::send(socket_.get(), message.data(), header.nlmsg_len, 0) ==
         static_cast<ssize_t>(header.nlmsg_len);
}

bool ProcConnector::Drain(Observer* observer, std::optional<int>* answer,
                          size_t most) {
  std::array<std::byte, 4096> buffer;
  for (size_t taken = 0; taken < most; ++taken) {
    sockaddr_nl from = {};
    socklen_t from_size = sizeof from;
    const ssize_t n =
        ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                   reinterpret_cast<sockaddr*>(&from), &from_size);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != ENOBUFS) return true;  // EAGAIN: that was all
      if (observer != nullptr) observer->OnLost();
      continue;
    }
    // Any process may send to a netlink socket; only the kernel is 0.
    if (from.nl_pid != 0) continue;
    int error = 0;
    if (ParseProcEvents({buffer.data(), static_cast<size_t>(n)}, observer,
                        &error) &&
        answer != nullptr) {
      *answer = error;
    }
  }
  return false;
}

Status ProcConnector::Subscribe() {
  const Subscription listen = {
      PROC_CN_MCAST_LISTEN, wanted_ == kChanges
                                ? kWantedEvents
                                : kWantedEvents | proc_event::PROC_EVENT_FORK};
  const ByteSpan all = std::as_bytes(std::span(&listen, 1));
  const ByteSpan operation = all.first(sizeof listen.operation);
  Drain(nullptr, nullptr);
  if (!Send(operation)) {
    return Status::System(errno, "subscribe to process events");
  }
  // As a rule the answer is there when send() returns.
  const uint64_t deadline = MonotonicNs() + kAckTimeoutNs;
  std::optional<int> answer;
  Drain(nullptr, &answer);
  for (uint64_t now = MonotonicNs(); !answer && now < deadline;
       now = MonotonicNs()) {
    pollfd ready = {socket_.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>((deadline - now) / 1'000'000 + 1));
    Drain(nullptr, &answer);
  }
  if (!answer) {
    return Status::System(EOPNOTSUPP, "the kernel reports no process events");
  }
  if (*answer != 0) {
    return Status::System(*answer, "subscribe to process events");
  }
  // Then only those wanted. A kernel that cannot choose ignores this; one that
  // can filters its own answer away.
  Send(all);
  return Status::Ok();
}

Status ProcConnector::Start(Observer* observer) {
  if (thread_.joinable()) return Status::Ok();
  if (!stop_) return Status::System(EMFILE, "eventfd");
  stop_.Clear();
  {
    std::lock_guard lock(take_mu_);
    if (Status subscribed = Subscribe(); !subscribed.ok()) return subscribed;
    observer_ = observer;
  }
  return StartThread(
      "tracefs-proc", [this] { Listen(); }, &thread_);
}

void ProcConnector::Listen() {
  ::setpriority(PRIO_PROCESS, 0, -10);
  for (;;) {
    pollfd ready[2] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(ready, 2, -1);
    if (ready[1].revents != 0) return;
    std::lock_guard lock(take_mu_);
    Drain(observer_, nullptr);
  }
}

bool ProcConnector::TakeReports() {
  // The holder releases it in a moment, unless it lost its processor.
  constexpr int kTries = 32;
  std::unique_lock lock(take_mu_, std::try_to_lock);
  for (int i = 0; i < kTries && !lock; ++i) lock.try_lock();
  if (!lock) return false;
  // Somebody may make them as fast as they are taken.
  constexpr size_t kMost = 256;
  return Drain(observer_, nullptr, kMost);
}

void ProcConnector::Stop() {
  if (!thread_.joinable()) return;
  stop_.Set();
  thread_.join();
  std::lock_guard lock(take_mu_);
  Drain(observer_, nullptr);  // what has arrived
  const Subscription ignore = {PROC_CN_MCAST_IGNORE, 0};
  const ByteSpan all = std::as_bytes(std::span(&ignore, 1));
  Send(all);
  Send(all.first(sizeof(uint32_t)));
}

}  // namespace tracefs
