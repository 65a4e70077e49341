#include "tracefs/mount/check.h"

#include <iostream>

#include "tracefs/control/metrics_server.h"
#include "tracefs/daemon/seccomp_filter.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/mount/build_pipeline.h"
#include "tracefs/mount/version.h"

namespace tracefs {

Status CheckConfig(const std::string& config_file, bool dot) {
  Result<Config> config = LoadConfig(config_file, KnownNames());
  if (!config.ok()) return config.status();
  // Filters, drivers and their chains, as they will be built.
  NameTable built_names;
  const Result<std::vector<OutputFileWish>> built =
      WishedFiles(*config, SystemNameService(), built_names);
  if (!built.ok()) return built.status();
  NameTable names;
  int number = 0;
  for (const TracerConfig& tracer : config->tracers) {
    ++number;
    const Result<Filter> filter =
        CompileFilter(*config, tracer, SystemNameService(), names);
    if (!filter.ok()) return filter.status();
    if (Status s = CheckOutput(*config, tracer); !s.ok()) return s;
    const Result<std::vector<Rule>> rules =
        RulesOf(*config, static_cast<size_t>(number - 1), /*first_id=*/1,
                SystemNameService(), names);
    if (!rules.ok()) return rules.status();
    if (dot) {
      std::cout << filter->general().DumpDot(
          tracer.name.empty() ? "tracer_" + std::to_string(number)
                              : tracer.name);
      continue;
    }
    std::cout << "# tracer " << number;
    if (!tracer.name.empty()) std::cout << " (" << tracer.name << ')';
    std::cout << '\n' << filter->general().Dump();
    for (const Rule& rule : *rules) {
      std::cout << "# what the rule " << Quoted(rule.title) << " counts\n"
                << rule.what.general().Dump();
    }
    std::cout << ToText(tracer);
  }
  return Status::Ok();
}

std::string VersionText() {
  std::string text = std::string("tracefs ") + kVersion + "\nlibfuse " +
                     TRACEFS_LIBFUSE_VERSION + "\n";
  text += std::string("FUSE over io_uring: ") +
          (TRACEFS_HAVE_FUSE_URING ? "yes" : "no (libfuse without it)") + "\n";
  text += std::string("FUSE passthrough: ") +
          (TRACEFS_FUSE_AT_LEAST(17) ? "yes" : "no (libfuse before 3.17)") +
          "\n";
  text += std::string("--metrics: ") +
          (MetricsServer::Available() ? "yes" : "no (no libmicrohttpd)") + "\n";
  text += "system call filter: " + SeccompVersion() + "\n";
  return text;
}

}  // namespace tracefs
