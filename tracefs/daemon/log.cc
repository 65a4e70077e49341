#include "tracefs/daemon/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/log_socket.h"

namespace tracefs {
namespace {

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxQueue = 256;
// So many of a kind, then one line that counts the rest.
constexpr uint32_t kBurst = 10;
// For mere information, which is counted at its source, too.
constexpr uint32_t kInfoBurst = 600;
constexpr uint64_t kBurstNs = 30 * kNsPerSecond;
constexpr uint64_t kReconnectNs = 5 * kNsPerSecond;
constexpr auto kRetry = std::chrono::milliseconds(200);
constexpr int kLastTries = 5;

// What systemd gave us as standard error.
bool StderrIsTheJournal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat st;
  return stream != nullptr && ::fstat(STDERR_FILENO, &st) == 0 &&
         std::to_string(st.st_dev) + ':' + std::to_string(st.st_ino) == stream;
}

// What the command itself is the sign of, to whoever sits at its terminal.
bool IsAboutUs(NoticeId id) {
  return id == NoticeId::kMounted || id == NoticeId::kReceiving ||
         id == NoticeId::kEnded;
}

const char* UsualSocket(LogPlace::Kind kind) {
  return kind == LogPlace::Kind::kJournal ? kJournalSocket : kSyslogSocket;
}

}  // namespace

Result<LogPlace> ParseLogPlace(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  LogPlace place;
  using Kind = LogPlace::Kind;
  if (word == "auto") {
    place.kind = Kind::kAuto;
  } else if (word == "journal") {
    place.kind = Kind::kJournal;
  } else if (word == "syslog") {
    place.kind = Kind::kSyslog;
  } else if (word == "stderr") {
    place.kind = Kind::kStderr;
  } else if (word == "none") {
    place.kind = Kind::kNone;
  } else {
    return Status::Invalid(
        "--log is auto, journal, syslog, stderr or none, not '" + text + "'");
  }
  if (colon == text.npos) return place;
  place.path = text.substr(colon + 1);
  if ((place.kind != Kind::kJournal && place.kind != Kind::kSyslog) ||
      place.path.empty() || place.path[0] != '/') {
    return Status::Invalid(
        "--log takes the path of a socket after journal: or syslog: only, not "
        "'" +
        text + "'");
  }
  return place;
}

std::string LogDatagram(LogPlace::Kind kind, NoticeId id,
                        std::string_view mount, std::string_view text,
                        std::string_view program) {
  const NoticeKind& notice = KindOf(id);
  const std::string said =
      OneLine(mount.empty() ? std::string(text)
                            : std::string(mount) + ": " + std::string(text));
  if (kind == LogPlace::Kind::kSyslog) {
    return SyslogLine(notice.level, program, said);
  }
  if (kind != LogPlace::Kind::kJournal) return "";
  std::vector<std::pair<std::string_view, std::string>> fields = {
      {"MESSAGE", said},
      {"PRIORITY", std::to_string(notice.level)},
      {"SYSLOG_IDENTIFIER", std::string(program)},
      {"MESSAGE_ID", std::string(notice.message_id)},
      {"TRACEFS_NOTICE", std::string(notice.name)}};
  if (!mount.empty()) fields.emplace_back("TRACEFS_MOUNT", std::string(mount));
  return JournalEntry(fields);
}

Result<std::unique_ptr<Log>> Log::Open(const LogPlace& wanted, bool foreground,
                                       std::string_view program) {
  using Kind = LogPlace::Kind;
  std::unique_ptr<Log> log(new Log);
  log->foreground_ = foreground;
  log->program_ = program;
  LogPlace& place = log->place_;
  place = wanted;
  const auto connect = [&] {
    if (place.path.empty()) place.path = UsualSocket(place.kind);
    Result<UniqueFd> fd = ConnectLog(place.path);
    if (!fd.ok()) return fd.status();
    log->fd_ = *std::move(fd);
    return Status::Ok();
  };
  log->prefix_levels_ = StderrIsTheJournal();
  if (wanted.kind == Kind::kAuto) {
    place.kind = Kind::kStderr;
    if (!foreground && !log->prefix_levels_) {
      for (const Kind kind : {Kind::kJournal, Kind::kSyslog}) {
        place = {.kind = kind, .path = ""};
        if (connect().ok()) break;
        place = {.kind = Kind::kNone, .path = ""};
      }
    }
  } else if (wanted.kind == Kind::kJournal || wanted.kind == Kind::kSyslog) {
    if (Status s = connect(); !s.ok()) return s.Prefixed("--log");
  }
  if (place.kind == Kind::kStderr) {
    // The daemon lets go of its own when it goes into the background.
    log->fd_.Reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  }
  SetNoticeSink([raw = log.get()](NoticeId id, const std::string& text) {
    raw->Put(id, text);
  });
  return log;
}

