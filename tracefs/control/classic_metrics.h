// The text format of Prometheus that came before OpenMetrics (version 0.0.4),
// for clients that do not ask for OpenMetrics: promtool, curl, older
// collectors.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// Of a page as OpenMetricsPage makes it: the same samples in the same order,
// under families that are called as their samples are.
std::string ClassicMetrics(std::string_view open_metrics);

}  // namespace tracefs
