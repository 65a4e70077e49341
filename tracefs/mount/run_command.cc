#include "tracefs/mount/run_command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include "filters/input/filter.h"
#include "tracefs/base/absolute_path.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/mount_table.h"
#include "tracefs/base/replacement.h"
#include "tracefs/base/string_literal.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/front.h"
#include "tracefs/mount/default_trace.h"
#include "tracefs/mount/mount_process.h"
#include "tracefs/mount/private_tree.h"
#include "tracefs/mount/process_feed.h"
#include "tracefs/mount/run_additions.h"
#include "tracefs/mount/run_signals.h"
#include "tracefs/mount/run_summary.h"
#include "tracefs/process/ptrace_companion.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

constexpr std::string_view kName = "tracefs-run";
constexpr int kNotFound = 127;
constexpr int kNotRunnable = 126;
constexpr int kSignalled = 128;
// Outputs may be slow; a mount in somebody else's hand never says that they are
// done.
constexpr std::chrono::seconds kPatienceForTraces{60};

void Say(const std::string& text) {
  std::cerr << kName << ": " << text << '\n';
  std::cerr.flush();
}

// --- The command to run. ----------------------------------------------------

// 0, or the exit status of a shell that cannot run it.
int CheckCommand(const std::string& name) {
  const auto status_of = [](const std::string& path) {
    struct stat st;
    if (::stat(path.c_str(), &st) != 0) {
      return errno == EACCES ? kNotRunnable : kNotFound;
    }
    if (S_ISDIR(st.st_mode)) errno = EISDIR;
    return S_ISDIR(st.st_mode) ||
                   ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0
               ? kNotRunnable
               : 0;
  };
  if (name.find('/') != name.npos) {
    const int status = status_of(name);
    if (status != 0) Say(TerminalWord(name) + ": " + ::strerror(errno));
    return status;
  }
  const char* const path = ::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  int worst = kNotFound;
  for (;;) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    const int status =
        status_of(folder.empty() ? name : std::string(folder) + '/' + name);
    if (status == 0) return 0;
    if (status == kNotRunnable) worst = status;
    if (folder.size() == rest.size()) break;
    rest.remove_prefix(folder.size() + 1);
  }
  Say(TerminalWord(name) +
      (worst == kNotFound ? ": no such command" : ": it may not be run"));
  return worst;
}

std::string Here() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

