#include "tracefs/mount/run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/base/mount_path.h"
#include "tracefs/base/notice.h"
#include "tracefs/control/metrics_server.h"
#include "tracefs/control/mount_note.h"
#include "tracefs/control/place.h"
#include "tracefs/control/server.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/looker.h"
#include "tracefs/daemon/sandbox.h"
#include "tracefs/daemon/service_manager.h"
#include "tracefs/daemon/user_mount.h"
#include "tracefs/mount/announcements.h"
#include "tracefs/mount/answers.h"
#include "tracefs/mount/commands.h"
#include "tracefs/mount/config_steering.h"
#include "tracefs/mount/dead_mount.h"
#include "tracefs/mount/descriptor_budget.h"
#include "tracefs/mount/environment.h"
#include "tracefs/mount/last_word.h"
#include "tracefs/mount/metrics.h"
#include "tracefs/mount/mount_flags.h"
#include "tracefs/mount/process_feed.h"
#include "tracefs/mount/queue_threads.h"
#include "tracefs/mount/session.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/process_watch.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/tracers/loss_watch.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/registry.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {
namespace {

std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

// All that is found by its name once the outputs are open. The mount may cover
// any of it, and whoever looks something up there waits for the first answer:
// between the mount and that, nothing is looked up.
struct NamedThings {
  std::string mount_point;
  std::string here;  // the caller's working directory; empty: it is gone
  std::string config;
  Result<ControlFolder> folder = Status();
  Result<UniqueFd> notes = Status();
  // Null for a private mount, which would be taken for one that others see.
  std::unique_ptr<LastWord> last_word;
  UniqueFd sys;  // for the sandbox
};

// What mounting itself looks at, once the mount is there: libfuse at whether
// /run/mount/utab is to be written (its mount_util.c).
Status CheckMayBeCovered(const std::string& mount_point) {
  if (mount_point == "/") return Status::Ok();
  for (const char* needed : {"/proc", "/run/mount"}) {
    if (!IsAtOrBelow(needed, mount_point)) continue;
    return Status::Invalid(
        "'" + mount_point + "' cannot be covered: mounting takes what is in " +
        needed + "; mount at another place, or use tracefs-run --root");
  }
  return Status::Ok();
}

Result<NamedThings> FindNamedThings(const MountOptions& options, bool uring,
                                    bool is_private) {
  NamedThings found;
  found.mount_point = Resolved(options.mount_point);
  if (Status s = CheckMayBeCovered(found.mount_point); !s.ok()) return s;
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) != nullptr) found.here = here;
  if (!options.config.empty()) found.config = Resolved(options.config);
  found.folder = OpenOwnControlFolder(found.mount_point);
  if (found.folder.ok()) {
    found.notes = OpenNoteFolder(*found.folder, found.mount_point);
  }
  if (found.folder.ok() && !is_private) {
    found.last_word = LastWord::Open(*found.folder, found.mount_point);
  }
  if (options.sandbox && uring && HasCapability(CAP_SYS_ADMIN)) {
    Result<UniqueFd> sys = OpenSys();
    if (!sys.ok()) return sys.status();
    found.sys = *std::move(sys);
  }
  LoadCiphers();  // a tracer that comes later may want any
  ::tzset();      // what tells the time reads the file of the time zone
  // Nobody's directory is kept busy by us.
  if (::chdir("/") != 0) return Status::System(errno, "/");
  return found;
}

struct ControlSocket {
  dev_t device = 0;  // of the mount
  std::unique_ptr<ControlServer> server;
};

// Which config `tracefs-ctl MNT reload` is to read. The folder is closed then:
// the sandbox has no way to it.
void NoteConfig(const MountOptions& options, const MountIdentity& mount,
                NamedThings& named) {
  MountNote note{.config = named.config};
  if (!options.config_dir.empty()) {
    note = {.config_dir = options.config_dir,
            .config_keys = options.config_keys,
            .config_state = options.config_state};
  }
  const Status written =
      named.notes.ok()
          ? WriteMountNote(named.notes->get(), mount, named.mount_point, note)
          : named.notes.status();
  named.notes = Status();
  const bool nothing = note.config.empty() && note.config_dir.empty();
  if (written.ok() || nothing) return;
  std::cerr << "tracefs-mount: tracefs-ctl MNT reload will have to be told the "
               "config: "
            << written.message() << '\n';
}

