#include "tracefs/base/log_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tracefs/base/bytes.h"

namespace tracefs {

Result<UniqueFd> ConnectLog(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status::Invalid("log socket '" + path + "': path too long");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                       sizeof address) != 0) {
    return Status::System(errno, "log socket '" + path + "'");
  }
  return fd;
}

Status SendLog(int fd, std::string_view datagram) {
  ssize_t n;
  do {
    n = ::send(fd, datagram.data(), datagram.size(),
               MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? Status::System(errno, "log socket") : Status::Ok();
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    line += escaped;
  }
  return line;
}

std::string SyslogLine(int level, std::string_view tag, std::string_view text) {
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  // Whatever the locale, as RFC 3164 has them.
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char head[64];
  std::snprintf(head, sizeof head, "<%d>%s %2d %02d:%02d:%02d ",
                LOG_DAEMON | level,
                kMonths[static_cast<size_t>(local.tm_mon) % kMonths.size()],
                local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
  return head + std::string(tag) + '[' + std::to_string(::getpid()) +
         "]: " + OneLine(text);
}

std::string JournalEntry(
    const std::vector<std::pair<std::string_view, std::string>>& fields) {
  std::string entry;
  for (const auto& [name, value] : fields) {
    entry += name;
    if (value.find('\n') == value.npos) {
      entry += '=' + value + '\n';
      continue;
    }
    std::array<std::byte, 8> size;
    StoreLe<uint64_t>(size.data(), value.size());
    entry += '\n';
    entry += AsText(size);
    entry += value + '\n';
  }
  return entry;
}

}  // namespace tracefs
