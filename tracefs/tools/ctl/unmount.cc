#include "tracefs/tools/ctl/unmount.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/unmount.h"
#include "tracefs/control/answer.h"
#include "tracefs/control/client.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/shell_word.h"
#include "tracefs/tools/ctl/answer_json.h"
#include "tracefs/tools/ctl/mount_holders.h"
#include "tracefs/tools/ctl/request.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr auto kMoment = std::chrono::seconds(1);
constexpr size_t kMaxLine = size_t{1} << 20;

enum class Waited { kReady, kDeadline, kStopped };

// Waits until `fd` is readable, the deadline, or `stop`, which a signal sets.
Waited WaitFor(int fd, Clock::time_point deadline,
               const std::atomic<bool>& stop) {
  for (;;) {
    if (stop.load()) return Waited::kStopped;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::clamp<Clock::duration>(deadline - Clock::now(),
                                    Clock::duration::zero(), kMoment));
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int n = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (n > 0) return Waited::kReady;
    if (n == 0 && Clock::now() >= deadline) return Waited::kDeadline;
  }
}

// The path as the kernel knows it; nothing is asked of the mount, which may
// hang.
std::optional<std::string> KernelPath(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return std::nullopt;
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  std::array<char, PATH_MAX> name;
  const ssize_t n = ::readlink(link.c_str(), name.data(), name.size());
  if (n <= 0) return std::nullopt;
  return std::string(name.data(), static_cast<size_t>(n));
}

Status CheckIsMountPoint(const std::string& path, const MountIdentity& mount) {
  const std::optional<std::string> real = KernelPath(path);
  const std::vector<std::string> points = MountPointsOf(mount);
  if (real && std::find(points.begin(), points.end(), *real) != points.end()) {
    return Status::Ok();
  }
  return Status::Invalid("'" + path + "' lies in a mount and is not it" +
                         (points.empty() ? "" : "; name '" + points[0] + "'"));
}

// What an unmounted mount's end waits for, as far as that can be seen.
std::string WaitingFor(const MountIdentity& mount) {
  const std::string holders = HoldersText(mount);
  if (!holders.empty()) return "who still uses it: " + holders;
  if (IsStillServed(mount)) {
    return "who still uses it, and is not to be seen in /proc: a mount "
           "namespace without processes, a file on its way between processes, "
           "or a process of another user";
  }
  return "the outputs to take the rest of the traces";
}

// Says what is waited for, and what instead when that changes.
class Waiting {
 public:
  Waiting(const MountIdentity& mount, Clock::time_point deadline,
          std::chrono::seconds patience, const std::atomic<bool>& stop,
          const std::function<void(const std::string&)>& tell)
      : mount_(mount),
        deadline_(deadline),
        patience_(patience),
        stop_(stop),
        tell_(tell) {}

  // Until `fd` is readable. kSystem if that is not to be waited for any longer.
  Status For(int fd) {
    for (;;) {
      const auto next = std::min(deadline_, Clock::now() + kMoment);
      const Waited waited = WaitFor(fd, next, stop_);
      if (waited == Waited::kReady) return Status::Ok();
      if (waited == Waited::kStopped || Clock::now() >= deadline_) {
        return GivenUp(waited == Waited::kStopped);
      }
      std::string now = WaitingFor(mount_);
      if (now == told_) continue;
      told_ = std::move(now);
      tell_("unmounted; waiting for " + told_);
    }
  }

 private:
  Status GivenUp(bool stopped) const {
    return Status::SystemSaid(
        stopped ? EINTR : ETIMEDOUT,
        "it is unmounted, but its traces are not complete" +
            (stopped ? " yet"
                     : " after " + std::to_string(patience_.count()) + "s") +
            ": it waits for " + WaitingFor(mount_) +
            "; `tracefs-dump --wait TRACE` waits on");
  }

  const MountIdentity mount_;
  const Clock::time_point deadline_;
  const std::chrono::seconds patience_;
  const std::atomic<bool>& stop_;
  const std::function<void(const std::string&)>& tell_;
  std::string told_;
};

Status InUse(const std::string& mount_point, const MountIdentity& mount) {
  const std::string holders = HoldersText(mount);
  return Status::SystemSaid(
      EBUSY, "'" + mount_point +
                 "' is in use: " + (holders.empty() ? "" : holders + "; ") +
                 "`fuser -vm " + ShellPath(mount_point) +
                 "` shows by whom (`umount -l` takes it away at once; its "
                 "traces end when its last user does)");
}

