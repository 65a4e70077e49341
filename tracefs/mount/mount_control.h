// MountControl: what the control socket can do with a running mount
// (docs/control-protocol.md). It also starts the mount's first tracers, so that
// all tracers are known in one place.
#ifndef TRACEFS_MOUNT_MOUNT_CONTROL_H_
#define TRACEFS_MOUNT_MOUNT_CONTROL_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/name_table.h"
#include "tracefs/control/handler.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/mount/end_notice.h"
#include "tracefs/mount/metrics.h"
#include "tracefs/mount/transport.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"
#include "tracefs/rules/rule_runner.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/snapshot_service.h"

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
  // Takes the mount away, if nobody uses it.
  std::function<Status()> unmount;
};

class MountControl final : public ControlHandler, private AlarmHandler {
 public:
  explicit MountControl(ControlledMount mount) : mount_(std::move(mount)) {}
  ~MountControl() override { StopRules(); }

  // Starts the mount's first tracers, with ids from 1 on.
  Status AddFirst(std::vector<TracerPlan> plans);
  // Ends all rules, after they have looked at all that has happened. Before the
  // pipeline stops; after the server has taken the last request.
  void StopRules();

  // Says `line` (EndLine) to all who asked for the end: all outputs are
  // complete.
  void TellEnd(const std::string& line);

  // For metrics. Threads: any.
  std::vector<RuleTotals> TotalsOfRules();

  // ControlHandler:
  bool IsQuick(std::string_view command) const override;
  ControlAnswer Handle(ControlRequest& request) override;

 private:
  static constexpr size_t kMaxTails = 8;

  struct Known {
    std::string filter;
    std::string drivers;
    std::string output;
    std::string config;
    std::vector<OutputFileId> files;
    bool needs_callers = false;
    bool tail = false;
    bool flight = false;  // can write snapshots
    // What it records when no rule has raised it: its filter, and that at all.
    std::optional<Filter> compiled;
    bool stopped = false;
    // By a rule; 0: it is not raised.
    uint64_t raised_until_ns = 0;
    uint32_t raised_by = 0;  // the tracer whose rule it was
    // Of a tracer that feeds rules.
    std::shared_ptr<RuleRunner> rules;
  };
  struct Command;

  static const Command* FindCommand(std::string_view name);
  Status Add(std::vector<TracerPlan> plans, std::vector<uint32_t>* ids);
  Status Forget(uint32_t id, std::string_view end_reason);
  void Release(uint32_t id);
  // A tracer goes on in another file.
  void ChangeFile(uint32_t id, const OutputFileId& file, bool written);
  void Changed();

  // AlarmHandler:
  std::vector<Status> OnAlarm(uint32_t tracer, const Rule& rule,
                              const Alarm& alarm) override;
  void OnTick() override;
  uint32_t ParentOf(uint32_t pid) override;

  Status Act(uint32_t by, const RuleAction& action);
  Status Raise(uint32_t by, const RuleAction& action);
  void EndRaises(const std::function<bool(const Known&)>& is_over);
  Status Run(uint32_t id);
  Status Rest(uint32_t id);
  Status SwapFilter(uint32_t id, const Filter& filter);
  bool Find(uint32_t id, Known* known);
  void StopRulesOf(uint32_t id);

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
  ControlAnswer Rules(ControlRequest& request);
  ControlAnswer Unmount(ControlRequest& request);

  const ControlledMount mount_;
  // Changed by AddFirst, then by the server's command thread only.
  uint32_t next_id_ = 1;
  uint32_t next_tail_id_ = kFirstTailId;

  // Lock order: steer_mu_ before known_mu_. One command, or one rule, changes
  // what a tracer does at a time.
  std::mutex steer_mu_;
  std::mutex known_mu_;
  std::map<uint32_t, Known> known_;  // guarded by known_mu_
  // Of who waits for the end; guarded by known_mu_.
  std::vector<std::weak_ptr<EndNotice>> end_notices_;
};

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_MOUNT_CONTROL_H_
