#include "tracefs/process/process_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/pid_namespace.h"
#include "tracefs/base/thread.h"
#include "tracefs/process/exec_stack.h"
#include "tracefs/process/proc_reader.h"
#include "tracefs/process/proc_text.h"

namespace tracefs {

// What a record's views point to while it is told.
struct ProcessTexts {
  std::string exe;
  std::string cwd;
  std::string argv;
  std::string environ;
  std::string comm;
  std::string cgroup;
};

namespace {

using Kind = ProcessRecord::Kind;

// A processor's ring holds some 60 programs, with their stacks, until they are
// read.
constexpr size_t kProcessRingBytes = size_t{1} << 20;
// How long the end of a process waits for its status, told by the connector.
constexpr uint64_t kStatusNs = 100'000'000;
// Even where nothing happens traces are to go on.
constexpr int kRestMs = 100;
// What may have happened before a reading that did not find it: it is on its
// way into a ring, or the connector's thread waits for a processor.
constexpr uint64_t kOnTheWayNs = 20'000'000;
constexpr uint64_t kOnTheWayByConnectorNs = 200'000'000;
constexpr size_t kMaxKnown = 65536;
constexpr size_t kMaxTold = 65536;
constexpr size_t kMaxArguments = 65536;
constexpr size_t kMaxText = 4096;
constexpr uint64_t kTickNs = 10'000'000;  // of /proc: USER_HZ is 100

void SetStatus(uint32_t status, ProcessRecord* record) {
  if (const uint32_t signal = status & 0x7f; signal != 0) {
    record->signal = signal;
    record->core_dumped = (status & 0x80) != 0;
  } else {
    record->exit_code = status >> 8 & 0xff;
  }
}

}  // namespace

ProcessWatch::ProcessWatch(Options options, ProcessSink& sink)
    : options_(std::move(options)), sink_(sink) {}

ProcessWatch::~ProcessWatch() {
  if (thread_.joinable()) {
    stop_.Set();
    thread_.join();
  }
  if (options_.connector != nullptr) options_.connector->Stop();
}

Status ProcessWatch::OpenTracepoints() {
  if (!options_.open) return Status::System(ENOSYS, "tracepoints");
  if (!InInitialPidNamespace()) {
    return Status::System(EOPNOTSUPP, "tracepoints in a pid namespace");
  }
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (long i = 0; i < processors; ++i) {
    Result<Opened> opened = options_.open(static_cast<int>(i));
    if (!opened.ok() && opened.status().error() == ENODEV) continue;
    if (!opened.ok()) return opened.status();
    layout_ = ParseTracepointLayout(opened->layout);
    Result<PerfRing> ring = PerfRing::Map(
        std::move(opened->files), kProcessRingBytes / page, /*in_order=*/true);
    if (!ring.ok()) return ring.status();
    rings_.push_back(*std::move(ring));
    ring_cpus_.push_back(static_cast<uint32_t>(i));
  }
  if (rings_.empty()) return Status::System(ENODEV, "tracepoints");
  return Status::Ok();
}

Status ProcessWatch::Start() {
  std::lock_guard lock(start_mu_);
  if (users_ > 0) {
    ++users_;
    return Status::Ok();
  }
  if (!stop_ || !told_event_) return Status::System(EMFILE, "eventfd");
  // They tell at once.
  read_until_ns_ = MonotonicNs();
  Status points = OpenTracepoints();
  if (!points.ok()) {
    rings_.clear();
    ring_cpus_.clear();
  }
  Status connected = Status::System(EOPNOTSUPP, "the proc connector");
  if (options_.connector != nullptr) {
    connected = options_.connector->Start(this);
  }
  statuses_come_ = connected.ok();
  if (!points.ok() && !connected.ok()) {
    return Status::SystemSaid(
        points.error(),
        points.message() + "; " + connected.message() +
            ": process records of a whole mount take root in "
            "the initial namespaces; tracefs-run takes neither");
  }
  source_ = points.ok() ? "tracepoints" : "proc connector";
  why_ = points.ok() ? "" : points.message();
  if (options_.make_look) look_ = options_.make_look();
  sink_.HoldBack(read_until_ns_);
  stop_.Clear();
  if (Status s = StartThread(
          "tracefs-procs", [this] { Run(); }, &thread_);
      !s.ok()) {
    Rest();
    return s;
  }
  users_ = 1;
  return Status::Ok();
}

void ProcessWatch::TellWhoRuns() {
  tell_who_runs_.store(true);
  told_event_.Set();
}

void ProcessWatch::Stop() {
  std::lock_guard lock(start_mu_);
  if (users_ > 0 && --users_ == 0) Rest();
}

void ProcessWatch::End() {
  std::lock_guard lock(start_mu_);
  if (std::exchange(users_, 0) > 0) Rest();
}

// With start_mu_.
void ProcessWatch::Rest() {
  if (options_.connector != nullptr) {
    // A parent may know of an end before the connector has told of it.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    options_.connector->Stop();
  }
  stop_.Set();
  if (thread_.joinable()) thread_.join();
  rings_.clear();
  ring_cpus_.clear();
  start_ticks_.clear();
  ended_.clear();
  {
    // Their pids may belong to others by the next time.
    std::lock_guard lock(told_mu_);
    statuses_.clear();
    told_.clear();
  }
  look_ = nullptr;
  source_.clear();
  sink_.HoldBack(ProcessSink::kNothingHeld);
}

void ProcessWatch::Run() {
  // What is read late is read sooner.
  ::setpriority(PRIO_PROCESS, 0, -10);
  std::vector<pollfd> ready;
  ready.push_back({stop_.get(), POLLIN, 0});
  ready.push_back({told_event_.get(), POLLIN, 0});
  for (const PerfRing& ring : rings_) ready.push_back({ring.fd(), POLLIN, 0});
  for (bool last = false; !last;) {
    ::poll(ready.data(), ready.size(), ended_.empty() ? kRestMs : 2);
    last = ready[0].revents != 0;
    const uint64_t now = MonotonicNs();
    told_event_.Clear();
    if (tell_who_runs_.exchange(false)) TellRunning();
    {
      std::lock_guard lock(told_mu_);
      batch_.swap(told_);
    }
    TakeRings();
    std::stable_sort(batch_.begin(), batch_.end(),
                     [](const Happening& a, const Happening& b) {
                       return a.time_ns < b.time_ns;
                     });
    DropRenamesOfExec();
    for (const Happening& happening : batch_) {
      // Its status is on the way.
      if (happening.kind != Kind::kExit || happening.status ||
          !statuses_come_ || ended_.size() >= kMaxKnown) {
        Tell(happening);
        continue;
      }
      if (const auto before = ended_.extract(happening.tid)) {
        Tell(before.mapped().what);
      }
      ended_[happening.tid] = {happening, now + kStatusNs};
    }
    batch_.clear();
    TakeEnds(last ? UINT64_MAX : now);
    uint64_t oldest =
        now - (rings_.empty() ? kOnTheWayByConnectorNs : kOnTheWayNs);
    for (const auto& [tid, ended] : ended_) {
      oldest = std::min(oldest, ended.what.time_ns);
    }
    read_until_ns_ = std::max(read_until_ns_.load(), oldest);
    sink_.HoldBack(read_until_ns_);
  }
}

// execve(2) renames the thread just before it is told of.
void ProcessWatch::DropRenamesOfExec() {
  constexpr uint64_t kJustBeforeNs = 1'000'000;
  std::map<uint32_t, Happening*> execs;  // by tid: the next one
  for (auto at = batch_.rbegin(); at != batch_.rend(); ++at) {
    if (at->kind == Kind::kExec) execs[at->tid] = &*at;
    if (at->kind != Kind::kComm) continue;
    const auto exec = execs.find(at->tid);
    if (exec == execs.end() ||
        exec->second->time_ns - at->time_ns > kJustBeforeNs) {
      continue;
    }
    exec->second->comm = std::move(at->text);
    execs.erase(exec);
    at->tid = 0;
  }
  std::erase_if(batch_, [](const Happening& h) { return h.tid == 0; });
}

void ProcessWatch::TakeEnds(uint64_t now_ns) {
  std::map<uint32_t, uint32_t> statuses;
  {
    std::lock_guard lock(told_mu_);
    for (auto& [tid, ended] : ended_) {
      const auto found = statuses_.find(tid);
      if (found == statuses_.end()) continue;
      ended.what.status = found->second;
      statuses_.erase(found);
    }
  }
  for (auto at = ended_.begin(); at != ended_.end();) {
    if (!at->second.what.status && now_ns < at->second.until_ns) {
      ++at;
      continue;
    }
    const Happening happening = std::move(at->second.what);
    at = ended_.erase(at);
    Tell(happening);
  }
}

void ProcessWatch::TakeRings() {
  for (size_t i = 0; i < rings_.size(); ++i) {
    const bool sane =
        rings_[i].Take([&](const PerfRecordHead& head, ByteSpan record) {
          if (head.type == PERF_RECORD_SAMPLE) {
            TakeSample(record, ring_cpus_[i]);
          } else if (head.type == PERF_RECORD_LOST && record.size() >= 16) {
            const auto count = LoadLe<uint64_t>(record.data() + 8);
            lost_.fetch_add(count, std::memory_order_relaxed);
            sink_.NoteOverrun(count, read_until_ns_, MonotonicNs());
          }
        });
    if (!sane) OnLost();
  }
}

void ProcessWatch::TakeSample(ByteSpan record, uint32_t cpu) {
  PerfSample sample;
  if (!PerfSample::Parse(record, &sample)) return;
  const std::optional<uint16_t> number = TracepointNumber(sample.raw);
  const auto event = std::find_if(
      layout_.begin(), layout_.end(),
      [&](const auto& one) { return one.second.number == number; });
  if (event == layout_.end()) return;
  const auto value = [&](std::string_view name) {
    return TracepointValue(sample.raw, event->second.Field(name));
  };
  const auto text = [&](std::string_view name) {
    return std::string(
        TracepointText(sample.raw, event->second.Field(name)).value_or(""));
  };
  Happening happening;
  happening.time_ns = sample.time_ns;
  happening.tid = sample.tid;
  happening.pid = sample.pid;
  happening.cpu = cpu;
  if (event->first == "task/task_newtask") {
    happening.kind = Kind::kFork;
    happening.child_tid = static_cast<uint32_t>(value("pid").value_or(0));
    happening.clone_flags = value("clone_flags");
    const bool thread = (happening.clone_flags.value_or(0) & CLONE_THREAD) != 0;
    happening.child_pid = thread ? sample.pid : happening.child_tid;
  } else if (event->first == "sched/sched_process_exec") {
    happening.kind = Kind::kExec;
    happening.text = text("filename");
    happening.argv = ArgumentsOnStack(sample.rest);
  } else if (event->first == "sched/sched_process_exit") {
    happening.kind = Kind::kExit;
    const auto group = value("group_dead");
    happening.group_ended = group ? *group != 0 : sample.tid == sample.pid;
  } else if (event->first == "task/task_rename") {
    happening.kind = Kind::kComm;
    happening.text = text("newcomm");
    // execve(2) renames, too, and its own record says so.
    if (value("pid") != uint64_t{sample.tid}) return;
  } else {
    return;  // fork: task_newtask says more
  }
  batch_.push_back(std::move(happening));
}

void ProcessWatch::OnEvent(const ProcEvent& event) {
  std::lock_guard lock(told_mu_);
  if (!rings_.empty()) {
    // All but the status is known better.
    if (event.kind != ProcEvent::Kind::kExit) return;
    if (statuses_.size() >= kMaxTold) statuses_.clear();
    statuses_[event.tid] = event.exit_code;
    told_event_.Set();
    return;
  }
  Happening happening;
  happening.time_ns = event.time_ns;
  happening.tid = event.tid;
  happening.pid = event.pid;
  happening.cpu = event.cpu;
  switch (event.kind) {
    case ProcEvent::Kind::kFork:
      happening.kind = Kind::kFork;
      happening.child_tid = event.child_tid;
      happening.child_pid = event.child_pid;
      break;
    case ProcEvent::Kind::kExec:
      happening.kind = Kind::kExec;
      break;
    case ProcEvent::Kind::kComm:
      happening.kind = Kind::kComm;
      happening.text = std::string(event.comm);
      break;
    case ProcEvent::Kind::kExit:
      happening.kind = Kind::kExit;
      happening.status = event.exit_code;
      happening.group_ended = event.tid == event.pid;
      break;
    case ProcEvent::Kind::kSession:
      return;
  }
  if (told_.size() >= kMaxTold) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    sink_.NoteOverrun(1, event.time_ns, event.time_ns);
    return;
  }
  told_.push_back(std::move(happening));
  told_event_.Set();
}

