// MountControl: what the control socket can do with a running mount
// (docs/control-protocol.md). It also starts the mount's first tracers, so that
// all tracers are known in one place.
#ifndef TRACEFS_MOUNT_MOUNT_CONTROL_H_
#define TRACEFS_MOUNT_MOUNT_CONTROL_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/name_table.h"
#include "tracefs/control/handler.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/mount/build_pipeline.h"
#include "tracefs/mount/snapshot_service.h"
#include "tracefs/mount/transport.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"

namespace tracefs {

// All that is referred to outlives the control.
struct ControlledMount {
  Pipeline& pipeline;
  NameTable& names;
  FileSystem& fs;
  ProcessTable& processes;
  const format::TraceHeader& header;  // what all its traces say
  const TransportChoice& transport;
  dev_t device = 0;  // of the mount itself
  SnapshotService& snapshots;
  // Makes the kernel forget the names it keeps; may be empty.
  std::function<void()> forget_names;
};

class MountControl final : public ControlHandler {
 public:
  explicit MountControl(ControlledMount mount) : mount_(std::move(mount)) {}

  // Starts the mount's first tracers, with ids from 1 on.
  Status AddFirst(std::vector<TracerPlan> plans);

  // ControlHandler:
  bool IsQuick(std::string_view command) const override;
  ControlAnswer Handle(ControlRequest& request) override;

 private:
  // Tracers of clients that listen have ids of their own.
  static constexpr uint32_t kFirstTailId = uint32_t{1} << 30;
  static constexpr size_t kMaxTails = 8;

  struct Known {
    std::string filter;
    std::string drivers;
    std::string output;
    std::string config;
    std::vector<OutputFileId> files;
    bool needs_callers = false;
    bool tail = false;
  };
  struct Command;

  static const Command* FindCommand(std::string_view name);
  Status Add(std::vector<TracerPlan> plans, std::vector<uint32_t>* ids);
  Status Forget(uint32_t id, std::string_view end_reason);
  void Release(uint32_t id);
  // A tracer goes on in another file.
  void ChangeFile(uint32_t id, const OutputFileId& file, bool written);
  void Changed();

  ControlAnswer List(ControlRequest& request);
  ControlAnswer Explain(ControlRequest& request);
  ControlAnswer Stats(ControlRequest& request);
  ControlAnswer Flush(ControlRequest& request);
  ControlAnswer Check(ControlRequest& request);
  ControlAnswer AddConfig(ControlRequest& request);
  ControlAnswer Remove(ControlRequest& request);
  ControlAnswer Stop(ControlRequest& request);
  ControlAnswer Start(ControlRequest& request);
  ControlAnswer SetFilter(ControlRequest& request);
  ControlAnswer Snapshot(ControlRequest& request);
  ControlAnswer Tail(ControlRequest& request);

  const ControlledMount mount_;
  // Changed by AddFirst, then by the server's command thread only.
  uint32_t next_id_ = 1;
  uint32_t next_tail_id_ = kFirstTailId;

  std::mutex known_mu_;
  std::map<uint32_t, Known> known_;  // guarded by known_mu_
};

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_MOUNT_CONTROL_H_
