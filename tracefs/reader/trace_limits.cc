#include "tracefs/reader/trace_limits.h"

#include <string_view>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/reader/event_filter.h"
#include "tracefs/reader/opaque_fields.h"

namespace tracefs::reader {

namespace {

constexpr char kMayBeOne[] =
    ": files that had one inode number, or one name, may be taken for one";

}  // namespace

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

std::string LimitOfFiles(const format::TraceContext& trace) {
  constexpr Op kNaming[] = {Op::create_, Op::mknod_,  Op::mkdir_,
                            Op::unlink_, Op::rename_, Op::link_};
  std::string missing;
  const std::string_view text =
      Trim(trace.description.header.Get("filter.text"));
  uint64_t wanted = UINT64_MAX;
  if (!text.empty()) {
    const auto filter = EventFilter::Compile(text, "filter");
    if (filter.ok()) wanted = (*filter)->wanted_ops();
  }
  for (const Op op : kNaming) {
    if ((wanted >> Index(op) & 1) != 0) continue;
    missing += (missing.empty() ? "" : " ") + std::string(OpName(op));
  }
  if (!missing.empty()) {
    return "its filter left out " + missing + kMayBeOne;
  }
  if (trace.stats.lost_events != 0) {
    return std::to_string(trace.stats.lost_events) + " operations were lost" +
           kMayBeOne;
  }
  return {};
}

}  // namespace tracefs::reader