void ProcessWatch::OnLost() {
  lost_.fetch_add(1, std::memory_order_relaxed);
  // Beside tracepoints it is statuses that are lost, and those are unknown.
  sink_.NoteOverrun(0, read_until_ns_, MonotonicNs());
}

uint64_t ProcessWatch::StartOf(uint32_t pid, uint64_t time_ns, bool is_new) {
  const auto found = start_ticks_.find(pid);
  if (!is_new && found != start_ticks_.end()) return found->second;
  uint64_t ticks = 0;
  // Not /proc/PID/stat: that sums up all threads of the process.
  const std::string stat = "task/" + std::to_string(pid) + "/stat";
  if (const auto text =
          ReadProcText(options_.proc, pid, stat.c_str(), kMaxText)) {
    ticks = ParseStartTime(*text).value_or(0);
  }
  if (ticks == 0 && is_new) {
    // It is gone. The kernel took the time a few microseconds before it told.
    timespec boot;
    timespec monotonic;
    ::clock_gettime(CLOCK_BOOTTIME, &boot);
    ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
    const int64_t slept = (boot.tv_sec - monotonic.tv_sec) * 1'000'000'000 +
                          (boot.tv_nsec - monotonic.tv_nsec);
    ticks = (time_ns + static_cast<uint64_t>(slept)) / kTickNs;
  }
  if (start_ticks_.size() >= kMaxKnown)
    start_ticks_.erase(start_ticks_.begin());
  start_ticks_[pid] = ticks;
  return ticks;
}