std::string AbsoluteTraceName(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

// Gives a file a name beside it that no other file has: "X.replaced".
Result<std::string> SetAside(const std::string& path) {
  constexpr int kMostTries = 1000;
  for (int i = 1; i <= kMostTries; ++i) {
    const std::string aside =
        NameBeside(path, ".replaced" + (i == 1 ? "" : "-" + std::to_string(i)));
    if (RenameToFree(path, aside)) return aside;
    if (errno == EEXIST) continue;
    // Where neither such a rename nor hard links are known.
    struct stat there;
    if (::lstat(aside.c_str(), &there) == 0) continue;
    if (errno == ENOENT && ::rename(path.c_str(), aside.c_str()) == 0) {
      return aside;
    }
    break;
  }
  return Status::System(errno, "--force: " + TerminalWord(path));
}

// As it can be written in the directory `here`.
std::string NameFrom(const std::string& here, const std::string& path) {
  std::string_view below = path;
  if (!TakeFolder(here, &below) || below == "/") return path;
  return std::string(below.substr(1));
}

std::string ConfigText(const RunOptions& options, const std::string& trace) {
  const std::string processes = !options.processes    ? ""
                                : options.environment ? " | STR_ENVIRONMENT"
                                                      : " | STR_PROCESS";
  return "{\n{ " + FilterOr(options.filter) + "\n}\n{ stream = { STR_ALL" +
         processes +
         " } }\n{ compress; file = " + StringLiteral(WithoutPatterns(trace)) +
         " }\n}\n";
}

// Before anything is mounted, and with the place in the filter itself.
Status CheckFilter(const std::string& text) {
  NameTable names;
  const Result<Filter> filter =
      Filter::Compile(text, {.file = "--filter"}, SystemNameService(), names);
  if (!filter.ok()) return filter.status();
  for (const std::string& warning : filter->warnings()) Say(warning);
  return Status::Ok();
}

// --- The command. ----------------------------------------------------------

// In the child: never returns.
[[noreturn]] void BecomeCommand(const RunOptions& options,
                                const std::string& here,
                                const std::string& mount_point, int go,
                                int failed) {
  const auto fail = [failed](const std::string& text, int error) {
    static_cast<void>(::write(failed, &error, sizeof error));
    static_cast<void>(::write(failed, text.data(), text.size()));
    ::_exit(kNotRunnable);
  };
  // Work on the way there is done for the command, which takes over its pid.
  const std::string& name = options.command[0];
  ::prctl(PR_SET_NAME, name.c_str() + name.rfind('/') + 1);
  // Everything from here on is recorded after its start.
  char byte;
  while (::read(go, &byte, 1) < 0 && errno == EINTR) {
  }
  if (options.root) {
    if (Status s = MakeRoot(mount_point); !s.ok()) fail(s.message(), EIO);
  }
  // The same directory, through the mount now.
  if (::chdir(here.c_str()) != 0) {
    fail(Status::System(errno, here).message(), EIO);
  }
  std::vector<char*> argv;
  for (const std::string& word : options.command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  fail(Status::System(error, options.command[0]).message(), error);
  ::_exit(kNotRunnable);
}

class Runner {
 public:
  explicit Runner(const RunOptions& options) : options_(options) {}

  int Run();

 private:
  Status Prepare();
  Status ChooseTrace();
  Status Mount();
  Status Begin();
  void OnCommand(int status);
  // Waits for `command_`, and for all its descendants if requested.
  void WaitForAll();
  Status PrepareAdditions();
  void Add(bool goes_on);
  void End();
  int Finish();
  bool Unmount() const;
  void UnmountBelow() const;
  void EndReplacing(bool made);

  const RunOptions& options_;
  std::string here_;
  std::string source_;
  std::string mount_point_;
  std::string trace_;     // empty with --config
  std::string replaced_;  // the one that was there, until there is another
  std::unique_ptr<ProcessFeed> feed_;
  std::optional<MountProcess> mount_;
  pid_t command_ = -1;
  std::unique_ptr<PtraceCompanion> companion_;
  UniqueFd failed_;    // tells why the command could not be run
  std::string added_;  // to the trace of that name, and what it came to
  std::string added_to_;
  UniqueFd folder_;  // what is traced, below the mount
  std::string remark_;
  uint64_t begin_ns_ = 0;
  uint64_t end_ns_ = 0;
  bool ended_ = false;
  bool mount_gone_ = false;
  int exit_status_ = 3;
  bool still_mounted_ = false;
};

Status Runner::Prepare() {
  here_ = Here();
  if (here_.empty()) {
    return Status::System(errno, "the directory this was started in");
  }
  std::array<char, PATH_MAX> resolved;
  if (::realpath(options_.source.c_str(), resolved.data()) == nullptr) {
    return Status::System(errno, "--src " + TerminalWord(options_.source));
  }
  source_ = resolved.data();
  struct stat st;
  if (::stat(source_.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) {
    return Status::System(ENOTDIR, "--src " + TerminalWord(options_.source));
  }
  if (!options_.root && source_ == "/") {
    return Status::Invalid(
        "--src / is all there is; next: --root records it, --src DIR a part");
  }
  if (options_.config.empty()) {
    if (Status s = ChooseTrace(); !s.ok()) return s;
    if (!options_.filter.empty()) {
      if (Status s = CheckFilter(options_.filter); !s.ok()) return s;
    }
  }
  Result<std::unique_ptr<ProcessFeed>> feed = ProcessFeed::Create();
  if (!feed.ok()) return feed.status();
  feed_ = std::move(*feed);
  return options_.additions.any() ? PrepareAdditions() : Status::Ok();
}

Status Runner::PrepareAdditions() {
  added_to_ = trace_;
  if (!options_.config.empty()) {
    const Result<std::string> trace =
        TraceOfConfig(AbsoluteTraceName(options_.config), options_.additions);
    if (!trace.ok()) return trace.status();
    added_to_ = AbsoluteTraceName(*trace);
  }
  folder_.Reset(::open(source_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return Status::System(errno, TerminalWord(source_));
  feed_->WillAdd();
  return {};
}

void Runner::Add(bool goes_on) {
  if (added_to_.empty()) return;
  added_ = AddToTrace(options_.additions, added_to_, std::move(folder_),
                      goes_on, *feed_);
}

Status Runner::ChooseTrace() {
  if (options_.output.empty()) {
    const Result<std::string> chosen = NewTraceOf(source_, here_);
    if (!chosen.ok()) return chosen.status();
    trace_ = AbsoluteTraceName(*chosen);
    return {};
  }
  trace_ = AbsoluteTraceName(options_.output);
  struct stat there;
  if (::lstat(trace_.c_str(), &there) != 0) return {};
  if (!options_.force) {
    return Status::SystemSaid(EEXIST, TerminalWord(options_.output) +
                                          ": it is there already; choose "
                                          "another name, or replace it with "
                                          "--force");
  }
  if (!S_ISREG(there.st_mode)) return {};  // what the driver says of it
  // It comes back if nothing is recorded after all.
  Result<std::string> aside = SetAside(trace_);
  if (!aside.ok()) return aside.status();
  replaced_ = *std::move(aside);
  return {};
}

void Runner::EndReplacing(bool made) {
  if (replaced_.empty()) return;
  if (made) {
    ::unlink(replaced_.c_str());
  } else {
    ::rename(replaced_.c_str(), trace_.c_str());
  }
  replaced_.clear();
}

Status Runner::Mount() {
  MountOptions options;
  options.source = source_;
  options.mounts_below = true;
  options.variables = options_.variables;
  options.visibility = options_.visibility;
  options.transport = options_.transport;
  options.sandbox = options_.sandbox != "off";
  options.file_handles = options_.sandbox != "strict";
  options.log.kind = LogPlace::Kind::kStderr;
  if (options_.config.empty()) {
    options.config_text = ConfigText(options_, trace_);
  } else {
    options.config = AbsoluteTraceName(options_.config);
  }
  if (Status s = EnterPrivateMounts(); !s.ok()) return s;
  mount_point_ = source_;
  if (options_.root) {
    std::string name = "/tmp/tracefs-run.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return Status::System(errno, name);
    mount_point_ = name;
  }
  options.mount_point = mount_point_;
  if (options_.root) options.shown_at = "/";
  Result<MountProcess> mount = MountProcess::Start(options, *feed_);
  if (!mount.ok()) {
    if (options_.root) ::rmdir(mount_point_.c_str());
    return mount.status();
  }
  mount_.emplace(std::move(*mount));
  feed_->BecomeSender();
  if (options_.verbose) std::cerr << mount_->Words();
  return Status::Ok();
}

Status Runner::Begin() {
  std::array<int, 2> go;
  std::array<int, 2> failed;
  if (::pipe2(go.data(), O_CLOEXEC) != 0 ||
      ::pipe2(failed.data(), O_CLOEXEC) != 0) {
    return Status::System(errno, "pipe");
  }
  const UniqueFd go_read(go[0]);
  UniqueFd go_write(go[1]);
  failed_.Reset(failed[0]);
  UniqueFd failed_write(failed[1]);
  std::cout.flush();
  begin_ns_ = MonotonicNs();
  command_ = ::fork();
  if (command_ < 0) return Status::System(errno, "fork");
  if (command_ == 0) {
    go_write.Reset();
    if (!options_.processes) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    BecomeCommand(options_, here_, mount_point_, go_read.get(),
                  failed_write.get());
  }
  failed_write.Reset();
  LeaveSignalsTo(command_);
  const ProcessNeeds wanted = feed_->Wanted();
  if (options_.processes && wanted.records) {
    companion_ = std::make_unique<PtraceCompanion>(PtraceCompanion::Options{
        .environment = wanted.environment,
        .let_go = options_.let_go,
        .take = [this](ProcessRecord& record) { feed_->Send(record); },
        .changed = [this](uint32_t tid) { feed_->TellChanged(tid); }});
    if (Status s = companion_->Seize(command_); !s.ok()) {
      // A debugger, another tracefs-run or a policy is in the way.
      companion_.reset();
      remark_ = "not followed: " + s.message();
      Say("processes are not recorded: " + s.message());
    }
  }
  const char byte = 1;
  static_cast<void>(::write(go_write.get(), &byte, 1));
  return Status::Ok();
}

void Runner::OnCommand(int status) {
  ended_ = true;
  end_ns_ = MonotonicNs();
  CommandHasEnded();
  exit_status_ =
      WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

void Runner::WaitForAll() {
  // Processes that ended before the command are recorded; those that go on
  // forever are not waited for.
  constexpr int kMostAfterTheEnd = 10000;
  for (int left = kMostAfterTheEnd; left > 0 && !ToldToEnd();) {
    const bool last =
        ended_ && (!options_.follow_daemons || companion_ == nullptr ||
                   companion_->live() == 0);
    if (last) --left;
    int status = 0;
    const int wait = __WALL | WUNTRACED | (last ? WNOHANG : 0);
    const pid_t tid = ::waitpid(-1, &status, wait);
    if (tid < 0 && errno == EINTR) continue;
    if (tid <= 0) return;
    if (tid == mount_->pid()) {
      // If it ended, the command goes on, with errors. A stop is no end.
      if (!WIFSTOPPED(status)) mount_gone_ = true;
      continue;
    }
    // When the command stops, so do we: our parent sees it and resumes both.
    const bool followed = companion_ != nullptr && companion_->follows(tid);
    const bool stopped =
        WIFSTOPPED(status) && StopsBoth(WSTOPSIG(status)) &&
        (!followed || status >> 16 == PtraceCompanion::kStopEvent);
    if (companion_ != nullptr) {
      static_cast<void>(companion_->Handle(tid, status));
    }
    if (ended_ || tid != command_) continue;
    if (stopped) {
      StopAsTold();
    } else if (WIFEXITED(status) || WIFSIGNALED(status)) {
      OnCommand(status);
    }
  }
}

// What the command has mounted below and nobody uses any more.
void Runner::UnmountBelow() const {
  const std::vector<MountLine> table = MountTable();
  for (auto line = table.rbegin(); line != table.rend(); ++line) {
    if (line->point == mount_point_) return;  // before that it was another's
    std::string_view below = line->point;
    if (TakeFolder(mount_point_, &below)) {
      ::umount2(line->point.c_str(), UMOUNT_NOFOLLOW);
    }
  }
}

// True if nothing is mounted any more. A process that has just ended may hold
// its files for a moment.
bool Runner::Unmount() const {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    UnmountBelow();
    if (::umount2(mount_point_.c_str(), UMOUNT_NOFOLLOW) == 0) return true;
    if (errno == EINVAL) return true;  // somebody was faster
    if (errno != EBUSY) break;
    if (companion_ != nullptr && companion_->live() != 0) break;
    ::usleep(2000);
  }
  return false;
}

void Runner::End() {
  std::vector<std::string> left;
  LeaveSignalsToKernel();
  if (companion_ != nullptr) left = companion_->Names();
  if (mount_gone_) {
    // A process that still has it as its root has its own namespace.
    if (options_.root) {
      ::umount2(mount_point_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    return;
  }
  bool unmounted = left.empty() && Unmount();
  // Without a companion only the mount knows that a process is left.
  while (!unmounted && options_.follow_daemons && companion_ == nullptr) {
    unmounted = Unmount();
  }
  // Goodbye comes last: if this process is killed before, the mount ends
  // itself.
  if (unmounted) {
    Add(/*goes_on=*/false);
    feed_->SayGoodbye();
    feed_->Close();
  } else {
    // Remaining processes keep the mount until they end; no other sees it. The
    // traces end now.
    Add(/*goes_on=*/true);
    const bool ended = feed_->EndTraces(kPatienceForTraces);
    ::umount2(mount_point_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    still_mounted_ = true;
    feed_->SayGoodbye();
    if (companion_ != nullptr) companion_->LetAllGo();
    const std::string who = JoinWords(
        left, ", ", [](const std::string& name) { return TerminalText(name); });
    remark_ = left.empty() ? "others still use the mount"
                           : "left behind, from here on not recorded: " + who;
    if (!ended) remark_ += "; the mount does not say that the traces are whole";
  }
}

int Runner::Finish() {
  // Why it could not be run, if it could not.
  std::array<char, 1024> words;
  int error = 0;
  const ssize_t n = ::read(failed_.get(), words.data(), words.size());
  if (n >= static_cast<ssize_t>(sizeof error)) {
    std::copy_n(words.data(), sizeof error, reinterpret_cast<char*>(&error));
    Say(std::string(words.data() + sizeof error,
                    static_cast<size_t>(n) - sizeof error));
    exit_status_ = error == ENOENT ? kNotFound : kNotRunnable;
  }
  int mount_status = 0;
  if (!still_mounted_ && !mount_gone_) mount_status = mount_->Wait();
  if (options_.root) ::rmdir(mount_point_.c_str());
  if (mount_gone_ || mount_status != 0) {
    Say("the mount ended with an error, and the trace may not be complete:");
    std::cerr << mount_->Words();
  }
  if (options_.quiet) return exit_status_;
  if (trace_.empty()) {
    std::cerr << mount_->Words();
    if (!added_.empty()) Say(added_);
    return exit_status_;
  }
  if (companion_ != nullptr && companion_->counts().let_go != 0) {
    AppendWord(std::to_string(companion_->counts().let_go) +
                   " that trace others were let go",
               "; ", &remark_);
  }
  const Result<std::string> summary =
      SummaryOf(trace_, {.elapsed_ns = end_ns_ - begin_ns_,
                         .command = JoinWords(options_.command, " "),
                         .trace = NameFrom(here_, trace_),
                         .processes = remark_,
                         .added = added_});
  if (!summary.ok()) {
    Say(summary.status().message());
  } else {
    std::cerr << *summary << " trace: " << TerminalText(trace_) << "\n";
  }
  return exit_status_;
}

int Runner::Run() {
  if (const int status = CheckCommand(options_.command[0]); status != 0) {
    return status;
  }
  Status status = Prepare();
  if (status.ok()) status = Mount();
  EndReplacing(/*made=*/status.ok());
  if (!status.ok()) return tracefs::Finish(kName, status);
  if (Status s = Begin(); !s.ok()) {
    static_cast<void>(tracefs::Finish(kName, s));
    End();
    return 3;
  }
  WaitForAll();
  End();
  return Finish();
}

}  // namespace

int RunCommandTraced(const RunOptions& options) {
  return Runner(options).Run();
}

}  // namespace tracefs
