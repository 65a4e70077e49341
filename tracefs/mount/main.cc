// tracefs-mount: mounts a directory over itself or elsewhere and traces it.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "tracefs/base/notice.h"
#include "tracefs/daemon/daemonize.h"
#include "tracefs/daemon/log.h"
#include "tracefs/mount/check.h"
#include "tracefs/mount/doctor.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/run.h"
#include "tracefs/mount/version.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

int Fail(const Status& status) {
  std::cerr << "tracefs-mount: " << status.message() << '\n';
  return ExitStatus(status);
}

// One mount, with its log.
int Serve(const MountOptions& options,
          const std::function<Status(Log&)>& ready) {
  const Result<std::unique_ptr<Log>> log =
      Log::Open(options.log, options.foreground);
  if (!log.ok()) return Fail(log.status());
  if (options.log.kind == LogPlace::Kind::kAuto &&
      (*log)->place().kind == LogPlace::Kind::kNone) {
    std::cerr << "tracefs-mount: no log: there is neither the journal nor "
                 "syslog; tracefs-ctl MNT stats tells of losses\n";
  }
  const Status status = Run(options, **log, [&] { return ready(**log); });
  if (status.ok()) return 0;
  if ((*log)->attended()) return Fail(status);
  // Nobody sees standard error any more.
  Notify(NoticeId::kFailed, "has ended: " + status.message());
  return ExitStatus(status);
}

int Main(int argc, char** argv) {
  const Result<MountOptions> options = ParseOptions(argc, argv);
  if (!options.ok()) return Fail(options.status());
  switch (options->command) {
    case MountOptions::Command::kHelp:
      std::cout << HelpText();
      return 0;
    case MountOptions::Command::kVersion:
      std::cout << VersionText();
      return 0;
    case MountOptions::Command::kCheck: {
      const Status status = CheckConfig(options->config, options->dot);
      return status.ok() ? 0 : Fail(status);
    }
    case MountOptions::Command::kDoctor: {
      const Status status = RunDoctor(options->source, options->fix, std::cout);
      return status.ok() ? 0 : Fail(status);
    }
    case MountOptions::Command::kMount:
      break;
  }
  if (options->foreground) {
    return Serve(*options, [](Log&) {
      std::cerr << "tracefs-mount: mounted\n";
      return Status::Ok();
    });
  }
  return Daemonize([&](const std::function<Status()>& ready) {
    return Serve(*options, [&ready](Log& log) {
      const Status status = ready();
      log.GoOn();
      return status;
    });
  });
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) { return tracefs::Main(argc, argv); }
