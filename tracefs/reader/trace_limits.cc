#include "tracefs/reader/trace_limits.h"

#include <string_view>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/reader/opaque_fields.h"

namespace tracefs::reader {

std::vector<std::string> LimitsOf(const format::TraceContext& trace) {
  constexpr size_t kMaxText = 200;
  std::vector<std::string> limits;
  const format::TraceHeader& header = trace.description.header;
  const auto shown = [](std::string_view text) {
    std::string line = Printable(Trim(text).substr(0, kMaxText));
    return Trim(text).size() > kMaxText ? line + "…" : line;
  };
  if (const auto filter = header.Get("filter.text"); !Trim(filter).empty()) {
    limits.push_back("only operations that match { " + shown(filter) +
                     " } were recorded");
  }
  const std::string_view visibility = header.Get("visibility");
  if (!visibility.empty() && visibility != "exact") {
    limits.push_back(
        "with visibility " + shown(visibility) +
        " not recorded: " + shown(header.Get("visibility.invisible")));
  }
  const format::ReadStats& stats = trace.stats;
  if (stats.lost_events != 0) {
    limits.push_back(std::to_string(stats.lost_events) +
                     " operations were lost");
  }
  if (stats.missing_blocks != 0 || stats.damaged_ranges != 0 ||
      stats.undecodable_blocks != 0 || stats.cut_bytes != 0) {
    limits.push_back("parts of the trace are missing or damaged");
  }
  if (std::string opaque = OpaqueAmong(UINT64_MAX, trace); !opaque.empty()) {
    limits.push_back(std::move(opaque));
  }
  return limits;
}

}  // namespace tracefs::reader
