// A mount in which nothing happens, and beside it one thread that records
// made-up operations into the mount's own pipeline at a given rate: more than a
// small machine's kernel can ask for. Counters, tracers and the control socket
// are those of every mount, so that `tracefs-ctl MNT top` sees no difference
// (bench/top --made-up).
//
//   top_feed SOURCE MOUNT RATE SECONDS [FILES [PROCESSES]]
//
// Says "ready" when it serves; then, when the seconds after the first watcher
// have passed, how many operations it recorded in them, and ends.
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/control/place.h"
#include "tracefs/control/server.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/mount/commands.h"
#include "tracefs/mount/queue_threads.h"
#include "tracefs/mount/session.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/tracers/registry.h"
#include "tracefs/tracers/snapshot_service.h"

namespace tracefs {
namespace {

constexpr uint64_t kFilesInDirectory = 50;
constexpr uint64_t kFirstFile = 1'000'000;

// Files by 50 in directories, and the processes that use them.
class MadeUp final : public EventResolver {
 public:
  MadeUp(uint64_t files, uint32_t processes) : files_(files) {
    for (uint32_t i = 0; i < processes; ++i) {
      CallerInfo& caller = callers_.emplace_back();
      caller.tid = caller.pid = 10'000 + i;
      caller.ppid = 9'999;
      caller.start_time = i + 1;
      caller.serial = i + 1;
      const std::string name = "worker" + std::to_string(i % 7);
      std::copy(name.begin(), name.end(), caller.comm_bytes.begin());
      caller.comm_size = static_cast<uint8_t>(name.size());
    }
  }
  void ResolveCaller(Event& event) override {
    const CallerInfo& caller =
        callers_[event.Get(Field::kTid) % callers_.size()];
    event.caller = &caller;
    event.Set(Field::kPid, caller.pid);
    event.Set(Field::kPpid, caller.ppid);
  }
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    link->parent_version = 0;
    link->parent = node == 1 ? 0
                   : node < kFirstFile
                       ? 1
                       : 2 + (node - kFirstFile) / kFilesInDirectory;
    link->name.Set(node == 1 ? ""
                   : node < kFirstFile
                       ? "directory" + std::to_string(node)
                       : "file" + std::to_string(node - kFirstFile));
    return true;
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}

