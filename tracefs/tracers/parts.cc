#include "tracefs/tracers/parts.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "drivers/assembly/aggregate.h"
#include "drivers/assembly/aggregate_spec.h"
#include "drivers/assembly/table.h"
#include "drivers/output/framing.h"
#include "tracefs/base/common_clock.h"

namespace tracefs {
namespace {

// What a screen rolls up, filters and drills into. A file is told apart for
// each process: what a busy mount has of these between two looks is in 8 MiB a
// thread, and what people look at in so many rows; of the rest operations and
// processes are told apart.
constexpr std::string_view kWatched =
    "by op errno uid pid ppid cname path; values count errors bytes latency; "
    "memory 8M";
constexpr size_t kWatchedRows = 2000;

}  // namespace

Result<TracerParts> BeginParts(TracerWish wish, Filter filter) {
  TracerParts parts;
  if (::getrandom(parts.serial.data(), parts.serial.size(), 0) !=
      static_cast<ssize_t>(parts.serial.size())) {
    return Status::System(errno, "random serial number");
  }
  parts.kind = wish.kind;
  parts.name = std::move(wish.name);
  parts.output_chain = std::move(wish.output_chain);
  format::TraceHeader& header = parts.header;
  header.clock = CommonClockPair();
  header.Set("filter.text", filter.text());
  header.Set("filter.dag", filter.general().Dump());
  header.Set("drivers", wish.drivers);
  header.Set("output.chain", parts.output_chain);
  parts.filter = std::make_unique<Filter>(std::move(filter));
  return parts;
}

Result<TracerParts> BeginOwnParts(TracerKind kind, const std::string& name,
                                  Filter filter) {
  Result<TracerParts> parts =
      BeginParts({.kind = kind,
                  .name = name,
                  .drivers = std::string(kDefaultAssembly),
                  .output_chain = name},
                 std::move(filter));
  if (parts.ok()) parts->assembly.push_back(MakeDefaultAssembly());
  return parts;
}

Result<TracerParts> BeginWatchParts(const std::string& name, Filter filter,
                                    uint64_t every_ns,
                                    const std::string& counted) {
  const std::string clauses = counted.empty() ? std::string(kWatched) : counted;
  Result<AggregateSpec> spec = ParseAggregateSpec(clauses, name, {});
  if (!spec.ok()) return spec.status();
  if (spec->every_ns != 0) {
    return Status::Invalid("aggregate: every is said by every_ms");
  }
  // Shorter than a config may ask for: it lives as long as somebody looks.
  spec->every_ns = every_ns;
  if (counted.empty()) {
    spec->top = kWatchedRows;
    spec->rest_without_files = true;
  }
  Result<TracerParts> parts =
      BeginParts({.kind = TracerKind::kTail,
                  .name = name,
                  .drivers = "aggregate = { " + clauses + " }",
                  .output_chain = name},
                 std::move(filter));
  if (parts.ok()) parts->assembly.push_back(MakeAggregate(*std::move(spec)));
  return parts;
}

void SetId(uint32_t id, TracerParts* parts) {
  parts->id = id;
  parts->header.tracer_id = id;
}

void PutDriver(const std::string& name, std::unique_ptr<OutputDriver> driver,
               TracerParts* parts) {
  PutFilter(name, MakeFraming(std::move(driver)), parts);
}

void PutFilter(const std::string& name, std::unique_ptr<OutputFilter> filter,
               TracerParts* parts) {
  auto& probes = parts->probes;
  probes.insert(probes.begin(), std::make_unique<StageProbe>(name));
  parts->output = Metered(*probes.front(), std::move(filter));
}

}  // namespace tracefs
