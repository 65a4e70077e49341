// tracefs-mount: mounts a directory over itself or elsewhere and traces it.
// And tracefs-run, which does that around a command.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tracefs/base/file_io.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/called_as.h"
#include "tracefs/command/front.h"
#include "tracefs/daemon/daemonize.h"
#include "tracefs/daemon/log.h"
#include "tracefs/mount/check.h"
#include "tracefs/mount/default_trace.h"
#include "tracefs/mount/doctor.h"
#include "tracefs/mount/named_things.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/run.h"
#include "tracefs/mount/run_command.h"
#include "tracefs/mount/run_options.h"
#include "tracefs/survive/hand_over.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/shell_word.h"
#include "tracefs/text/units.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

constexpr std::string_view kName = "tracefs-mount";
constexpr size_t kMaxRulesBytes = size_t{1} << 20;  // as of a config

// One mount, with its log.
int Serve(const MountOptions& options,
          const std::function<Status(Log&)>& ready) {
  const Result<std::unique_ptr<Log>> log =
      Log::Open(options.log, options.foreground);
  if (!log.ok()) return Finish(kName, log.status());
  const Status status = Run(options, **log, [&] {
    if (options.log.kind == LogPlace::Kind::kAuto &&
        (*log)->place().kind == LogPlace::Kind::kNone) {
      std::cerr << "tracefs-mount: no log: there is neither the journal nor "
                   "syslog; tracefs-ctl MNT stats tells of losses\n";
    }
    return ready(**log);
  });
  if (status.ok()) return 0;
  if ((*log)->attended()) return Finish(kName, status);
  // Standard error is not visible any more.
  Notify(NoticeId::kFailed, "has ended: " + status.message());
  return ExitStatus(status);
}

// The rights and files that count are the caller's, not the daemon's: so
// tracefs-ctl does it. Returns only if it cannot.
Status Reload(const MountOptions& options) {
  const std::string program = ControlProgram();
  std::vector<const char*> words = {program.c_str(),
                                    options.mount_point.c_str(), "reload"};
  if (!options.config.empty()) words.push_back(options.config.c_str());
  words.push_back(nullptr);
  ::execv(program.c_str(), const_cast<char* const*>(words.data()));
  return Status::System(errno, "'" + program + "'");
}

// What a mount without a config records, and where to.
Status RecordAll(MountOptions* options) {
  const std::string traced = Resolved(options->source);
  const Result<std::string> trace = NewTraceOf(traced);
  if (!trace.ok()) return trace.status();
  std::string rules;
  if (!options->rules.empty()) {
    const UniqueFd file(::open(options->rules.c_str(), O_RDONLY | O_CLOEXEC));
    const std::string name = TerminalWord(options->rules);
    if (!file) return Status::System(errno, "--rules " + name);
    Result<std::string> text = ReadText(file.get(), kMaxRulesBytes, name);
    if (!text.ok()) return text.status();
    rules = *std::move(text);
  }
  options->trace = *trace;
  options->config_text = MountConfigText(*trace, rules);
  return Status::Ok();
}

// While a terminal is still there.
void TellWhereItGoes(const MountOptions& options) {
  if (options.trace.empty()) return;
  std::cerr << "tracefs-mount: recording to " << TerminalWord(options.trace)
            << ", at most " << SizeText(kDefaultPartBytes * kDefaultParts)
            << "; next: tracefs-ctl " << ShellPath(options.mount_point)
            << " unmount\n";
}

int Main(MountOptions options) {
  switch (options.command) {
    case MountOptions::Command::kCheck:
      return Finish(
          kName, CheckConfig(options.config, options.dot, options.visibility));
    case MountOptions::Command::kDoctor:
      return Finish(kName, RunDoctor(options.source, options.fix, std::cout));
    case MountOptions::Command::kReload:
      return Finish(kName, Reload(options));
    case MountOptions::Command::kMount:
      break;
  }
  if (options.records_all) {
    if (Status s = RecordAll(&options); !s.ok()) return Finish(kName, s);
  }
  if (options.foreground) {
    return Serve(options, [&options](Log&) {
      TellWhereItGoes(options);
      std::cerr << "tracefs-mount: mounted\n";
      return Status::Ok();
    });
  }
  return Daemonize([&](const std::function<Status()>& ready) {
    return Serve(options, [&](Log& log) {
      TellWhereItGoes(options);
      const Status status = ready();
      log.GoOn();
      return status;
    });
  });
}

// Another program has left us its mount.
int TakeOver(const survive::Inheritance& left,
             const Result<MountOptions>& options) {
  ::prctl(PR_SET_NAME, survive::IsTrial(left) ? "tracefs-trial" : kName.data(),
          0, 0, 0);
  SetSignals();
  if (!options.ok()) {
    survive::Decline(left, nullptr, options.status().message());
  }
  const Result<std::unique_ptr<Log>> log =
      Log::Open(options->log, options->foreground);
  if (!log.ok()) survive::Decline(left, nullptr, log.status().message());
  const Status status = GoOn(*options, **log, left);
  if (status.ok()) return 0;
  Notify(NoticeId::kFailed, "has ended: " + status.message());
  return ExitStatus(status);
}

int MountMain(int argc, char** argv) {
  if (const auto left = survive::Inheritance::OfProcess()) {
    return TakeOver(*left, ParseOptions(argc, argv));
  }
  return RunCommand({kName, &MountHelp, &VersionText}, ParseOptions(argc, argv),
                    &Main);
}

int RunMain(int argc, char** argv) {
  return RunCommand(
      {.name = "tracefs-run", .help = &RunHelp, .leaves_signals = true},
      ParseRunOptions(argc, argv), &RunCommandTraced);
}

// CMakeLists.txt makes the other name.
constexpr CalledAs kCommands[] = {
    {kName, &MountMain},
    {"tracefs-run", &RunMain},
};

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return WhatWeAreCalled(kCommands, argc, argv).main(argc, argv);
}
