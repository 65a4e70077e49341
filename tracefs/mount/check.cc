#include "tracefs/mount/check.h"

#include <iostream>

#include "tracefs/base/version.h"
#include "tracefs/broker/spec.h"
#include "tracefs/control/metrics_server.h"
#include "tracefs/daemon/seccomp_filter.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {

Status CheckConfig(const std::string& config_file, bool dot,
                   Visibility visibility) {
  const Result<Config> config = LoadConfig(config_file, FullSchema());
  if (!config.ok()) return config.status();
  NameTable names;
  // As the mount does it, without making anything.
  const Result<std::vector<TracerPlan>> plans =
      PlanTracers(*config, names, {.probe = true});
  if (!plans.ok()) return plans.status();
  for (const std::string& warning :
       WarningsOf(*plans, {.forwards_locks = NamesLocks(*plans),
                          .visibility = VisibilityName(visibility)})) {
    std::cerr << "tracefs-mount: " << warning << '\n';
  }
  for (size_t i = 0; i < config->tracers.size(); ++i) {
    const TracerConfig& tracer = config->tracers[i];
    const std::string number = std::to_string(i + 1);
    const Program& program = (*plans)[i].filter->general();
    if (dot) {
      std::cout << program.DumpDot(tracer.name.empty() ? "tracer_" + number
                                                       : tracer.name);
      continue;
    }
    std::cout << "# tracer " << number;
    if (!tracer.name.empty()) std::cout << " (" << tracer.name << ')';
    std::cout << '\n' << program.Dump();
    for (const TracerPlan& plan : *plans) {
      if (plan.rules_of != i + 1) continue;
      for (const Rule& rule : plan.rules) {
        std::cout << "# what the rule " << Quoted(rule.title) << " counts\n"
                  << rule.what.general().Dump();
      }
    }
    std::cout << ToText(tracer);
  }
  return Status::Ok();
}

std::string VersionText() {
  std::string text = "tracefs " + std::string(kVersion) + "\nlibfuse " +
                     TRACEFS_LIBFUSE_VERSION + "\n";
  text += std::string("FUSE over io_uring: ") +
          (TRACEFS_HAVE_FUSE_URING ? "yes" : "no (libfuse without it)") + "\n";
  text += std::string("FUSE passthrough: ") +
          (TRACEFS_FUSE_AT_LEAST(17) ? "yes" : "no (libfuse before 3.17)") +
          "\n";
  text += std::string("--metrics: ") +
          (MetricsServer::Available() ? "yes" : "no (no libmicrohttpd)") + "\n";
  const std::string nats = BrokerLibrary(BrokerKind::kNats);
  text += "output to NATS: " + (nats.empty() ? "no (no libnats)" : nats) + "\n";
  const std::string kafka = BrokerLibrary(BrokerKind::kKafka);
  text += "output to Kafka: " + (kafka.empty() ? "no (no librdkafka)" : kafka) +
          "\n";
  text += "system call filter: " + SeccompVersion() + "\n";
  return text;
}

}  // namespace tracefs
