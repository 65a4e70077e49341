// The stages of one mount, from its config to its end.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/notice.h"
#include "tracefs/control/metrics_server.h"
#include "tracefs/control/server.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/looker.h"
#include "tracefs/daemon/sandbox.h"
#include "tracefs/daemon/service_manager.h"
#include "tracefs/daemon/watchdog.h"
#include "tracefs/fs/keep_before.h"
#include "tracefs/keep/kept_folder.h"
#include "tracefs/mount/announcements.h"
#include "tracefs/mount/answers.h"
#include "tracefs/mount/commands.h"
#include "tracefs/mount/config_steering.h"
#include "tracefs/mount/dead_mount.h"
#include "tracefs/mount/descriptor_budget.h"
#include "tracefs/mount/environment.h"
#include "tracefs/mount/holds.h"
#include "tracefs/mount/metrics.h"
#include "tracefs/mount/mount_flags.h"
#include "tracefs/mount/named_things.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/process_feed.h"
#include "tracefs/mount/queue_threads.h"
#include "tracefs/mount/session.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/process_watch.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/survive/area.h"
#include "tracefs/survive/hand_over.h"
#include "tracefs/tracers/kept_tracers.h"
#include "tracefs/tracers/loss_watch.h"
#include "tracefs/tracers/orders.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/registry.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {

// The log reconnects through the watchdog, which lives as long as Run.
class ReconnectWhileHere {
 public:
  explicit ReconnectWhileHere(Log& log) : log_(log) {}
  ~ReconnectWhileHere() { log_.ForgetReconnect(); }
  ReconnectWhileHere(const ReconnectWhileHere&) = delete;
  ReconnectWhileHere& operator=(const ReconnectWhileHere&) = delete;

 private:
  Log& log_;
};

// One mount. Later members use earlier ones: they are declared in the order in
// which they are made, and are destroyed in reverse.
class MountRun {
 public:
  // `inherited`: goes on where another program was; null: begins.
  MountRun(const MountOptions& given, Log& log, ProcessFeed* feed,
           const survive::Inheritance* inherited = nullptr)
      : given_(given),
        options_(given),
        log_(log),
        feed_(feed),
        inherited_(inherited) {}
  MountRun(const MountRun&) = delete;
  MountRun& operator=(const MountRun&) = delete;

  Status Do(const std::function<Status()>& ready) {
    if (inherited_ != nullptr) Inherit();
    for (const auto stage :
         {&MountRun::Prepare, &MountRun::PlanOutputs, &MountRun::OpenTree,
          &MountRun::OpenKeeping, &MountRun::MakeProcesses,
          &MountRun::ChooseHowToServe, &MountRun::MakeFileSystem,
          &MountRun::Mount}) {
      if (inherited_ != nullptr) break;
      if (Status s = (this->*stage)(); !s.ok()) return s;
    }
    for (const auto stage :
         {&MountRun::Survive, &MountRun::EnterSandbox, &MountRun::StartTracers,
          &MountRun::StartCommands}) {
      Status s = (this->*stage)();
      if (!s.ok() && predecessors_ != 0) LeaveToKeeper(s);
      if (!s.ok()) return s;
    }
    Status begun = StartHelpers();
    if (begun.ok()) begun = session_->Begin();
    if (begun.ok() && sandbox_ != nullptr) begun = sandbox_->RefuseMoreRings();
    if (!begun.ok() && predecessors_ != 0) LeaveToKeeper(begun);
    if (!begun.ok()) {
      if (steering_ != nullptr) steering_->Stop();  // it asks the watchdog
      if (metrics_ != nullptr) metrics_->Stop();    // it asks the tracers
      if (feed_ != nullptr) feed_->Stop();
      return begun;
    }
    begun = session_->StartServing(
        [this] { snapshots_.RequestAll("signal"); },
        [this] {
          return fs_->side_pool().HasOneSince(std::chrono::seconds(1));
        });
    if (!begun.ok() && predecessors_ != 0) LeaveToKeeper(begun);
    if (begun.ok() && !IsTold()) {
      begun = ready();
      // Whoever waited for it may have gone when another had told him.
      if (predecessors_ != 0) begun = Status::Ok();
    }
    if (!begun.ok()) return End(begun);  // its threads are at work
    TellBegin();
    return End(session_->Serve());
  }

 private:
  // Checks and rights given up before anything is opened for the mount.
  Status Prepare();
  // The outputs are opened before the mount: a trace inside the traced tree is
  // written to the tree below.
  Status PlanOutputs();
  Status OpenTree();
  // Where what is destroyed is kept, if a tracer asks for that.
  Status OpenKeeping();
  // Sources of process information, some of which only a privileged process can
  // open.
  Status MakeProcesses();
  Status ChooseHowToServe();
  Status MakeFileSystem();
  Status Mount();
  // With --survive yes: from here on there may be several processes, one after
  // the other, each of which goes on from here (tracefs/survive).
  Status Survive();
  Status EnterSandbox();
  Status StartTracers();
  // What clients may ask of this mount.
  Status StartCommands();
  // Threads that requests need, or that look after what goes on.
  Status StartHelpers();
  void TellBegin();
  // By a daemon before this one.
  bool IsTold() const {
    return area_ != nullptr && area_->header().told.load() != 0;
  }
  Status End(const Status& served);
  // Threads hang below: does not return.
  [[noreturn]] void LeaveThem(const Status& ended);

