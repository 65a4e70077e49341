#include "tracefs/query/process_numbers.h"

#include "tracefs/build/record_step.h"
#include "tracefs/query/analysis.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {
namespace {

// Numbers of the tracker are below.
constexpr ProcessNumbers::Number kOwnNumbers = uint64_t{1} << 63;

// `number`: build::Process::number.
ProcessNumbers::Found FoundOf(build::ProcessId id, uint32_t number) {
  return {.number = uint64_t{id} + 1,
          .pid = number & ((1u << ProcessKey::kPidBits) - 1),
          .earlier = number >> ProcessKey::kPidBits};
}

}  // namespace

void ProcessNumbers::Listener::ProcessBegan(const build::Process& process) {
  ++all_.begun_;
  if (process.key.start_ticks == 0) return;
  all_.by_start_.try_emplace(KeyOf(process.key),
                             FoundOf(process.id, process.number));
}

void ProcessNumbers::Listener::Did(const build::Process& process,
                                   const build::FileStep& /*step*/) {
  all_.found_ = FoundOf(process.id, process.number);
}

void ProcessNumbers::Listener::DidWithout(build::ProcessId id, uint32_t number,
                                          const build::FileStep& step) {
  all_.found_ =
      id != build::kNobody ? FoundOf(id, number) : all_.FoundLate(step.process);
}

// What was done by a process before another one got its pid, and is told after
// that; or there was no room to follow it.
ProcessNumbers::Found ProcessNumbers::FoundLate(const ProcessKey& key) const {
  const auto known = by_start_.find(KeyOf(key));
  if (known != by_start_.end()) return known->second;
  return {
      .number = kOwnNumbers | MixedHash(key.Upid() ^ MixedHash(key.machine)),
      .pid = key.pid};
}

void ProcessNumbers::Take(const ProcessRecord& record) {
  RecentOf(record.process) = RecentOf(record.child) = {};
  const bool forks = record.kind == ProcessRecord::Kind::kFork;
  if (!HasRoom(record.process) || (forks && !HasRoom(record.child))) return;
  tracker_.Take(record);
}

ProcessNumbers::Found ProcessNumbers::Of(const format::Record& record) {
  if (record.event.GetOr0(Field::kPid) == 0) return {};
  const ProcessKey key = build::CallerOf(record);
  Recent& recent = RecentOf(key);
  if (recent.key == key) return recent.found;
  if (HasRoom(key)) {
    build::FileStep step;
    build::SetCaller(record, &step);
    step.time_ns = record.event.GetOr0(Field::kTime);
    step.duration_ns = record.event.GetOr0(Field::kLatency);
    tracker_.Take(step);
  } else {
    found_ = FoundLate(key);
  }
  recent = {key, found_};
  return found_;
}

}  // namespace tracefs::query
