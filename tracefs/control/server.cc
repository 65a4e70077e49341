#include "tracefs/control/server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "tracefs/base/clock.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/control/answer.h"

namespace tracefs {
namespace {

constexpr int kControlBacklog = 128;
constexpr uint64_t kAcceptPauseNs = 100'000'000;
constexpr uint64_t kDrainNs = 1'000'000'000;

// Binds and listens; the socket is there with its mode from the beginning.
Result<UniqueFd> Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status::Invalid("control socket '" + path + "': path too long");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::System(errno, "control socket");
  // No other live mount has this device number: an existing one is a leftover.
  // The mode goes with the descriptor (linux/net/unix/af_unix.c, unix_bind).
  if ((::unlink(path.c_str()) != 0 && errno != ENOENT) ||
      ::fchmod(fd.get(), 0600) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
      ::listen(fd.get(), kControlBacklog) != 0) {
    return Status::System(errno, "control socket '" + path + "'");
  }
  return fd;
}

// 0: nothing is there.
ino_t InodeAt(const UniqueFd& directory, const std::string& name) {
  struct stat st;
  return ::fstatat(directory.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0
             ? st.st_ino
             : 0;
}

// Without waiting: a client that does not read it does not get it.
void SendAtOnce(int fd, const Status& error) {
  const std::string line = ErrorLine(std::nullopt, error);
  static_cast<void>(
      ::send(fd, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Create(
    ControlServerOptions options, ControlFolder folder) {
  std::string path = folder.path + '/' + options.name;
  Result<UniqueFd> listener = Listen(path);
  if (!listener.ok()) return listener.status();
  return Adopt(std::move(options), EncloseFolder(std::move(folder.fd)),
               *std::move(listener), std::move(path));
}

Result<std::unique_ptr<ControlServer>> ControlServer::Adopt(
    ControlServerOptions options, UniqueFd directory, UniqueFd listener,
    std::string path) {
  std::unique_ptr<ControlServer> server(
      new ControlServer(std::move(options), std::move(directory),
                        std::move(listener), std::move(path)));
  if (!server->wake_) return Status::System(EMFILE, "eventfd");
  return server;
}

ControlServer::ControlServer(ControlServerOptions options, UniqueFd directory,
                             UniqueFd listener, std::string path)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      listener_(std::move(listener)),
      path_(std::move(path)),
      inode_(InodeAt(directory_, options_.name)) {}

ControlServer::~ControlServer() { Stop(); }

Status ControlServer::Start(ControlHandler& handler) {
  handler_ = &handler;
  if (Status s = server_.Start("tracefs-control", [this] { ServeLoop(); });
      !s.ok()) {
    return s;
  }
  return commands_.Start("tracefs-command", [this] {
    do {
      DoTasks();
    } while (commands_.Wait());
    DoTasks();
  });
}

// The next mount may have our number and its own socket there by now. While
// ours is open, no other file has its inode.
void ControlServer::RemoveSocket() {
  if (socket_removed_) return;
  socket_removed_ = true;
  if (InodeAt(directory_, options_.name) != inode_) return;
  static_cast<void>(::unlinkat(directory_.get(), options_.name.c_str(), 0));
}

void ControlServer::StopCommands() {
  RemoveSocket();
  {
    std::lock_guard lock(mu_);
    refusing_ = true;
  }
  wake_.Set();
  commands_.Stop();
}

void ControlServer::Stop() {
  StopCommands();
  {
    std::lock_guard lock(mu_);
    drain_until_ = MonotonicNs() + kDrainNs;
  }
  wake_.Set();
  server_.Join();
  connections_.clear();
  // Streams without a client.
  std::deque<std::function<void()>> left;
  {
    std::lock_guard lock(mu_);
    left.swap(tasks_);
    finished_.clear();
  }
  for (const std::function<void()>& task : left) task();
}

void ControlServer::Post(std::function<void()> task) {
  {
    std::lock_guard lock(mu_);
    tasks_.push_back(std::move(task));
  }
  commands_.Wake();
}

// False once requests are refused.
bool ControlServer::PostRequest(std::function<void()> task) {
  {
    std::lock_guard lock(mu_);
    if (refusing_) return false;
    tasks_.push_back(std::move(task));
  }
  commands_.Wake();
  return true;
}

void ControlServer::DoTasks() {
  std::unique_lock lock(mu_);
  while (!tasks_.empty()) {
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

// --- The server thread.

void ControlServer::ServeLoop() {
  std::vector<pollfd> fds;
  for (;;) {
    uint64_t now = MonotonicNs();
    bool refusing;
    uint64_t drain_until;
    {
      std::lock_guard lock(mu_);
      refusing = refusing_;
      drain_until = drain_until_;
    }
    if (drain_until != 0 && (now >= drain_until || AllSent())) return;
    const bool accepting = !refusing && now >= accept_after_;
    fds.clear();
    fds.push_back({wake_.get(), POLLIN, 0});
    fds.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
    for (const auto& c : connections_) {
      fds.push_back({c->fd(), c->Events(), 0});
    }
    const int ready =
        ::poll(fds.data(), fds.size(), PollTimeout(now, drain_until));
    if (ready < 0) {
      if (errno != EINTR && errno != EAGAIN) return;  // cannot happen
      continue;
    }
    now = MonotonicNs();
    if ((fds[0].revents & POLLIN) != 0) wake_.Clear();
    for (size_t i = 0; i < connections_.size(); ++i) {
      Serve(*connections_[i], fds[i + 2].revents, now);
    }
    DeliverFinished(now);
    RemoveFinished();
    if ((fds[1].revents & POLLIN) != 0) Accept(now);
  }
}

bool ControlServer::AllSent() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& c) { return c->idle() || c->finished(); });
}

int ControlServer::PollTimeout(uint64_t now, uint64_t drain_until) const {
  uint64_t until = std::numeric_limits<uint64_t>::max();
  for (const auto& c : connections_) {
    if (const uint64_t deadline = c->Deadline(); deadline != 0) {
      until = std::min(until, deadline);
    }
  }
  if (accept_after_ > now) until = std::min(until, accept_after_);
  if (drain_until != 0) until = std::min(until, drain_until);
  if (until == std::numeric_limits<uint64_t>::max()) return -1;
  if (until <= now) return 0;
  constexpr uint64_t kLongestMs = 60'000;
  return static_cast<int>(
      std::min((until - now + kNsPerMs - 1) / kNsPerMs, kLongestMs));
}

void ControlServer::Accept(uint64_t now) {
  for (;;) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory: the listener stays ready meanwhile.
      if (errno != EAGAIN) accept_after_ = now + kAcceptPauseNs;
      return;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != 0 && peer.uid != options_.owner)) {
      SendAtOnce(fd.get(),
                 Status::SystemSaid(EACCES,
                                    "only root and the user who mounted it may "
                                    "control a mount"));
      continue;
    }
    if (connections_.size() >= options_.max_connections && !MakeRoom()) {
      SendAtOnce(fd.get(),
                 Status::SystemSaid(EBUSY, "too many requests are running"));
      continue;
    }
    connections_.push_back(std::make_unique<Connection>(
        std::move(fd), next_serial_++, options_.limits, now));
  }
}

// Ends the connection that has been idle longest; false if none is idle.
bool ControlServer::MakeRoom() {
  auto oldest = connections_.end();
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    if (!(*at)->idle()) continue;
    if (oldest == connections_.end() ||
        (*at)->last_activity() < (*oldest)->last_activity()) {
      oldest = at;
    }
  }
  if (oldest == connections_.end()) return false;
  SendAtOnce((*oldest)->fd(),
             Status::SystemSaid(ETIMEDOUT, "closed to make room for others"));
  connections_.erase(oldest);
  return true;
}