bool ProcessWatch::Describe(ProcessRecord* record, ProcessTexts* texts) {
  const uint32_t pid = record->process.pid;
  const auto status = ReadProcText(options_.proc, pid, "status", kMaxText);
  CallerInfo info;
  if (!status || !ParseStatus(*status, &info)) return false;
  record->ppid = info.ppid;
  record->ns_pid = InnerPidOf(*status);
  texts->comm = std::string(info.comm());
  record->comm = texts->comm;
  const auto take = [](std::optional<std::string> text, std::string* kept,
                       std::string_view* view) {
    if (!text) return false;
    *kept = *std::move(text);
    *view = *kept;
    return true;
  };
  bool whole = take(ReadProcText(options_.proc, pid, "cmdline", kMaxArguments),
                    &texts->argv, &record->argv);
  if (const auto text = ReadProcText(options_.proc, pid, "cgroup", kMaxText)) {
    whole &= take(CgroupOf(*text), &texts->cgroup, &record->cgroup);
  } else {
    whole = false;
  }
  if (look_) {
    whole &= take(look_(pid, LookFor::kExe), &texts->exe, &record->exe);
    whole &= take(look_(pid, LookFor::kCwd), &texts->cwd, &record->cwd);
    if (sink_.Wanted().environment) {
      whole &= take(look_(pid, LookFor::kEnvironment), &texts->environ,
                    &record->environ);
    }
  } else {
    whole = false;
  }
  return whole;
}