// By this process itself, with what the command line says and what the kernel
// has there: whatever a daemon answers, it is its user's own mount that goes.
Status UnmountByHand(const std::string& mount_point,
                     const MountIdentity& mount) {
  const std::optional<std::string> place = KernelPath(mount_point);
  if (!place) return Status::System(errno, "'" + mount_point + "'");
  const std::optional<MountLine> there = UppermostAt(*place);
  const Result<MountIdentity> now = IdentifyMount(mount_point);
  if (!there || there->type != kMountType || !now.ok() ||
      now->SocketName() != mount.SocketName() || now->owner != ::geteuid()) {
    return Status::Invalid("'" + mount_point +
                           "' is covered by another mount, or gone");
  }
  const int error = UnmountPath(*place, /*lazy=*/false);
  if (error == 0) return Status::Ok();
  return error == EBUSY ? InUse(mount_point, mount)
                        : Status::System(error, "'" + mount_point + "'");
}

// Of a mount whose daemon cannot be asked.
Result<std::string> UnmountWithoutDaemon(const std::string& mount_point,
                                         const Status& why) {
  const Result<MountIdentity> mount = IdentifyMount(mount_point);
  // Its name is wrong, it is another user's, or the daemon does not answer now.
  if (!mount.ok() || mount->owner != ::geteuid() ||
      (why.error() != ENOENT && why.error() != ECONNREFUSED)) {
    return why;
  }
  if (Status s = CheckIsMountPoint(mount_point, *mount); !s.ok()) return s;
  if (Status s = UnmountByHand(mount_point, *mount); !s.ok()) return s;
  return Json{{"tracers", Json::array()},
              {"error", "it is unmounted; what its traces lack is not known: " +
                            why.message()}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status NoSenseOfEnd() {
  return Status::Corrupt("the mount's word on its end makes no sense");
}

std::string NumberWordIn(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key)) return "?";
  return json[key].is_number_unsigned() ? json[key].dump() : "?";
}

}  // namespace

Result<std::string> UnmountAndWait(
    const std::string& mount_point, std::chrono::seconds patience,
    const std::function<void(const std::string&)>& tell,
    const std::atomic<bool>& stop) {
  const auto deadline = Clock::now() + patience;
  Result<ControlClient> client = ControlClient::Connect(mount_point, patience);
  if (!client.ok()) return UnmountWithoutDaemon(mount_point, client.status());
  const MountIdentity mount = client->mount();
  if (Status s = CheckIsMountPoint(mount_point, mount); !s.ok()) return s;
  const UniqueFd daemon = client->ServerPidfd();
  const Result<std::string> answer = client->Call(SimpleRequest("unmount"));
  if (!answer.ok()) {
    return answer.status().error() == EBUSY ? InUse(mount_point, mount)
                                            : answer.status();
  }
  // Whatever it says of that.
  if (CheckIsMountPoint(mount_point, mount).ok()) {
    if (Status s = UnmountByHand(mount_point, mount); !s.ok()) return s;
  }
  if (const auto left = MountPointsOf(mount); !left.empty()) {
    return Status::SystemSaid(
        EBUSY, "'" + mount_point +
                   "' is unmounted, but the same mount is at '" + left[0] +
                   "', too: its traces go on until it is unmounted "
                   "there");
  }
  const UniqueFd stream = client->TakeStream();
  std::string line;
  Waiting waiting(mount, deadline, patience, stop, tell);
  while (line.empty() || line.back() != '\n') {
    if (Status s = waiting.For(stream.get()); !s.ok()) return s;
    std::array<char, 4096> part;
    const ssize_t n = ::recv(stream.get(), part.data(), part.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || line.size() > kMaxLine) {
      return Status::SystemSaid(
          ECONNRESET,
          "the daemon ended without a word on its traces: it was killed, or "
          "died; tracefs-dump shows what they hold");
    }
    line.append(part.data(), static_cast<size_t>(n));
  }
  if (daemon) {
    if (Status s = waiting.For(daemon.get()); !s.ok()) return s;
  }
  Result<std::string> word = PrintableJson(line);
  if (!word.ok()) return NoSenseOfEnd();
  return word;
}

Result<std::string> UnmountText(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("tracers") ||
      !json["tracers"].is_array()) {
    return NoSenseOfEnd();
  }
  std::string text;
  const auto say = [&text](const std::string& what) {
    std::string safe(4 * what.size(), '\0');
    safe.resize(static_cast<size_t>(PutTerminalEscaped(safe.data(), what) -
                                    safe.data()));
    text += safe + '\n';
  };
  for (const Json& tracer : json["tracers"]) {
    const std::string name = TextIn(tracer, "name");
    const std::string what = "tracer " + NumberWordIn(tracer, "id") +
                             (name.empty() ? "" : " '" + name + "'") + ": ";
    if (tracer.is_object() && tracer.contains("lost")) {
      for (const auto& [reason, count] : tracer["lost"].items()) {
        say(what + count.dump() +
            " operations are not in its trace: " + reason);
      }
    }
    if (const std::string error = TextIn(tracer, "error"); !error.empty()) {
      say(what + error);
    }
  }
  if (const std::string error = TextIn(json, "error");
      text.empty() && !error.empty()) {
    say(error);
  }
  return text;
}

}  // namespace tracefs