void ControlServer::Serve(Connection& c, short events, uint64_t now) {
  if ((events & (POLLERR | POLLNVAL)) != 0 ||
      ((events & POLLHUP) != 0 && (c.Events() & POLLIN) == 0)) {
    return c.Close();
  }
  if ((events & (POLLIN | POLLHUP)) != 0 && !c.Receive(now)) return c.Close();
  std::string line;
  std::vector<UniqueFd> files;
  while (c.TakeLine(&line, &files)) {
    Dispatch(c, line, std::move(files), now);
    // An answer that is sent at once makes way for the next request.
    if (!c.Transmit(now)) return c.Close();
  }
  if (const std::string_view violation = c.TakeViolation();
      !violation.empty()) {
    c.Answer(ErrorLine(std::nullopt, Status::Invalid(std::string(violation))),
             now);
    c.CloseAfterAnswer();
  }
  if (!c.Transmit(now)) return c.Close();
  const uint64_t deadline = c.Deadline();
  if (deadline != 0 && now >= deadline && !c.finished()) {
    SendAtOnce(c.fd(), Status::SystemSaid(ETIMEDOUT, "waited too long"));
    c.Close();
  }
}

void ControlServer::Dispatch(Connection& c, std::string_view line,
                             std::vector<UniqueFd> files, uint64_t now) {
  // Shared, because a std::function must be copyable.
  auto request = std::make_shared<ControlRequest>();
  request->files = std::move(files);
  Status parsed = ControlRequest::Parse(line, request.get());
  const std::optional<uint64_t> id = request->id;
  if (!parsed.ok()) {
    Deliver(c, {c.serial(), id, std::move(parsed)}, now);
    return;
  }
  if (handler_->IsQuick(request->command)) {
    Deliver(c, {c.serial(), id, handler_->Handle(*request)}, now);
    return;
  }
  const bool posted = PostRequest([this, request, id, serial = c.serial()] {
    Finished finished{serial, id, handler_->Handle(*request)};
    {
      std::lock_guard lock(mu_);
      finished_.push_back(std::move(finished));
    }
    wake_.Set();
  });
  if (!posted) {
    Deliver(c,
            {c.serial(), id, Status::SystemSaid(ESHUTDOWN, "the mount ends")},
            now);
  }
}