void ProcessWatch::TellFork(const Happening& happening, ProcessRecord* record) {
  record->child_tid = happening.child_tid;
  record->clone_flags = happening.clone_flags;
  record->child.pid = happening.child_pid;
  const bool process = happening.child_pid != happening.pid;
  record->child.start_ticks =
      StartOf(happening.child_pid, happening.time_ns, process);
  if (!process) return;
  if (const auto status = ReadProcText(options_.proc, happening.child_pid,
                                       "status", kMaxText)) {
    record->child_ns_pid = InnerPidOf(*status);
  }
}

void ProcessWatch::Tell(const Happening& happening) {
  ProcessRecord record;
  record.kind = happening.kind;
  record.time_ns = happening.time_ns;
  record.process.pid = happening.pid;
  record.process.start_ticks =
      StartOf(happening.pid, happening.time_ns, /*is_new=*/false);
  record.tid = happening.tid;
  record.cpu = happening.cpu;
  record.source =
      rings_.empty() ? ProcessSource::kConnector : ProcessSource::kPerf;
  ProcessTexts texts;
  switch (happening.kind) {
    case Kind::kFork:
      TellFork(happening, &record);
      break;
    case Kind::kExec:
      record.late = true;
      record.incomplete = !Describe(&record, &texts);
      record.program = happening.text;
      // Known from the call itself, also of who was gone by now.
      if (happening.argv) record.argv = *happening.argv;
      if (!happening.comm.empty()) record.comm = happening.comm;
      break;
    case Kind::kExit:
      // A process ends with its last thread, whichever that is.
      if (happening.group_ended) record.tid = happening.pid;
      if (!happening.group_ended && happening.tid == happening.pid) return;
      if (happening.status) SetStatus(*happening.status, &record);
      record.incomplete = !happening.status;
      break;
    case Kind::kComm:
      record.comm = happening.text;
      break;
    case Kind::kPipes:
    case Kind::kRunning:
      break;
  }
  Give(record);
  if (happening.kind == Kind::kExit && happening.group_ended) {
    start_ticks_.erase(happening.pid);
  }
}

