#include "tracefs/mount/config_steering.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

// The directory is filled file by file.
constexpr int kQuietMs = 300;
// At most this often, whatever happens there.
constexpr int kBetweenMs = 2000;
// For missed events, and file systems without events, such as NFS.
constexpr int kAnywayMs = 600'000;
// Where nothing tells of events.
constexpr int kUnwatchedMs = 10'000;

}  // namespace

Result<std::unique_ptr<ConfigSteering>> ConfigSteering::Begin(
    MountOptions* options) {
  if (options->config_dir.empty()) return std::unique_ptr<ConfigSteering>();
  std::unique_ptr<ConfigSteering> made(new ConfigSteering);
  made->folder_ = options->config_dir;
  made->state_ = options->config_state;
  made->keys_ = options->config_keys;
  if (!made->stop_) return Status::System(errno, "eventfd");
  // Before it is read, so that concurrent changes are seen.
  if (Status s = made->WatchFolder(); !s.ok()) return s;
  auto keys = ReadConfigKeys(made->keys_);
  if (!keys.ok()) return keys.status();
  auto taken = ReadTaken(made->state_);
  if (!taken.ok()) return taken.status();
  auto choice = ChooseConfig({.folder = made->folder_,
                              .keys = *std::move(keys),
                              .host = HostName(),
                              .now_s = RealNs() / kNsPerSecond,
                              .taken = *std::move(taken)});
  if (!choice.ok()) return choice.status().Prefixed("--config-dir");
  for (const RefusedConfig& one : choice->refused) made->CountRefused(one.why);
  if (!choice->chosen) {
    return Status::Invalid("--config-dir " + made->folder_ +
                           ": no config to begin with: " + choice->Text());
  }
  if (!choice->refused.empty()) {
    std::cerr << "tracefs-mount: --config-dir: " << choice->Text() << '\n';
  }
  const SignedConfig& config = choice->chosen->config;
  options->config = choice->chosen->file;
  options->config_text = config.text;
  made->begun_ = {config.facts.version, config.digest};
  made->version_ = config.facts.version;
  return made;
}

ConfigSteering::~ConfigSteering() { Stop(); }

Status ConfigSteering::Remember() const { return WriteTaken(state_, begun_); }

// Without one the folder is looked at now and then: whoever has used up what
// watches there are keeps no mount from beginning.
Status ConfigSteering::WatchFolder() {
  watch_.Reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (watch_ &&
      ::inotify_add_watch(watch_.get(), folder_.c_str(),
                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
                              IN_DELETE | IN_ONLYDIR) >= 0) {
    return Status::Ok();
  }
  const int error = errno;
  if (error != EMFILE && error != ENOSPC) {
    return Status::System(error, "--config-dir " + folder_);
  }
  watch_.Reset();
  const char* const what = error == EMFILE ? "instances" : "watches";
  std::cerr << "tracefs-mount: --config-dir: no more inotify " << what
            << " left, so the folder is looked at every " << kUnwatchedMs / 1000
            << " s; next: raise fs.inotify.max_user_" << what
            << ", or in a user namespace user.max_inotify_" << what << '\n';
  return Status::Ok();
}

Status ConfigSteering::Watch(std::function<void()> changed) {
  changed_ = std::move(changed);
  return StartThread(
      "tracefs-config", [this] { Wait(); }, &thread_);
}

void ConfigSteering::Stop() {
  if (!thread_.joinable()) return;
  stop_.Set();
  thread_.join();
}

void ConfigSteering::Wait() {
  const auto stopped_within = [this](int ms) {
    pollfd fd = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&fd, 1, ms) > 0;
  };
  std::array<char, 4096> events;
  for (;;) {
    std::array<pollfd, 2> fds = {
        pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = watch_.get(), .events = POLLIN, .revents = 0}};
    const int ready =
        ::poll(fds.data(), fds.size(), watch_ ? kAnywayMs : kUnwatchedMs);
    if (ready < 0 && errno != EINTR) return;
    if (fds[0].revents != 0 || stopped_within(kQuietMs)) return;
    // They only say that something is new.
    while (watch_ && ::read(watch_.get(), events.data(), events.size()) > 0) {
    }
    changed_();
    if (stopped_within(kBetweenMs)) return;
  }
}

}  // namespace tracefs
