// The text format of Prometheus that came before OpenMetrics (version 0.0.4),
// for clients that do not ask for OpenMetrics: promtool, curl, older
// collectors.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// Converts a page made by OpenMetricsPage: the same samples in the same order,
// in families named like their samples.
std::string ClassicMetrics(std::string_view open_metrics);

}  // namespace tracefs
