// ConfigSteering: a mount whose config comes as signed files in a directory
// (tracefs/signed): chooses the one to begin with, notices changes of the
// directory, and remembers what was refused. tracefs-ctl loads another one,
// since it runs outside the sandbox.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/mount/options.h"
#include "tracefs/signed/config_folder.h"

namespace tracefs {

class ConfigSteering {
 public:
  // Null if `options` name no directory. Else puts the config to begin with
  // into them, and begins to watch; where there are no more watches, it says
  // so. To be called before the sandbox. kInvalid, with what was refused and
  // why, if there is none.
  static Result<std::unique_ptr<ConfigSteering>> Begin(MountOptions* options);
  ~ConfigSteering();
  ConfigSteering(const ConfigSteering&) = delete;
  ConfigSteering& operator=(const ConfigSteering&) = delete;

  // Records the config that the mount began with; before the sandbox.
  Status Remember() const;
  // `changed` is called, on a thread of its own, when something in the
  // directory has changed, and now and then; not often.
  Status Watch(std::function<void()> changed);
  void Stop();

  const std::string& folder() const { return folder_; }
  const std::string& state() const { return state_; }
  const std::vector<std::string>& keys() const { return keys_; }

  // What tracefs-ctl found. Threads: any.
  void SetVersion(uint64_t version) { version_.store(version); }
  void CountRefused(ConfigRefusal why) {
    refused_[static_cast<size_t>(why)].fetch_add(1);
  }
  uint64_t version() const { return version_.load(); }
  uint64_t refused(ConfigRefusal why) const {
    return refused_[static_cast<size_t>(why)].load();
  }

 private:
  ConfigSteering() = default;
  Status WatchFolder();
  void Wait();

  std::string folder_;
  std::string state_;
  std::vector<std::string> keys_;
  TakenConfig begun_;
  UniqueFd watch_;
  EventFd stop_;
  std::function<void()> changed_;
  std::thread thread_;
  std::atomic<uint64_t> version_ = 0;
  std::array<std::atomic<uint64_t>, kConfigRefusals> refused_{};
};

}  // namespace tracefs