Log::~Log() {
  SetNoticeSink(nullptr);
  worker_.Stop();
  for (int i = 0; i < kLastTries && !queue_.empty(); ++i) {
    while (!queue_.empty() && Send(queue_.front())) queue_.pop_front();
    if (!queue_.empty()) std::this_thread::sleep_for(kRetry);
  }
}

void Log::SayNow(NoticeId id, const std::string& text) {
  if (!fd_) return;
  std::lock_guard lock(mu_);
  Queue(id, text);
  while (!queue_.empty() && Send(queue_.front())) queue_.pop_front();
}

void Log::Flush() {
  for (int i = 0; i < kLastTries; ++i) {
    {
      std::lock_guard lock(mu_);
      if (queue_.empty()) return;
    }
    std::this_thread::sleep_for(kRetry);
  }
}

void Log::ForgetReconnect() {
  std::lock_guard lock(reconnect_mu_);
  reconnect_ = nullptr;
}

Status Log::Start(Reconnect reconnect) {
  {
    std::lock_guard lock(reconnect_mu_);
    reconnect_ = std::move(reconnect);
  }
  if (!fd_) return Status::Ok();
  return worker_.Start("tracefs-log", [this] { Loop(); });
}

void Log::Put(NoticeId id, const std::string& text) {
  // Its words are not for a terminal alone, but they must not harm one.
  if (attended_.load() && place_.kind != LogPlace::Kind::kStderr &&
      !IsAboutUs(id)) {
    std::fprintf(stderr, "%s: %s\n", std::string(program_).c_str(),
                 OneLine(text).c_str());
  }
  // On a terminal the command itself is the sign of them.
  if (foreground_ && !prefix_levels_ &&
      place_.kind == LogPlace::Kind::kStderr && IsAboutUs(id)) {
    return;
  }
  if (!fd_) return;
  std::lock_guard lock(mu_);
  Rate& rate = rates_[static_cast<size_t>(id) % rates_.size()];
  const uint64_t now = MonotonicNs();
  if (now - rate.since_ns >= kBurstNs) {
    if (rate.held_back != 0) {
      Queue(id, "and " + std::to_string(rate.held_back) +
                    " more of this kind before");
    }
    rate = {.since_ns = now};
  }
  if (++rate.count > (KindOf(id).level < LOG_INFO ? kBurst : kInfoBurst)) {
    ++rate.held_back;
    return;
  }
  Queue(id, text);
}

// With mu_.
void Log::Queue(NoticeId id, const std::string& text) {
  if (queue_.size() >= kMaxQueue) {
    ++dropped_;
    return;
  }
  const std::string_view some = std::string_view(text).substr(0, kMaxText);
  if (place_.kind == LogPlace::Kind::kStderr) {
    std::string line = std::string(program_) + ": " + OneLine(some) + '\n';
    if (prefix_levels_) {
      line.insert(0, '<' + std::to_string(KindOf(id).level) + '>');
    }
    queue_.push_back(std::move(line));
  } else {
    queue_.push_back(LogDatagram(place_.kind, id, mount_, some, program_));
  }
  worker_.Wake();
}

// False if it is to be tried again.
bool Log::Send(const std::string& datagram) {
  if (place_.kind == LogPlace::Kind::kStderr) {
    // Waits for a terminal or a pipe, as this thread may.
    (void)!::write(fd_.get(), datagram.data(), datagram.size());
    return true;
  }
  const Status sent = SendLog(fd_.get(), datagram);
  if (sent.ok() || sent.error() == EMSGSIZE) return true;
  if (sent.error() == EAGAIN || sent.error() == ENOBUFS ||
      MonotonicNs() < next_reconnect_ns_) {
    return false;
  }
  next_reconnect_ns_ = MonotonicNs() + kReconnectNs;
  std::lock_guard lock(reconnect_mu_);
  if (reconnect_) {
    if (Result<UniqueFd> fd = reconnect_(place_.path); fd.ok()) {
      fd_ = *std::move(fd);
      return SendLog(fd_.get(), datagram).ok();
    }
  }
  return false;
}

// What is to be sent next.
std::optional<std::string> Log::First() {
  std::lock_guard lock(mu_);
  if (queue_.empty() && dropped_ != 0) {
    Queue(NoticeId::kLogLost, std::to_string(std::exchange(dropped_, 0)) +
                                  " messages found no room in the log");
  }
  if (queue_.empty()) return std::nullopt;
  return queue_.front();
}

void Log::Loop() {
  while (!worker_.ending()) {
    const std::optional<std::string> datagram = First();
    if (!datagram) {
      worker_.Wait();
    } else if (Send(*datagram)) {
      std::lock_guard lock(mu_);
      queue_.pop_front();
    } else {
      worker_.Pause(kRetry);
    }
  }
}

}  // namespace tracefs