// Where the clients of this mount will look for it.
Result<ControlSocket> OpenControlSocket(const Session& session,
                                        const MountOptions& given,
                                        NamedThings& named) {
  if (!named.folder.ok()) return named.folder.status();
  const Result<MountIdentity> mount = IdentifyMount(session.mount_point());
  if (!mount.ok()) return mount.status();
  NoteConfig(given, *mount, named);
  ControlServerOptions options;
  options.owner = ::geteuid();
  options.name = mount->SocketName();
  Result<std::unique_ptr<ControlServer>> server =
      ControlServer::Create(std::move(options), *std::move(named.folder));
  if (!server.ok()) return server.status();
  return ControlSocket{::makedev(mount->major, mount->minor),
                       std::move(*server)};
}

// The log connects anew through the watchdog, which lives as long as Run.
class ReconnectWhileHere {
 public:
  explicit ReconnectWhileHere(Log& log) : log_(log) {}
  ~ReconnectWhileHere() { log_.ForgetReconnect(); }
  ReconnectWhileHere(const ReconnectWhileHere&) = delete;
  ReconnectWhileHere& operator=(const ReconnectWhileHere&) = delete;

 private:
  Log& log_;
};

// Told before an output is made for what is not there.
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
                     options.config.empty() ? "tracefs-run" : options.config,
                     FullSchema());
}

// Whether a tracer has operations fail that it cannot record, or it is not to
// be known.
bool MayFailClosed(const MountOptions& options) {
  const Result<Config> config = ConfigOf(options);
  if (!config.ok()) return true;
  return std::ranges::any_of(config->tracers, [](const TracerConfig& tracer) {
    return AsksToFail(tracer.output.back());
  });
}

// Of a directory of configs, the reload chooses again.
WatchdogOptions WatchdogOptionsOf(const MountOptions& options, const Log& log,
                                  bool reloads) {
  WatchdogOptions made = {.log = log.place()};
  if (!reloads) return made;
  made.reload_program = ControlProgram();
  if (options.config_dir.empty()) made.reload_config = Resolved(options.config);
  return made;
}

// On the thread of a worker. Without the privilege all stays as it was.
void SetUpWorker(int policy) {
  static_cast<void>(ApplyToThread(static_cast<ThreadPolicy>(policy), 0));
}

}  // namespace

std::string ControlProgram() {
  const std::string self = Resolved("/proc/self/exe");
  return self.substr(0, self.rfind('/') + 1) + "tracefs-ctl";
}

