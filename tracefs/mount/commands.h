// MountCommands: what the control socket can do with a running mount
// (docs/control-protocol.md).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/control/handler.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/keep/kept_folder.h"
#include "tracefs/mount/config_steering.h"
#include "tracefs/mount/end_notice.h"
#include "tracefs/mount/holds.h"
#include "tracefs/mount/queue_threads.h"
#include "tracefs/mount/transport.h"
#include "tracefs/tracers/orders.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// All that is referred to outlives the commands.
struct CommandedMount {
  const TracedMount& traced;
  TracerRegistry& tracers;
  FileSystem& fs;
  const TransportChoice& transport;
  const QueueThreads& queue_threads;
  dev_t device = 0;                    // of the mount itself
  ConfigSteering* steering = nullptr;  // null: its config is a file
  // The mount may outlive this daemon, and a later one does again what clients
  // have asked for. Null, both: it may not.
  survive::Area* survives = nullptr;
  Orders* orders = nullptr;
  // Has another program take over; returns only where none does. Empty: there
  // can be none.
  std::function<Status()> upgrade;
  const keep::KeptFolder* kept = nullptr;  // null: nothing is kept
  Holds* holds = nullptr;                  // null: nobody can be held
  // Takes the mount away, if nobody uses it.
  std::function<Status()> unmount;
};

class MountCommands final : public ControlHandler {
 public:
  explicit MountCommands(CommandedMount mount) : mount_(std::move(mount)) {}

  // Sends `line` (EndLine) to all clients that asked for the end: all outputs
  // are complete.
  void TellEnd(const std::string& line);

  // ControlHandler:
  bool IsQuick(std::string_view command) const override;
  ControlAnswer Handle(ControlRequest& request) override;

 private:
  static constexpr size_t kMaxTails = 8;

  struct Command;

  static const Command* FindCommand(std::string_view name);

  ControlAnswer List(ControlRequest& request);
  ControlAnswer Explain(ControlRequest& request);
  ControlAnswer Stats(ControlRequest& request);
  ControlAnswer Flush(ControlRequest& request);
  ControlAnswer Check(ControlRequest& request);
  ControlAnswer Compare(ControlRequest& request);
  ControlAnswer Add(ControlRequest& request);
  ControlAnswer Bind(ControlRequest& request);
  // To the tracer that it names.
  template <Status (TracerRegistry::*kDo)(uint32_t)>
  ControlAnswer ToTracer(ControlRequest& request);
  ControlAnswer SetFilter(ControlRequest& request);
  Status Steer(std::string_view command, uint32_t id,
               const std::function<Status()>& act);
  Status Change(uint32_t id, const std::function<void(Order&)>& change,
                const std::function<Status()>& act);
  Status AddPlans(const Config& config, const KnownNames& names,
                  std::vector<UniqueFd> copies, std::vector<TracerPlan> plans,
                  std::vector<uint32_t>* ids);
  ControlAnswer Snapshot(ControlRequest& request);
  ControlAnswer Tail(ControlRequest& request);
  ControlAnswer Watch(ControlRequest& request);
  ControlAnswer Listen(
      ControlRequest& request,
      const std::function<Result<TracerParts>(const Filter&)>& begin);
  ControlAnswer Rules(ControlRequest& request);
  ControlAnswer HeldOnes(ControlRequest& request);
  ControlAnswer Release(ControlRequest& request);
  ControlAnswer Spare(ControlRequest& request);
  ControlAnswer ConfigSeen(ControlRequest& request);
  ControlAnswer Upgrade(ControlRequest& request);
  ControlAnswer Unmount(ControlRequest& request);

  const CommandedMount mount_;
  std::mutex mu_;
  // One for each who waits for the end; guarded by mu_.
  std::vector<std::weak_ptr<EndNotice>> end_notices_;
};

}  // namespace tracefs
