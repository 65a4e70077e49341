// MetricsPage: what a mount's tracers have done, as OpenMetrics text
// (openmetrics.io, version 1.0). docs/metrics.md lists what is there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/format/aggregate.h"
#include "tracefs/mount/config_steering.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/pipeline/tracer_stats.h"
#include "tracefs/rules/rule_runner.h"
#include "tracefs/survive/area.h"
#include "tracefs/text/openmetrics.h"

namespace tracefs {

// Whether labels hold the names of files (not of commands, which any user sees
// in ps). They are what others keep in directories that only they can read; at
// a TCP port anybody of this machine reads the page.
class NamesInLabels {
 public:
  // They do.
  static NamesInLabels Shown() { return NamesInLabels(); }
  // They are replaced by labels that distinguish them for the life of this
  // object, and reveal nothing else.
  static NamesInLabels Withheld();

  std::string Label(const format::AggregateKeyPart& part) const;

 private:
  NamesInLabels() = default;
  std::optional<std::array<uint64_t, 2>> key_;  // random; none: shown
};

class MetricsPage {
 public:
  explicit MetricsPage(const NamesInLabels& names);

  void AddTracer(const TracerStats& stats);
  // An aggregate driver's counts for a key, of the tracer with that name.
  void AddTotal(std::string_view tracer_name,
                const format::AggregateRecord& record);

  void AddSurvival(const survive::Header& header);
  void AddSteering(const ConfigSteering& steering);
  void AddRule(const RuleTotals& rule);

  // All families, each with its samples together, and the end mark.
  std::string Text() const { return page_.Text(); }

 private:
  void Histogram(size_t id, const std::string& labels,
                 const format::HistogramRecord& histogram, int first_bit,
                 int last_bit, double unit);

  const NamesInLabels& names_;
  OpenMetricsPage page_;
};

// The page of a running mount. `steering` and `survives` may be null. Threads:
// any but a worker's handler.
std::string MetricsText(Pipeline& pipeline,
                        const std::vector<RuleTotals>& rules,
                        const NamesInLabels& names,
                        const ConfigSteering* steering,
                        survive::Area* survives);

}  // namespace tracefs