Status Run(const MountOptions& given, Log& log,
           const std::function<Status()>& ready, ProcessFeed* feed) {
  MountOptions options = given;
  const Result<std::unique_ptr<ConfigSteering>> steered =
      ConfigSteering::Begin(&options);
  if (!steered.ok()) return steered.status();
  ConfigSteering* const steering = steered->get();
  if (feed == nullptr) {
    if (Status s = RemoveDeadMounts(given.mount_point,
                                    [&] { return MayFailClosed(options); });
        !s.ok()) {
      return s;
    }
  }
  if (Status s = CheckIsThere(given.source); !s.ok()) return s;
  if (feed == nullptr) {
    if (Status s = CheckNotMountedTwice(given.source, given.mount_point);
        !s.ok()) {
      return s;
    }
  }
  // Before anything is opened that must end with this process.
  const bool reloads = feed == nullptr && !options.config.empty();
  Result<std::unique_ptr<Watchdog>> watchdog =
      Watchdog::Start(WatchdogOptionsOf(options, log, reloads));
  if (!watchdog.ok()) return watchdog.status();
  const ReconnectWhileHere reconnect(log);
  // Of a command that is run, what its manager hands it is its own.
  ServiceManager service =
      feed == nullptr ? ServiceManager::FromEnvironment() : ServiceManager();
  Session::BlockSignals();
  const DescriptorBudget descriptors = RaiseLimits();
  if (Status s = DropAlways(); !s.ok()) return s;
  const Result<UniqueFd> proc = OpenProc();
  if (!proc.ok()) return proc.status();
  const UniqueFd proc_self_fd(
      ::openat(proc->get(), "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc_self_fd) return Status::System(errno, "/proc/self/fd");

  std::unique_ptr<MetricsServer> metrics;
  if (!options.metrics.empty()) {
    Result<std::unique_ptr<MetricsServer>> opened =
        MetricsServer::Open(options.metrics, options.metrics_group);
    if (!opened.ok()) return opened.status();
    metrics = std::move(*opened);
  }
  NameTable names;
  // The outputs are opened before the mount: a trace inside the traced tree is
  // written to the tree below.
  const Result<Config> config = ConfigOf(options);
  if (!config.ok()) return config.status();
  // A mount that does not begin leaves nothing that is in the way of the next.
  const auto begun_to_trace = std::make_shared<std::atomic<bool>>(false);
  Result<std::vector<TracerPlan>> plans =
      PlanTracers(*config, names, {.stay = begun_to_trace});
  if (!plans.ok()) return plans.status();
  // What a config names may be among them (/dev/fd/N).
  CloseInheritedFiles();

  if (steering != nullptr) {
    if (Status s = steering->Remember(); !s.ok()) return s;
  }

  Result<Source> source = OpenSource(given.source, given.mounts_below);
  if (!source.ok()) return source.status();
  options.source = Resolved(given.source);
  const MountFlags flags = ChooseMountFlags(given.fuse_options, source->flags,
                                            source->cloned && ::geteuid() == 0);
  options.fuse_options = flags.fuse_options;
  SetSourceFlags(*source, flags);
  const Result<uint32_t> max_read = MaxReadOf(options.fuse_options);
  if (!max_read.ok()) return max_read.status();
  if (!source->cloned) {
    if (Status s = CheckNotInside(source->fd.get(), options.mount_point);
        !s.ok()) {
      return s;
    }
  }
  const std::string proc_path = "/proc/self/fd/" + std::to_string(proc->get());
  ProcessTable::Options process_options;
  process_options.proc = proc_path.c_str();
  if (feed != nullptr) process_options.versions = &feed->versions();
  process_options.make_find_exe =
      [&watchdog]() -> CallerDetailsReader::FindExe {
    const auto looker = std::make_shared<LookerLink>(
        [&watchdog] { return (*watchdog)->StartLooker(); });
    if (!looker->there()) return nullptr;
    return [looker](uint32_t pid) { return looker->Ask(pid, Look::kExe); };
  };
  Result<std::unique_ptr<ProcessTable>> processes =
      ProcessTable::Create(process_options);
  if (!processes.ok()) return processes.status();

  SystemCalls calls([&watchdog](int processor) -> Result<SystemCalls::Opened> {
    Result<OpenTracepoints> opened =
        (*watchdog)->OpenTracepoints(TracepointUse::kCalls, processor);
    if (!opened.ok()) return opened.status();
    return SystemCalls::Opened{std::move(opened->files),
                               std::move(opened->layout)};
  });

  // Joined before the sandbox, which makes no sockets.
  Result<std::unique_ptr<ProcConnector>> connector =
      ProcConnector::Open(ProcConnector::kChangesAndForks);

  // Destroyed in reverse: session, file system, pipeline.
  Pipeline pipeline;

  format::TraceHeader header = CommonHeader(options, source->fd.get());
  const bool forwards_locks = NamesLocks(*plans);
  const WarningFacts warning_facts = {
      .forwards_locks = forwards_locks,
      .visibility = VisibilityName(options.visibility)};
  for (const std::string& warning : WarningsOf(*plans, warning_facts)) {
    std::cerr << "tracefs-mount: " << warning << '\n';
  }
  for (TracerPlan& plan : *plans) PutWarnings(warning_facts, &plan);
  TransportFacts transport_facts = {.forwards_locks = forwards_locks};
  if (options.transport == KernelTransport::kAuto && !forwards_locks &&
      UringObstacle().empty()) {
    transport_facts.round_trips = MeasureTransports();
  }
  const Result<TransportChoice> transport =
      ChooseTransport(options.transport, transport_facts);
  if (!transport.ok()) return transport.status();
  QueueThreads queue_threads(options.queue_threads, transport->uring);
  if (!queue_threads.refusal().empty()) {
    return Status::System(EPERM, queue_threads.refusal());
  }
  Result<std::unique_ptr<FileSystem>> fs = FileSystem::Create(
      {.visibility = options.visibility,
       .forward_locks = forwards_locks,
       .proc_self_fd = proc_self_fd.get(),
       .set_up_worker = SetUpWorker,
       .max_inode_fds = descriptors.inodes,
       .max_open_files = descriptors.open_files,
       .open_files_for_root = descriptors.open_files_for_root,
       .file_handles = options.file_handles,
       .max_read = *max_read,
       .max_waiting = transport->max_waiting,
       .max_aside = transport->max_aside},
      std::move(source->fd), pipeline, names, **processes);
  if (!fs.ok()) return fs.status();
  (*fs)->SetSystemCalls(&calls);
  if (transport->uring) {
    (*fs)->SetWorkerPolicy(static_cast<int>(queue_threads.policy()));
  }
  Result<NamedThings> named = FindNamedThings(options, transport->uring,
                                              /*is_private=*/feed != nullptr);
  if (!named.ok()) return named.status();
  options.mount_point = named->mount_point;
  Result<std::unique_ptr<Session>> session =
      Session::Mount(options, *transport, **fs, **watchdog);
  if (!session.ok()) return session.status();
  header.Set("mount.point", options.shown_at.empty() ? (*session)->mount_point()
                                                     : options.shown_at);
  header.Set("mount.options", MountOptionsText(options, *transport));
  if (const std::string lost = TellWhatIsLost(options); !lost.empty()) {
    header.Set("mount.lost", lost);
  }
  Result<ControlSocket> socket = OpenControlSocket(**session, options, *named);
  if (!socket.ok()) {
    std::cerr << "tracefs-mount: no tracefs-ctl for this mount: "
              << socket.status().message() << '\n';
  }
  if (feed == nullptr) TellWhereTheShellStands(named->here, named->mount_point);
  log.SetMount((*session)->mount_point());
  const std::unique_ptr<LastWord>& last_word = named->last_word;
  if (last_word != nullptr && !last_word->before().empty()) {
    header.Set("mount.before", last_word->before());
    std::cerr << "tracefs-mount: of the mount that was here before: "
              << last_word->before() << '\n';
  }
  if (!named->config.empty()) header.Set("config.file", named->config);
  std::unique_ptr<Sandbox> sandbox;
  if (options.sandbox) {
    // Everything is open, and there is one thread yet.
    Result<std::unique_ptr<Sandbox>> entered =
        Sandbox::Enter({.proc = proc->get(),
                        .uring = transport->uring,
                        .sys = named->sys.get(),
                        .file_handles = options.file_handles});
    if (!entered.ok()) return entered.status();
    sandbox = std::move(*entered);
  }
  header.Set("sandbox",
             sandbox != nullptr ? sandbox->description() : "off, as asked for");
  if (Status s = log.Start([&watchdog](const std::string&) {
        return (*watchdog)->ConnectLog();
      });
      !s.ok()) {
    return s;
  }
  // No request is served before Begin, so no event is missed.
  SnapshotService snapshots(pipeline);
  ProcessWatch::Options watch_options;
  watch_options.proc = (*processes)->proc();
  watch_options.open =
      [&watchdog](int processor) -> Result<ProcessWatch::Opened> {
    Result<OpenTracepoints> opened =
        (*watchdog)->OpenTracepoints(TracepointUse::kProcesses, processor);
    if (!opened.ok()) return opened.status();
    return ProcessWatch::Opened{std::move(opened->files),
                                std::move(opened->layout)};
  };
  if (connector.ok()) watch_options.connector = std::move(*connector);
  watch_options.make_look = [&watchdog]() -> ProcessWatch::Options::Look {
    const auto looker = std::make_shared<LookerLink>(
        [&watchdog] { return (*watchdog)->StartLooker(); });
    if (!looker->there()) return nullptr;
    return [looker](uint32_t pid, LookFor what) {
      return looker->Ask(pid, what == LookFor::kExe   ? Look::kExe
                              : what == LookFor::kCwd ? Look::kCwd
                                                      : Look::kEnvironment);
    };
  };
  ProcessWatch watch(std::move(watch_options), pipeline);
  const TracedMount traced = {
      .pipeline = pipeline,
      .names = names,
      .processes = **processes,
      .calls = calls,
      // Of a command its own feed tells.
      .watch = feed == nullptr ? &watch : nullptr,
      .snapshots = snapshots,
      .header = header,
      .note_output =
          [&inodes = (*fs)->inodes()](const OutputFileId& file, bool written) {
            const auto device = static_cast<dev_t>(file.device);
            if (written) {
              inodes.AddOutput(device, file.inode);
            } else {
              inodes.RemoveOutput(device, file.inode);
            }
          },
      .forget_names = [&] { (*session)->ForgetNames(); },
      .stay_shut = [&] { return (*session)->StayShut(); }};
  pipeline.SetFileStates(fs->get());
  TracerRegistry tracers(traced);
  if (Status s = tracers.Add(std::move(*plans), nullptr); !s.ok()) return s;
  MountCommands commands({.traced = traced,
                          .tracers = tracers,
                          .fs = **fs,
                          .transport = *transport,
                          .queue_threads = queue_threads,
                          .device = socket.ok() ? socket->device : 0,
                          .steering = steering,
                          .unmount = [&] { return (*session)->Unmount(); }});
  // Ends before the commands that it asks for.
  const std::unique_ptr<ControlServer> server =
      socket.ok() ? std::move(socket->server) : nullptr;
  if (server != nullptr) {
    if (Status s = server->Start(commands); !s.ok()) return s;
  }
  const NamesInLabels names_shown =
      options.metrics_names || MetricsAtSocket(options)
          ? NamesInLabels::Shown()
          : NamesInLabels::Withheld();
  if (metrics != nullptr) {
    if (Status s = metrics->Start([&] {
          return MetricsText(pipeline, tracers.TotalsOfRules(), names_shown,
                             steering);
        });
        !s.ok()) {
      return s;
    }
    std::cerr << "tracefs-mount: metrics at " << metrics->address() << '\n';
  }
  LossWatch losses([&pipeline] { return pipeline.Stats(); });
  Status begun;
  if (feed != nullptr) {
    feed->TellWanted(pipeline.Wanted());
    begun =
        feed->Start(pipeline, {.end_traces =
                                   [&] {
                                     tracers.StopRules();
                                     static_cast<void>(pipeline.Stop("exit"));
                                   },
                               .abandoned = [&] { (*session)->End(); }});
  }
  if (begun.ok()) begun = losses.Start();
  // Requests come from Begin on: over io_uring they are served at once.
  // After the sandbox: its threads are to be in it.
  if (begun.ok()) begun = (*fs)->side_pool().Start();
  InterruptHandler() = fs->get();
  if (begun.ok()) {
    begun = queue_threads.Watch(proc->get(), [&](ThreadPolicy policy) {
      (*fs)->SetWorkerPolicy(static_cast<int>(policy));
    });
  }
  (*session)->OnEachSecond([&service] {
    service.Beat();
    static_cast<void>(LookAtHelpers());
  });
  // At a terminal it means that the terminal is gone.
  if (reloads && (!options.foreground || service.there())) {
    (*session)->OnHangUp([&watchdog] {
      if (Status s = (*watchdog)->Reload(); !s.ok()) {
        Notify(NoticeId::kReloadFailed, s.message());
      }
    });
  }
  if (begun.ok() && steering != nullptr) {
    begun = steering->Watch([&watchdog] {
      if (Status s = (*watchdog)->Reload(); !s.ok()) {
        Notify(NoticeId::kReloadFailed, s.message());
      }
    });
  }
  if (begun.ok()) begun = (*session)->Begin();
  if (begun.ok()) begun = ready();
  if (Status s = begun; !s.ok()) {
    if (steering != nullptr) steering->Stop();  // it asks the watchdog
    if (metrics != nullptr) metrics->Stop();    // it asks the tracers
    if (feed != nullptr) feed->Stop();
    return s;
  }

  begun_to_trace->store(true);
  if (last_word != nullptr) last_word->Begin();
  Notify(NoticeId::kMounted, "serves " + options.source + " (visibility " +
                                 VisibilityName(options.visibility) + ", " +
                                 MountOptionsText(options, *transport) + ")");
  service.TellReady("traces " + options.source + " at " +
                    (*session)->mount_point());
  const Status served =
      (*session)->Serve([&] { snapshots.RequestAll("signal"); },
                        [&pool = (*fs)->side_pool()] {
                          return pool.HasOneSince(std::chrono::seconds(1));
                        });
  const ServiceManager::Patience patience(service);
  if (steering != nullptr) steering->Stop();
  queue_threads.Stop();
  if (metrics != nullptr) metrics->Stop();
  if (server != nullptr) server->StopCommands();
  const bool all_ended =
      (*fs)->side_pool().Stop(std::chrono::milliseconds(500));
  (*fs)->ReleaseAll();
  watch.End();
  if (feed != nullptr) feed->Stop();
  tracers.StopRules();
  snapshots.Stop();
  losses.Stop();
  std::vector<TracerStats> last;
  const Status stopped = pipeline.Stop((*session)->end_reason(), &last);
  commands.TellEnd(
      EndLine((*session)->end_reason(), served.ok() ? stopped : served, last));
  const std::string losses_at_end = TellEnd((*session)->end_reason(), last);
  if (last_word != nullptr) last_word->End(losses_at_end);
  if (server != nullptr) server->Stop();
  const Status ended = served.ok() ? stopped : served;
  if (!all_ended || (*fs)->may_hang_below()) {
    // Threads that hang in the file system below may go on at any time, and
    // closing what is open there may hang, too: nothing is taken down under
    // them. But whoever still waits for an answer is let go.
    session->reset();
    metrics.reset();
    if (!ended.ok()) {
      if (log.attended()) {
        std::cerr << "tracefs-mount: " << ended.message() << '\n';
      } else {
        Notify(NoticeId::kFailed, "has ended: " + ended.message());
      }
    }
    std::cerr.flush();
    log.Flush();
    // It says goodbye: this is not a death.
    log.ForgetReconnect();
    watchdog->reset();
    ::_exit(ended.ok() ? 0 : ExitStatus(ended));
  }
  return ended;
}

}  // namespace tracefs
