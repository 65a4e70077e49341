// tracefs-mount: mounts a directory over itself or elsewhere and traces it.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "tracefs/mount/build_pipeline.h"
#include "tracefs/mount/check.h"
#include "tracefs/mount/daemonize.h"
#include "tracefs/mount/doctor.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/run.h"
#include "tracefs/mount/version.h"

namespace tracefs {
namespace {

int Fail(const Status& status) {
  std::cerr << "tracefs-mount: " << status.message() << '\n';
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
    const Status status = Run(*options, [] {
      std::cerr << "tracefs-mount: mounted\n";
      return Status::Ok();
    });
    return status.ok() ? 0 : Fail(status);
  }
  return Daemonize([&](const std::function<Status()>& ready) {
    const Status status = Run(*options, ready);
    return status.ok() ? 0 : Fail(status);
  });
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) { return tracefs::Main(argc, argv); }
