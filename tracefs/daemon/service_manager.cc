#include "tracefs/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;

// A number of the environment, which is taken out of it.
uint64_t TakeNumber(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text != nullptr) {
    std::from_chars(text, text + std::strlen(text), number);
    ::unsetenv(name);
  }
  return number;
}

UniqueFd Connect(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path ||
      (path[0] != '/' && path[0] != '@')) {
    return {};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  // A name without a file begins with a zero.
  if (path[0] == '@') address.sun_path[0] = '\0';
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                       size) != 0) {
    return {};
  }
  return fd;
}

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  ServiceManager manager;
  const char* const path = std::getenv("NOTIFY_SOCKET");
  const uint64_t interval_us = TakeNumber("WATCHDOG_USEC");
  const uint64_t watched = TakeNumber("WATCHDOG_PID");
  if (path == nullptr) return manager;
  manager.socket_ = Connect(path);
  ::unsetenv("NOTIFY_SOCKET");
  if (interval_us != 0 && interval_us < UINT64_MAX / 1000 &&
      (watched == 0 || watched == static_cast<uint64_t>(::getpid()))) {
    // As the manual wants it: twice in that time, and some air.
    manager.interval_ = std::chrono::microseconds(interval_us) / 3;
  }
  return manager;
}

ServiceManager ServiceManager::Adopt(UniqueFd socket,
                                     std::chrono::nanoseconds interval) {
  ServiceManager manager;
  manager.socket_ = std::move(socket);
  manager.interval_ = interval;
  return manager;
}

void ServiceManager::Send(std::string_view lines) const {
  if (!socket_) return;
  // Nobody waits for it: what finds no room is said again, or not missed.
  while (::send(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {
  }
}

void ServiceManager::TellReady(std::string_view status) const {
  Send("READY=1\nSTATUS=" + std::string(status));
}

void ServiceManager::TellStopping() const { Send("STOPPING=1"); }

void ServiceManager::Beat() {
  if (!socket_ || interval_.count() == 0) return;
  const auto now = Clock::now();
  if (now - last_beat_ < interval_) return;
  last_beat_ = now;
  Send("WATCHDOG=1");
}

ServiceManager::Patience::Patience(const ServiceManager& manager) {
  manager.TellStopping();
  if (!manager.there()) return;
  const auto extend = [&manager] {
    manager.Send("EXTEND_TIMEOUT_USEC=20000000\nWATCHDOG=1");
  };
  // Without a thread the manager has at least heard it once.
  extend();
  static_cast<void>(
      worker_.StartTurns("tracefs-patience", std::chrono::seconds(5), extend));
}

}  // namespace tracefs
