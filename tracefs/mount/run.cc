#include "tracefs/mount/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/kernel_version.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/daemon/mount_info.h"
#include "tracefs/daemon/user_mount.h"
#include "tracefs/mount/mount_run.h"
#include "tracefs/mount/transport.h"
#include "tracefs/survive/keeper.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/survives.h"

namespace tracefs {
namespace {

// Reported before an output is made for a missing source.
Status CheckIsThere(const std::string& source) {
  const UniqueFd fd(::open(source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "source '" + source + "'");
  return Status::Ok();
}

Result<Config> ConfigOf(const MountOptions& options) {
  if (options.config_text.empty()) {
    return LoadConfig(options.config, FullSchema());
  }
  return ParseConfig(options.config_text,
                     !options.config.empty()  ? std::string_view(options.config)
                     : !options.rules.empty() ? std::string_view(options.rules)
                                              : kNobodysText,
                     FullSchema());
}

// Whether a tracer makes operations fail that it cannot record, or this is
// unknown.
bool MayFailClosed(const MountOptions& options) {
  const Result<Config> config = ConfigOf(options);
  if (!config.ok()) return true;
  return std::ranges::any_of(config->tracers, [](const TracerConfig& tracer) {
    return AsksToFail(tracer.output.back());
  });
}

// With a directory of configs, the reload chooses again.
WatchdogOptions WatchdogOptionsOf(const MountOptions& options, const Log& log,
                                  bool reloads) {
  WatchdogOptions made = {.log = log.place(), .survives = options.survive};
  if (!reloads) return made;
  made.reload_program = ControlProgram();
  if (options.config_dir.empty()) made.reload_config = Resolved(options.config);
  return made;
}

// On a worker's thread. Without the privilege nothing changes.
void SetUpWorker(int policy) {
  static_cast<void>(ApplyToThread(static_cast<ThreadPolicy>(policy), 0));
}

}  // namespace

Status MountRun::Prepare() {
  program_ = Resolved("/proc/self/exe");
  if (options_.survive && ::geteuid() != 0) {
    return Status::System(EPERM, "--survive yes needs root");
  }
  if (options_.survive && !IsKernelAtLeast(6, 9)) {
    return Status::System(
        ENOTSUP,
        "--survive yes needs Linux 6.9, which sends requests again that a dead "
        "daemon had taken");
  }
  Result<std::unique_ptr<ConfigSteering>> steered =
      ConfigSteering::Begin(&options_);
  if (!steered.ok()) return steered.status();
  steering_ = *std::move(steered);
  if (feed_ == nullptr) {
    const Result<bool> left = RemoveDeadMounts(
        given_.mount_point, [this] { return MayFailClosed(options_); });
    if (!left.ok()) return left.status();
    replaces_ = *left;
  }
  if (Status s = CheckIsThere(given_.source); !s.ok()) return s;
  if (feed_ == nullptr && !replaces_) {
    if (Status s = CheckNotMountedTwice(given_.source, given_.mount_point);
        !s.ok()) {
      return s;
    }
  }
  // Before anything is opened that must end with this process.
  reloads_ = feed_ == nullptr && !options_.config.empty();
  Result<std::unique_ptr<Watchdog>> watchdog =
      Watchdog::Start(WatchdogOptionsOf(options_, log_, reloads_));
  if (!watchdog.ok()) return watchdog.status();
  watchdog_ = *std::move(watchdog);
  // A command that is run keeps the descriptors that its manager passes.
  if (feed_ == nullptr) service_ = ServiceManager::FromEnvironment();
  Session::BlockSignals();
  descriptors_ = RaiseLimits();
  machine_ = SizeOfMachine();
  KeepLittleMemory(machine_);
  if (options_.survive) survive::ProtectFromOomKiller();
  if (Status s = DropAlways(); !s.ok()) return s;
  return OpenProcFolders();
}

Status MountRun::OpenProcFolders() {
  Result<UniqueFd> proc = OpenProc();
  if (!proc.ok()) return proc.status();
  proc_ = *std::move(proc);
  proc_self_fd_.Reset(
      ::openat(proc_.get(), "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc_self_fd_) return Status::System(errno, "/proc/self/fd");
  return Status::Ok();
}

Status MountRun::PlanOutputs() {
  if (!options_.metrics.empty()) {
    Result<std::unique_ptr<MetricsServer>> opened =
        MetricsServer::Open(options_.metrics, options_.metrics_group);
    if (!opened.ok()) return opened.status();
    metrics_ = *std::move(opened);
  }
  Result<Config> config = ConfigOf(options_);
  if (!config.ok()) return config.status();
  config_ = *std::move(config);
  if (options_.survive) {
    if (Status s = CheckSurvives(config_); !s.ok()) return s;
  }
  const RememberedNames users;
  Result<std::vector<TracerPlan>> plans =
      PlanTracers(config_, names_, {.users = &users, .stay = begun_to_trace_});
  if (!plans.ok()) return plans.status();
  plans_ = *std::move(plans);
  if (options_.survive) KeepTracersOpen(users.names());
  // Files that a config names may be among them (/dev/fd/N).
  CloseInheritedFiles();
  return steering_ != nullptr ? steering_->Remember() : Status::Ok();
}

Status MountRun::OpenTree() {
  Result<Source> source =
      OpenSource(given_.source, given_.mounts_below,
                 replaces_ ? given_.mount_point : std::string());
  if (!source.ok()) return source.status();
  source_ = *std::move(source);
  if (options_.survive) {
    kept_source_.Reset(::fcntl(source_.fd.get(), F_DUPFD_CLOEXEC, 0));
  }
  options_.source = Resolved(given_.source);
  // Before it is a clone, whose root is where it begins.
  if (const UniqueFd given(
          ::open(given_.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      given && options_.lasting_handles) {
    whole_file_system_ = IsRootOfFileSystem(given.get());
  }
  const MountFlags flags = ChooseMountFlags(given_.fuse_options, source_.flags,
                                            source_.cloned && ::geteuid() == 0);
  options_.fuse_options = flags.fuse_options;
  if (Status s = SetSourceFlags(source_, flags); !s.ok()) {
    if (flags.asks_for_access_times) return s;
    std::cerr << "tracefs-mount: " << s.message() << '\n';
  }
  const Result<uint32_t> max_read = MaxReadOf(options_.fuse_options);
  if (!max_read.ok()) return max_read.status();
  max_read_ = *max_read;
  if (source_.cloned) return Status::Ok();
  return CheckNotInside(source_.fd.get(), options_.mount_point);
}

Status MountRun::OpenKeeping() {
  const auto plan = std::ranges::find_if(
      plans_, [](const TracerPlan& p) { return p.keep.has_value(); });
  if (plan == plans_.end()) return Status::Ok();
  const KeepPlan& keep = *plan->keep;
  Result<std::unique_ptr<keep::KeptFolder>> made =
      keep::KeptFolder::Make({.path = keep.folder,
                              .name = keep.name,
                              .max_bytes = keep.max_bytes,
                              .source = source_.fd.get()});
  if (!made.ok()) return made.status();
  kept_folder_ = *std::move(made);
  keeping_.folder = kept_folder_.get();
  keeping_.must = keep.must;
  if (keep.filter) {
    keeping_.wants = [filter = *keep.filter](const Event& event,
                                             const struct stat& st) {
      Event before = event;
      before.SetAttributes(st);
      return filter.Keep(before);
    };
  }
  return Status::Ok();
}

Status MountRun::MakeProcesses() {
  proc_path_ = "/proc/self/fd/" + std::to_string(proc_.get());
  ProcessTable::Options options;
  options.proc = proc_path_.c_str();
  if (feed_ != nullptr) options.versions = &feed_->versions();
  options.make_find_exe = [this]() -> CallerDetailsReader::FindExe {
    const auto looker = std::make_shared<LookerLink>(StartLooker());
    if (!looker->there()) return nullptr;
    return [looker](uint32_t pid) { return looker->Ask(pid, Look::kExe); };
  };
  Result<std::unique_ptr<ProcessTable>> processes =
      ProcessTable::Create(options);
  if (!processes.ok()) return processes.status();
  processes_ = *std::move(processes);
  calls_ = std::make_unique<SystemCalls>(
      [this](int processor) -> Result<SystemCalls::Opened> {
        Result<OpenTracepoints> opened =
            watchdog_->OpenTracepoints(TracepointUse::kCalls, processor);
        if (!opened.ok()) return opened.status();
        return SystemCalls::Opened{std::move(opened->files),
                                   std::move(opened->layout)};
      });
  // Joined before the sandbox, which makes no sockets.
  connector_ = ProcConnector::Open(ProcConnector::kChangesAndForks);
  return Status::Ok();
}

Status MountRun::ChooseHowToServe() {
  header_ = CommonHeader(options_, source_.fd.get());
  forwards_locks_ = NamesLocks(plans_);
  const WarningFacts facts = {
      .forwards_locks = forwards_locks_,
      .visibility = VisibilityName(options_.visibility)};
  for (const std::string& warning : WarningsOf(plans_, facts)) {
    std::cerr << "tracefs-mount: " << warning << '\n';
  }
  for (TracerPlan& plan : plans_) PutWarnings(facts, &plan);
  TransportFacts transport_facts = {.forwards_locks = forwards_locks_,
                                    .round_trips = {},
                                    .machine = machine_};
  if (options_.transport == KernelTransport::kAuto && !forwards_locks_ &&
      UringObstacle().empty()) {
    transport_facts.round_trips = MeasureTransports();
  }
  Result<TransportChoice> transport =
      ChooseTransport(options_.transport, transport_facts);
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  return ChooseThreads();
}

Status MountRun::ChooseThreads() {
  // With the threads that read, fewer than there are slots.
  if (options_.survive) {
    transport_.max_waiting = std::min(transport_.max_waiting, 128);
  }
  queue_threads_ =
      std::make_unique<QueueThreads>(options_.queue_threads, transport_.uring);
  if (queue_threads_->refusal().empty()) return Status::Ok();
  return Status::System(EPERM, queue_threads_->refusal());
}

Status MountRun::MakeFileSystem() {
  Result<std::unique_ptr<FileSystem>> fs = FileSystem::Create(
      {.visibility = options_.visibility,
       .forward_locks = forwards_locks_,
       .proc_self_fd = proc_self_fd_.get(),
       .set_up_worker = SetUpWorker,
       .max_inode_fds = descriptors_.inodes,
       .max_open_files = options_.survive ? std::min(descriptors_.open_files,
                                                     kMostSurvivingOpens)
                                          : descriptors_.open_files,
       .open_files_for_root = descriptors_.open_files_for_root,
       .file_handles = options_.file_handles,
       .lasting_handles = options_.lasting_handles,
       .whole_file_system = whole_file_system_,
       .max_read = max_read_,
       .max_waiting = transport_.max_waiting,
       .max_aside = transport_.max_aside,
       .waiting_bytes = transport_.waiting_bytes},
      std::move(source_.fd), pipeline_, names_, *processes_);
  if (!fs.ok()) return fs.status();
  fs_ = *std::move(fs);
  fs_->SetSystemCalls(calls_.get());
  if (kept_folder_ != nullptr) {
    // Who is asked there may hang: then there is no order to rely on.
    if (fs_->may_hang_below()) {
      return Status::Invalid(
          "STR_KEEP: the source is served by others (NFS, FUSE), and what "
          "changes there meanwhile cannot be kept");
    }
    fs_->SetKeeping(&keeping_);
  }
  if (transport_.uring) {
    fs_->SetWorkerPolicy(static_cast<int>(queue_threads_->policy()));
  }
  return Status::Ok();
}

Status MountRun::Mount() {
  Result<NamedThings> named = FindNamedThings(options_, transport_.uring,
                                              /*is_private=*/feed_ != nullptr);
  if (!named.ok()) return named.status();
  named_ = *std::move(named);
  named_.traces = TraceFilesOf(config_, plans_, named_.here);
  if (kept_folder_ != nullptr) named_.kept = kept_folder_->path();
  options_.mount_point = named_.mount_point;
  Result<std::unique_ptr<Session>> session =
      Session::Mount(options_, transport_, *fs_, *watchdog_, replaces_);
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  DescribeMount();
  Result<ControlSocket> socket = OpenControlSocket(*session_, options_, named_);
  if (socket.ok()) {
    socket_ = *std::move(socket);
  } else {
    std::cerr << "tracefs-mount: no tracefs-ctl for this mount: "
              << socket.status().message() << '\n';
  }
  if (feed_ == nullptr) {
    TellWhereTheShellStands(named_.here, named_.mount_point);
  }
  log_.SetMount(session_->mount_point());
  return Status::Ok();
}

// In the header of each trace.
void MountRun::DescribeMount() {
  header_.Set("mount.point", options_.shown_at.empty() ? session_->mount_point()
                                                       : options_.shown_at);
  header_.Set("mount.options", MountOptionsText(options_, transport_));
  if (const std::string lost = TellWhatIsLost(options_); !lost.empty()) {
    header_.Set("mount.lost", lost);
  }
  if (const auto& last_word = named_.last_word;
      last_word != nullptr && !last_word->before().empty()) {
    header_.Set("mount.before", last_word->before());
    std::cerr << "tracefs-mount: of the mount that was here before: "
              << last_word->before() << '\n';
  }
  if (!named_.config.empty()) header_.Set("config.file", named_.config);
}

// Everything is open, and no other thread exists yet.
Status MountRun::EnterSandbox() {
  if (options_.sandbox) {
    Result<std::unique_ptr<Sandbox>> entered =
        Sandbox::Enter({.proc = proc_.get(),
                        .uring = transport_.uring,
                        .sys = named_.sys.get(),
                        .file_handles = options_.file_handles});
    if (!entered.ok()) return entered.status();
    sandbox_ = *std::move(entered);
  }
  header_.Set("sandbox", sandbox_ != nullptr ? sandbox_->description()
                                             : "off, as asked for");
  return log_.Start(
      [this](const std::string&) { return watchdog_->ConnectLog(); });
}

std::string ControlProgram() {
  const std::string self = Resolved("/proc/self/exe");
  return self.substr(0, self.rfind('/') + 1) + "tracefs-ctl";
}

Status Run(const MountOptions& given, Log& log,
           const std::function<Status()>& ready, ProcessFeed* feed) {
  return MountRun(given, log, feed).Do(ready);
}

Status GoOn(const MountOptions& given, Log& log,
            const survive::Inheritance& inheritance) {
  return MountRun(given, log, nullptr, &inheritance).Do([] {
    return Status::Ok();
  });
}

}  // namespace tracefs
