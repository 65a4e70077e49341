// From a config to tracers that are ready to be started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "drivers/output/output_folder.h"
#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/pipeline/tracer.h"
#include "tracefs/pipeline/wish.h"
#include "tracefs/rules/rule.h"
#include "tracefs/tracers/keep_plan.h"
#include "tracefs/tracers/trigger_tap.h"

namespace tracefs {

// A tracer that is ready to be started, with its output open. What the header
// says of machine and mount is still to be added.
struct TracerPlan {
  TracerParts parts;
  std::vector<OutputFileId> files;
  // To be set before the tracer starts: told of files that come and go.
  std::shared_ptr<OutputFileChange> file_change;
  std::shared_ptr<FlightControl> flight;  // null: no flight recorder
  std::optional<Filter> trigger;          // of its snapshots
  std::optional<KeepPlan> keep;           // what is destroyed, kept
  // The same filter as in `parts`, to come back to.
  std::optional<Filter> filter;
  // Where the filter stands, "file:line:column", and what its filters, the
  // trigger's and those of the rules are warned of (Filter::warnings).
  std::string filter_place;
  std::vector<std::string> warnings;
  // TracerKind::kRules only: the rules, and whose they are. Its output and its
  // id are still to be made.
  std::vector<Rule> rules;
  uint32_t rules_of = 0;
};

// The words that configs may use: all tables together.
ConfigSchema FullSchema();

// A tracer of a file, for rules of that file that name it.
struct FileTracer {
  std::string name;
  std::string output;  // its driver
  bool flight = false;
  bool fails_closed = false;  // when_full = fail
  uint32_t id = 0;            // 0: the next one that is planned
};
FileTracer FileTracerOf(const TracerConfig& config, uint32_t id);

// Where the tracers are that the rules of a config name.
struct RuleTargets {
  // All of the file that the config is a part of, in order. Null: the config
  // is all of it.
  const std::vector<FileTracer>* among = nullptr;
  // Or their ids, which are known already (TargetsOf), of the rules of the one
  // tracer there is.
  const std::vector<uint32_t>* known = nullptr;
};

struct TracerPlanOptions {
  const NameService* users = &SystemNameService();
  uint32_t first_id = 1;  // the others follow
  RuleTargets targets = {};
  // Files made for the outputs, as WishedFiles has them; null: made here.
  std::vector<UniqueFd>* files = nullptr;
  bool again = false;  // an earlier daemon had them (Given)
  OutputsStay stay = nullptr;
  // Makes and changes nothing: folders are looked at, keys are read, and the
  // plans cannot be started. It is refused what would be refused without.
  bool probe = false;
};

// Prepares the tracers of a config, all of them or none; behind them, those
// that feed their rules. Filters share `names`, which outlives them. Errors say
// "file:line:column: …".
Result<std::vector<TracerPlan>> PlanTracers(const Config& config,
                                            NameTable& names,
                                            TracerPlanOptions options);

// Checks all that can be checked without opening anything, and says which
// files PlanTracers would make, in its order.
Result<std::vector<Wish>> WishedFiles(const Config& config,
                                      const NameService& users,
                                      NameTable& names,
                                      RuleTargets targets = {});

}  // namespace tracefs