void ControlServer::Deliver(Connection& c, Finished finished, uint64_t now) {
  ControlAnswer& answer = finished.answer;
  c.Answer(answer.status.ok() ? OkLine(finished.id, answer.result)
                              : ErrorLine(finished.id, answer.status),
           now);
  if (answer.stream == nullptr) return;
  answer.stream->OnMore([this] { wake_.Set(); });
  c.Follow(std::move(answer.stream));
}

void ControlServer::DeliverFinished(uint64_t now) {
  std::vector<Finished> all;
  {
    std::lock_guard lock(mu_);
    all.swap(finished_);
  }
  for (Finished& finished : all) {
    const auto at = std::find_if(
        connections_.begin(), connections_.end(), [&](const auto& c) {
          return c->serial() == finished.connection && !c->finished();
        });
    if (at == connections_.end()) {
      DropStream(std::move(finished.answer.stream));
      continue;
    }
    Deliver(**at, std::move(finished), now);
    // Sends, and looks for the next request.
    Serve(**at, 0, now);
  }
}

// Streams end in the command thread: that may take a while.
void ControlServer::DropStream(std::shared_ptr<ControlStream> stream) {
  if (stream == nullptr) return;
  Post([stream = std::move(stream)]() mutable { stream.reset(); });
}

void ControlServer::RemoveFinished() {
  std::erase_if(connections_, [this](const std::unique_ptr<Connection>& c) {
    if (!c->finished()) return false;
    DropStream(c->TakeStream());
    return true;
  });
}

}  // namespace tracefs