  // This daemon cannot take the place of a dead one: another may.
  [[noreturn]] void LeaveToKeeper(const Status& why);
  Status OpenProcFolders();
  Status ChooseThreads();
  // --- Another program (upgrade.cc). What it is left, and would be run.
  Result<survive::Inheritance> Leave() const;
  survive::ProgramToRun OtherProgram() const;
  void KeepTracersOpen(const KnownNames& names);
  // In the daemon: asks for it; returns where there is none.
  Status Upgrade();
  Status Drain();
  // In that program: does all that comes before Survive, from what it was left.
  // Returns only if that goes well, and this is no trial.
  void Inherit();
  Status InheritState();
  Status InheritProcess();
  Status InheritOutputs();
  Status InheritTree();
  Status InheritTransport();
  Status InheritMount();
  Status AgreeIfTrial();
  Result<UniqueFd> Inherited(std::string_view name) const;
  // What of /proc is about this process.
  Status OpenOwnProc();
  void LookAtKeeper();
  // What a later daemon goes on with, and what it says there.
  void KeepTraces();
  void TellTraces();
  // As far as daemons still trace, where they have crashed again and again.
  Status GoOnWithTraces();
  void TellRefused(const std::string& request, const std::string& file);
  void TellSuccession();
  void DescribeMount();
  ProcessWatch::Options WatchOptions();
  LookerLink::Start StartLooker() {
    return [this] { return watchdog_->StartLooker(); };
  }
  // Asks the watchdog, which is outside the sandbox, for a reload.
  void Reload() {
    if (Status s = watchdog_->Reload(); !s.ok()) {
      Notify(NoticeId::kReloadFailed, s.message());
    }
  }

  const MountOptions& given_;
  MountOptions options_;
  Log& log_;
  ProcessFeed* const feed_;  // null: not of a command that is run
  const survive::Inheritance* const inherited_;  // null: it begins

  std::string program_;  // that was started, absolute
  // For another program; with --survive yes.
  std::optional<KeptTracers> kept_;
  UniqueFd kept_source_;
  std::string upgrade_obstacle_;

  std::unique_ptr<ConfigSteering> steering_;  // null: its config is a file
  bool reloads_ = false;
  // A dead mount is there, and this one takes its place.
  bool replaces_ = false;
  std::unique_ptr<survive::Area> area_;  // null: nothing survives
  uint32_t predecessors_ = 0;            // daemons of this mount before this
  bool keeper_lives_ = true;
  bool keeper_missed_ = false;  // at the last look
  uint32_t keepers_ = 0;        // that have taken the place of a dead one
  // Of traces that a daemon before this one has ended.
  std::vector<TracerStats> ended_before_;
  std::unique_ptr<Watchdog> watchdog_;
  const ReconnectWhileHere reconnect_{log_};
  ServiceManager service_;
  DescriptorBudget descriptors_{};
  UniqueFd proc_;
  UniqueFd proc_self_fd_;

  std::unique_ptr<MetricsServer> metrics_;  // null: not wanted
  NameTable names_;
  Config config_;
  // A mount that does not begin leaves nothing in the way of the next.
  const std::shared_ptr<std::atomic<bool>> begun_to_trace_ =
      std::make_shared<std::atomic<bool>>(false);
  std::vector<TracerPlan> plans_;
  std::unique_ptr<keep::KeptFolder> kept_folder_;  // null: nothing is kept
  Keeping keeping_;

  bool whole_file_system_ = false;  // of the source
  Source source_;
  uint32_t max_read_ = 0;

  std::string proc_path_;
  std::unique_ptr<ProcessTable> processes_;
  std::unique_ptr<SystemCalls> calls_;
  Result<std::unique_ptr<ProcConnector>> connector_ = Status();

  Pipeline pipeline_;
  format::TraceHeader header_;
  bool forwards_locks_ = false;
  MachineSize machine_;
  TransportChoice transport_;
  std::unique_ptr<QueueThreads> queue_threads_;
  std::unique_ptr<FileSystem> fs_;
  NamedThings named_;
  std::unique_ptr<Session> session_;
  ControlSocket socket_;
  std::unique_ptr<Sandbox> sandbox_;  // null: off

  SnapshotService snapshots_{pipeline_};
  std::unique_ptr<ProcessWatch> watch_;
  std::optional<Holds> holds_;
  std::optional<TracedMount> traced_;
  std::unique_ptr<TracerRegistry> tracers_;
  std::unique_ptr<Orders> orders_;  // null: nothing survives
  std::unique_ptr<MountCommands> commands_;
  // Ends before the commands that it requests.
  std::unique_ptr<ControlServer> server_;  // null: there is no tracefs-ctl
  LossWatch losses_{[this] { return pipeline_.Stats(); }};
};

}  // namespace tracefs