void ProcessWatch::Give(const ProcessRecord& record) {
  records_.fetch_add(1, std::memory_order_relaxed);
  sink_.Take(record);
}

void ProcessWatch::TellRunning() {
  const UniqueFd here(
      ::openat(options_.proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!here) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(
      ::fdopendir(::fcntl(here.get(), F_DUPFD_CLOEXEC, 0)), &::closedir);
  if (list == nullptr) return;
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name(entry->d_name);
    uint32_t pid = 0;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data(), end, pid).ptr != end || pid == 0) continue;
    ProcessRecord record;
    record.kind = Kind::kRunning;
    record.process.pid = record.tid = pid;
    record.process.start_ticks = StartOf(pid, MonotonicNs(), false);
    ProcessTexts texts;
    record.incomplete = !Describe(&record, &texts);
    if (record.comm.empty()) continue;  // it ended
    record.late = true;
    record.source =
        rings_.empty() ? ProcessSource::kConnector : ProcessSource::kPerf;
    record.time_ns = MonotonicNs();
    Give(record);
  }
}

ProcessWatch::Stats ProcessWatch::GetStats() const {
  std::lock_guard lock(start_mu_);
  return {.source = source_,
          .why = why_,
          .records = records_.load(std::memory_order_relaxed),
          .lost = lost_.load(std::memory_order_relaxed)};
}

}  // namespace tracefs