  void Record(EventSink& sink, uint64_t i) {
    static constexpr Op kMix[] = {Op::getattr_, Op::open_,    Op::read_,
                                  Op::read_,    Op::write_,   Op::flush_,
                                  Op::release_, Op::getxattr_};
    const Op op = kMix[i % 8];
    const uint32_t interest = sink.InterestIn(op);
    if (interest == 0) return;
    Recording recording(sink, op, interest);
    Event& e = recording.event;
    e.resolver = this;
    e.Set(Field::kTid, i / 8 % callers_.size());
    e.Set(Field::kUid, 1000);
    e.Set(Field::kGid, 1000);
    // Some files are used much more than others.
    const uint64_t spread = i / 8 * 2'654'435'761 % (files_ * files_);
    const uint64_t file = spread / files_ * (spread % files_) / files_;
    e.node = kFirstFile + file;
    e.Set(Field::kInode, e.node);
    e.Set(Field::kType, 8);
    if (op == Op::read_ || op == Op::write_) {
      e.Set(Field::kOffset, 0);
      e.Set(Field::kLength, 4096);
    }
    const bool fails = op == Op::getxattr_;
    e.SetResult(fails                                 ? -1
                : op == Op::read_ || op == Op::write_ ? 4096
                                                      : 0,
                fails ? ENODATA : 0);
    e.Set(Field::kLatency, 500 + i * 7919 % 100'000);
    recording.End([] { return 0; });
  }

 private:
  const uint64_t files_;
  std::vector<CallerInfo> callers_;
};

// Records at that rate for so long; returns how many.
uint64_t Feed(EventSink& sink, MadeUp& world, uint64_t rate, uint64_t from,
              double seconds) {
  constexpr uint64_t kTurnsPerSecond = 500;
  const uint64_t turns =
      static_cast<uint64_t>(seconds * double{kTurnsPerSecond});
  const uint64_t begin = MonotonicNs();
  uint64_t done = 0;
  for (uint64_t turn = 1; turn <= turns; ++turn) {
    const uint64_t due = rate * turn / kTurnsPerSecond;
    for (; done < due; ++done) world.Record(sink, from + done);
    const uint64_t at = begin + turn * (kNsPerSecond / kTurnsPerSecond);
    const timespec until = {static_cast<time_t>(at / kNsPerSecond),
                            static_cast<long>(at % kNsPerSecond)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  return done;
}

Status RunFeed(char** words) {
  MountOptions options;
  options.source = words[1];
  options.mount_point = words[2];
  const uint64_t rate = std::strtoull(words[3], nullptr, 10);
  const double seconds = std::strtod(words[4], nullptr);
  const uint64_t files = words[5] ? std::strtoull(words[5], nullptr, 10) : 1000;
  const uint64_t processes =
      words[5] && words[6] ? std::strtoull(words[6], nullptr, 10) : 50;
  if (rate == 0 || seconds <= 0 || files == 0 || processes == 0) {
    return Status::Invalid("numbers above 0");
  }
  Result<std::unique_ptr<Watchdog>> watchdog = Watchdog::Start();
  if (!watchdog.ok()) return watchdog.status();
  Session::BlockSignals();
  const UniqueFd proc_self_fd(
      ::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  Result<Source> source = OpenSource(options.source, false);
  if (!source.ok()) return source.status();
  Result<std::unique_ptr<ProcessTable>> table = ProcessTable::Create();
  if (!table.ok()) return table.status();
  NameTable names;
  SystemCalls calls(nullptr);
  MadeUp world(files, static_cast<uint32_t>(processes));
  Pipeline pipeline;
  const TransportChoice transport;
  QueueThreads queue_threads(std::nullopt, /*rings=*/false);
  Result<std::unique_ptr<FileSystem>> fs =
      FileSystem::Create({.proc_self_fd = proc_self_fd.get()},
                         std::move(source->fd), pipeline, names, **table);
  if (!fs.ok()) return fs.status();
  Result<ControlFolder> folder = OpenControlFolder(
      ControlDirectories(::geteuid()), ::geteuid(), options.mount_point);
  if (!folder.ok()) return folder.status();
  Result<std::unique_ptr<Session>> session =
      Session::Mount(options, transport, **fs, **watchdog);
  if (!session.ok()) return session.status();
  const Result<MountIdentity> mount = IdentifyMount((*session)->mount_point());
  if (!mount.ok()) return mount.status();
  ControlServerOptions control;
  control.owner = ::geteuid();
  control.name = mount->SocketName();
  Result<std::unique_ptr<ControlServer>> server =
      ControlServer::Create(std::move(control), *std::move(folder));
  if (!server.ok()) return server.status();
  SnapshotService snapshots(pipeline);
  const format::TraceHeader header;
  const TracedMount traced = {.pipeline = pipeline,
                              .names = names,
                              .processes = **table,
                              .calls = calls,
                              .watch = nullptr,
                              .snapshots = snapshots,
                              .header = header,
                              .note_output = [](const OutputFileId&, bool) {},
                              .forget_names = {},
                              .stay_shut = {}};
  TracerRegistry tracers(traced);
  MountCommands commands({.traced = traced,
                          .tracers = tracers,
                          .fs = **fs,
                          .transport = transport,
                          .queue_threads = queue_threads,
                          .device = ::makedev(mount->major, mount->minor),
                          .steering = nullptr,
                          .upgrade = nullptr,
                          .unmount = [&] { return (*session)->Unmount(); }});
  if (Status s = (*server)->Start(commands); !s.ok()) return s;
  if (Status s = (*session)->Begin(); !s.ok()) return s;
  if (Status s = (*session)->StartServing({}, [] { return false; }); !s.ok()) {
    return s;
  }
  std::thread feeder([&] {
    std::printf("ready\n");
    std::fflush(stdout);
    while (pipeline.InterestIn(Op::read_) == 0) ::usleep(10'000);
    // What begins is not measured.
    const uint64_t before = Feed(pipeline, world, rate, 0, 3);
    std::printf("begin\n");
    std::fflush(stdout);
    const uint64_t cpu = ClockNs(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t begin = MonotonicNs();
    const uint64_t done = Feed(pipeline, world, rate, before, seconds);
    std::printf("%.0f %.0f\n",
                static_cast<double>(done) * 1e9 /
                    static_cast<double>(MonotonicNs() - begin),
                static_cast<double>(ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu) /
                    static_cast<double>(done));
    std::fflush(stdout);
    // Until whoever measures has looked.
    char c;
    static_cast<void>(!::read(STDIN_FILENO, &c, 1));
    (*session)->End();
  });
  const Status served = (*session)->Serve();
  feeder.join();
  (*server)->StopCommands();
  static_cast<void>(pipeline.Stop("exit"));
  (*server)->Stop();
  return served;
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) {
    std::fprintf(stderr,
                 "Usage: top_feed SOURCE MOUNT RATE SECONDS [FILES "
                 "[PROCESSES]]\n");
    return 2;
  }
  const tracefs::Status status = tracefs::RunFeed(argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "top_feed: %s\n", status.message().c_str());
  return 3;
}
