#include "drivers/output/remote/waiting.h"

namespace tracefs {
namespace {

// With kFail operations are refused once half of it is full; the other half is
// for what is never refused.
constexpr uint64_t kFailQueueBytes = uint64_t{64} << 20;

}  // namespace

Status CheckWaiting(const ConfigEntry& entry) {
  const LossPolicy policy = WaitingPolicy(entry);
  const auto only_with = [&](std::string_view option, bool allowed,
                             std::string_view what) {
    if (!entry.Has(option) || allowed) return Status::Ok();
    return Status::Invalid(entry.name + ": " + std::string(option) +
                           " belongs to when_full = " + std::string(what));
  };
  if (Status s = only_with("deadline", policy == LossPolicy::kBlock, "block");
      !s.ok()) {
    return s;
  }
  const bool spill = policy == LossPolicy::kSpill;
  if (Status s = only_with("max", spill, "spill"); !s.ok()) return s;
  if (Status s = only_with("queue", !spill,
                           "block, drop, degrade or fail; with spill, max "
                           "says how much may wait");
      !s.ok()) {
    return s;
  }
  if (spill && !entry.Has("max")) {
    return Status::Invalid(entry.name +
                           ": when_full = spill needs max = SIZE, the most "
                           "that may lie in the directory");
  }
  return Status::Ok();
}

Status ProbeWaiting(const ConfigEntry& entry) {
  if (!Spills(entry)) return Status::Ok();
  return SpillDirectory::Open(entry.Find("when_full")->value.argument).status();
}

RemoteOptions WaitingOf(const ConfigEntry& entry) {
  RemoteOptions options;
  options.when_full = WaitingPolicy(entry);
  options.buffer_bytes = entry.Number("buf");
  options.deadline = entry.Duration("deadline", options.deadline);
  options.limit_bytes = entry.Number(
      "queue", options.when_full == LossPolicy::kFail ? kFailQueueBytes
                                                      : options.limit_bytes);
  if (options.when_full == LossPolicy::kSpill) {
    options.limit_bytes = entry.Number("max");
  }
  options.link.timeout = entry.Duration("timeout", options.link.timeout);
  return options;
}

Status OpenSpill(const ConfigEntry& entry, Given* given,
                 RemoteOptions* options) {
  auto directory = SpillDirectory::Open(entry.Find("when_full")->value.argument,
                                        given->Take());
  if (!directory.ok()) return directory.status();
  options->spill = std::move(*directory);
  return Status::Ok();
}

}  // namespace tracefs
