// The log of one mount or receiver: takes the notices (tracefs/base/notice.h)
// of its process to the journal, to syslogd or to standard error.
//
// Nobody waits for it: notices wait in a bounded queue for a thread of its own,
// each kind at a bounded rate, and what finds no room is counted and told. Its
// socket is opened before the sandbox; after a syslogd that was restarted the
// watchdog, outside of it, connects again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/notice.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/worker.h"

namespace tracefs {

// Where a log goes.
struct LogPlace {
  enum class Kind : char {
    kAuto = 'a',
    kJournal = 'j',
    kSyslog = 's',
    kStderr = 'e',
    kNone = 'n',
  };
  Kind kind = Kind::kAuto;
  std::string path;  // of the socket; empty: the usual one
};

// "auto", "journal[:PATH]", "syslog[:PATH]", "stderr" or "none".
Result<LogPlace> ParseLogPlace(const std::string& text);

inline constexpr std::string_view kMountProgram = "tracefs-mount";

// The datagram that says it there; empty for kinds without a socket. `mount` is
// empty for what is no mount.
std::string LogDatagram(LogPlace::Kind kind, NoticeId id,
                        std::string_view mount, std::string_view text,
                        std::string_view program = kMountProgram);

class Log {
 public:
  using Reconnect = std::function<Result<UniqueFd>(const std::string& path)>;

  // Chooses and opens the place. kAuto: standard error for `foreground`, else
  // the journal, else syslog, else nothing. An error only where a place was
  // asked for by name. Takes the notices of this process from now on; until
  // GoOn they are shown on standard error as well, where the caller still is.
  // `program` says them; it outlives the log.
  static Result<std::unique_ptr<Log>> Open(
      const LogPlace& place, bool foreground,
      std::string_view program = kMountProgram);
  // Waits a moment for what is to be sent.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const LogPlace& place() const { return place_; }
  // The mount, for all that follows. Before the thread.
  void SetMount(const std::string& mount) { mount_ = mount; }
  // Starts the thread: after the sandbox. `reconnect` may be empty.
  Status Start(Reconnect reconnect);
  // The caller has gone.
  void GoOn() { attended_.store(false); }
  bool attended() const { return attended_.load(); }
  // Says it without the thread: for a process that is about to end, and is
  // outside the sandbox.
  void SayNow(NoticeId id, const std::string& text);
  // Waits until all was said, but not for long.
  void Flush();
  // Whoever reconnects ends before the log does.
  void ForgetReconnect();

 private:
  struct Rate {
    uint64_t since_ns = 0;
    uint32_t count = 0;
    uint32_t held_back = 0;
  };

  Log() = default;
  void Put(NoticeId id, const std::string& text);
  void Queue(NoticeId id, const std::string& text);
  std::optional<std::string> First();
  bool Send(const std::string& datagram);
  void Loop();

  LogPlace place_;
  std::string_view program_;
  std::string mount_;
  UniqueFd fd_;                        // the socket; or a copy of stderr
  bool prefix_levels_ = false;         // stderr leads to the journal
  std::atomic<bool> attended_ = true;  // somebody reads standard error
  bool foreground_ = false;
  std::mutex reconnect_mu_;
  Reconnect reconnect_;  // guarded by reconnect_mu_
  uint64_t next_reconnect_ns_ = 0;

  std::mutex mu_;
  // Guarded by mu_.
  std::array<Rate, 32> rates_{};
  std::deque<std::string> queue_;
  uint64_t dropped_ = 0;
  Worker worker_;
};

}  // namespace tracefs
