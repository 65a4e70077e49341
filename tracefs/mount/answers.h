// The contents of a mount's answers to commands (docs/control-protocol.md), as
// JSON. Names of files, commands and filters in them need not be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/base/status.h"
#include "tracefs/control/handler.h"
#include "tracefs/fs/hold_lot.h"
#include "tracefs/fs/open_before.h"
#include "tracefs/keep/kept_folder.h"
#include "tracefs/mount/explain.h"
#include "tracefs/pipeline/tracer_stats.h"
#include "tracefs/process/process_table.h"
#include "tracefs/rules/rule_runner.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

using Json = nlohmann::ordered_json;

ControlAnswer Answer(const Json& json);

// `list`: one tracer.
Json ListJson(const TracerStats& stats, const TracerRegistry::Entry& entry);
// `stats`.
Json StatsJson(const TracerStats& stats);
Json StatsJson(const ProcessTable::Stats& stats);
Json StatsJson(const keep::KeptTotals& totals);
Json HelpersJson(const std::vector<HelperCounts>& helpers);
// `explain`. Tracers that feed rules represent those they belong to.
Json ChoiceJson(const ExplainedChoice& choice,
                const TracerRegistry::Entries& tracers);
Json OpenJson(const OpenBefore& before);
// `rules`: those of one tracer, appended to `rules`. At most `most` alarms are
// considered for each.
void AddRulesJson(const RuleRunner& runner, bool suspended, size_t most,
                  Json* rules);

// What a mount that has ended tells the client that asked for it: how it ended,
// and the final state of each tracer of a config. One line.
std::string EndLine(std::string_view end_reason, const Status& status,
                    const std::vector<TracerStats>& tracers);

// Of `held`: one that is held, and who waits for that.
Json HeldJson(const HoldLot::Held& held, const ClockPair& clock);

}  // namespace tracefs
