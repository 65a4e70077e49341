#include "tracefs/tracers/orders.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

#include "filters/input/filter.h"
#include "tracefs/base/append_le.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/notice.h"
#include "tracefs/survive/kept_text.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/survives.h"

namespace tracefs {

using survive::OrderRecord;
using survive::TraceRecord;

namespace {

// The first one had no targets.
constexpr uint32_t kVersion = 2;
// Flags.
constexpr uint32_t kRemoved = 1;
constexpr uint32_t kSuspended = 2;
constexpr uint32_t kOtherFilter = 4;

void PutText(std::string_view text, std::string* out) {
  AppendLe(static_cast<uint32_t>(text.size()), out);
  out->append(text);
}

void PutNames(const KnownNames& names, std::string* out) {
  for (const KnownNames::Table* const table :
       {&names.users(), &names.groups()}) {
    AppendLe(static_cast<uint32_t>(table->size()), out);
    for (const auto& [name, number] : *table) {
      PutText(name, out);
      AppendLe(number, out);
    }
  }
}

bool TakeText(ByteCursor& bytes, std::string* text) {
  const auto size = bytes.TakeLe<uint32_t>();
  const auto taken = size ? bytes.Take(*size) : std::nullopt;
  if (!taken) return false;
  *text = AsText(*taken);
  return true;
}

bool TakeNames(ByteCursor& bytes, KnownNames* names) {
  std::array<KnownNames::Table, 2> tables;
  for (KnownNames::Table& table : tables) {
    const auto count = bytes.TakeLe<uint32_t>();
    if (!count) return false;
    for (uint32_t i = 0; i < *count; ++i) {
      std::string name;
      if (!TakeText(bytes, &name)) return false;
      const auto number = bytes.TakeLe<uint64_t>();
      if (!number) return false;
      table.emplace(std::move(name), *number);
    }
  }
  *names = KnownNames(std::move(tables[0]), std::move(tables[1]));
  return true;
}

// To the end.
bool TakeTargets(ByteCursor& bytes, std::vector<uint32_t>* targets) {
  const auto count = bytes.TakeLe<uint32_t>();
  if (!count || bytes.left() != uint64_t{*count} * sizeof(uint32_t)) {
    return false;
  }
  while (const auto target = bytes.TakeLe<uint32_t>()) {
    targets->push_back(*target);
  }
  return true;
}

Result<Config> ParseOrdered(const Order& order) {
  Result<Config> config = ParseConfig(order.config, order.file, FullSchema());
  if (config.ok() && config->tracers.size() != 1) {
    return Status::Invalid(order.file + ": not one tracer");
  }
  return config;
}

}  // namespace

std::string Order::Encode() const {
  std::string bytes;
  AppendLe(kVersion, &bytes);
  AppendLe(id, &bytes);
  AppendLe((removed ? kRemoved : 0) | (suspended ? kSuspended : 0) |
               (filter ? kOtherFilter : 0),
           &bytes);
  bytes.append(AsText(serial));
  PutText(config, &bytes);
  PutText(file, &bytes);
  PutNames(names, &bytes);
  PutText(filter.value_or(std::string()), &bytes);
  PutNames(filter_names, &bytes);
  AppendLe(static_cast<uint32_t>(targets.size()), &bytes);
  for (const uint32_t target : targets) AppendLe(target, &bytes);
  return bytes;
}

std::optional<Order> Order::Decode(std::string_view text) {
  ByteCursor bytes(AsBytes(text));
  Order order;
  const auto version = bytes.TakeLe<uint32_t>();
  const auto id = bytes.TakeLe<uint32_t>();
  const auto flags = bytes.TakeLe<uint32_t>();
  const auto serial = bytes.Take(order.serial.size());
  std::string filter;
  if (!version || *version == 0 || *version > kVersion || !id || *id == 0 ||
      !flags || !serial || !TakeText(bytes, &order.config) ||
      !TakeText(bytes, &order.file) || !TakeNames(bytes, &order.names) ||
      !TakeText(bytes, &filter) || !TakeNames(bytes, &order.filter_names) ||
      (*version > 1 && !TakeTargets(bytes, &order.targets)) ||
      bytes.left() != 0) {
    return std::nullopt;
  }
  order.id = *id;
  order.removed = (*flags & kRemoved) != 0;
  order.suspended = (*flags & kSuspended) != 0;
  if ((*flags & kOtherFilter) != 0) order.filter = std::move(filter);
  std::ranges::copy(*serial, order.serial.begin());
  return order;
}

// --- What is kept of an order.

Status Orders::Write(size_t slot, const Order& order) {
  return survive::KeepText(area_, RecordOf(slot).said, order.Encode());
}

std::optional<Order> Orders::Read(size_t slot) {
  const std::optional<std::string> bytes =
      survive::KeptText(area_, RecordOf(slot).said.load());
  return bytes ? Order::Decode(*bytes) : std::nullopt;
}

// What a trace in this place had is nobody's any more.
void Orders::Free(size_t slot) {
  area_.header().added.fetch_and(~(uint64_t{1} << slot));
  OrderRecord& record = RecordOf(slot);
  survive::ForgetText(area_, record.said);
  TraceRecord& trace = area_.header().traces[slot];
  // What its parts are (drivers/output/lasting_parts.h).
  if (const uint64_t number = trace.output.memory; number != 0) {
    if (void* const held = area_.Held(number - 1)) area_.Release(held);
  }
  for (std::atomic<int32_t>& fd : record.files) {
    if (const int file = fd.exchange(-1); file >= 0) ::close(file);
  }
  survive::ForgetText(area_, trace.counts);
  area_.ForgetEvents(trace);
  // Its stages have closed it.
  area_.header().trace_helpers[slot].store(-1);
  trace.turns.store(0);
  for (std::atomic<uint64_t>& lost : trace.lost) lost.store(0);
  trace.late_events.store(0);
  trace.late_blocks.store(0);
  for (survive::TraceState& state : trace.states) state = {};
  trace.output = {};
  taken_[slot] = false;
}

// --- Of the daemon that gets an order.

void Orders::Begin(std::vector<TracerPlan>* plans) {
  const std::lock_guard lock(mu_);
  survive::Header& header = area_.header();
  for (TracerPlan& plan : *plans) {
    TracerParts& parts = plan.parts;
    // Each daemon starts the tracers that feed rules afresh.
    if (parts.kind != TracerKind::kConfig) continue;
    const size_t slot = begun_with_++;
    parts.survives = &header.traces[slot];
    taken_[slot] = true;
    Order order = Read(slot).value_or(Order{});
    order.id = parts.id;
    kept_[parts.id] = {.slot = slot, .order = std::move(order)};
    header.next_tracer.store(std::max(header.next_tracer.load(), parts.id + 1));
  }
}

Result<std::vector<UniqueFd>> Orders::Copies(std::span<const UniqueFd> files) {
  std::vector<UniqueFd> copies;
  for (const UniqueFd& file : files) {
    copies.emplace_back(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    if (!copies.back()) return Status::System(errno, "keeping an output");
  }
  return copies;
}

Status Orders::Prepare(const Config& config, const KnownNames& names,
                       std::vector<UniqueFd> copies,
                       std::vector<TracerPlan>* plans) {
  const std::lock_guard lock(mu_);
  auto next_copy = copies.begin();
  for (size_t i = 0; i < config.tracers.size(); ++i) {
    const auto free = std::ranges::find(taken_, false);
    if (free == taken_.end()) {
      return Status::Invalid("a mount with --survive yes has room for " +
                             std::to_string(taken_.size()) +
                             " tracers, with those that it began with; remove "
                             "others that were added");
    }
    Config single = config;
    single.tracers = {config.tracers[i]};
    const Result<std::vector<Wish>> wishes = WishesOf(single);
    if (!wishes.ok()) return wishes.status();
    if (wishes->size() > OrderRecord::kMostFiles) {
      return Status::Invalid(PlaceText(config, config.tracers[i].position) +
                             ": --survive yes: a tracer may have " +
                             std::to_string(OrderRecord::kMostFiles) +
                             " files and keys");
    }
    const auto slot = static_cast<size_t>(free - taken_.begin());
    Free(slot);
    taken_[slot] = true;
    TracerParts& parts = (*plans)[i].parts;
    kept_[parts.id] = {.slot = slot,
                       .order = {.id = parts.id,
                                 .config = ToText(config.tracers[i]),
                                 .file = config.file_name,
                                 .names = names,
                                 .serial = parts.serial}};
    for (const TracerPlan& plan : *plans) {
      if (plan.parts.kind == TracerKind::kRules && plan.rules_of == parts.id) {
        kept_[parts.id].order.targets = TargetsOf(plan.rules);
      }
    }
    parts.survives = &area_.header().traces[slot];
    for (size_t f = 0; f < wishes->size() && next_copy != copies.end(); ++f) {
      RecordOf(slot).files[f].store((next_copy++)->Release());
    }
    // What one of that id leaves must never be taken for another's.
    area_.header().next_tracer.store(
        std::max(area_.header().next_tracer.load(), parts.id + 1));
    if (Status s = Write(slot, kept_[parts.id].order); !s.ok()) return s;
  }
  return Status::Ok();
}

void Orders::Commit(std::span<const uint32_t> ids, bool stays_shut) {
  const std::lock_guard lock(mu_);
  if (stays_shut) area_.header().stays_shut.store(1);
  uint64_t bits = 0;
  for (const uint32_t id : ids) {
    if (const auto kept = kept_.find(id); kept != kept_.end()) {
      bits |= uint64_t{1} << kept->second.slot;
    }
  }
  area_.header().added.fetch_or(bits);
}

void Orders::Drop(std::span<const uint32_t> ids) {
  for (const uint32_t id : ids) Forget(id);
}

void Orders::Forget(uint32_t id) {
  const std::lock_guard lock(mu_);
  const auto kept = kept_.find(id);
  // A tracer that the mount began with keeps its slot: it says that the tracer
  // has been removed.
  if (kept == kept_.end() || kept->second.slot < begun_with_) return;
  Free(kept->second.slot);
  kept_.erase(kept);
}

Status Orders::Change(uint32_t id, const std::function<void(Order&)>& change,
                      const std::function<Status()>& act) {
  const std::lock_guard lock(mu_);
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) return act();
  auto& [slot, order] = kept->second;
  const Order before = order;
  change(order);
  Status status = Write(slot, order);
  if (status.ok()) {
    status = act();
    if (status.ok()) return status;
    static_cast<void>(Write(slot, before));
  }
  order = before;
  return status;
}

// --- Of a later one.

// With what feeds its rules behind it.
Result<std::vector<TracerPlan>> Orders::PlanOne(const Order& order, size_t slot,
                                                NameTable& names) {
  const Result<Config> config = ParseOrdered(order);
  if (!config.ok()) return config.status();
  if (Status s = CheckSurvives(*config); !s.ok()) return s;
  std::vector<UniqueFd> files;
  for (const std::atomic<int32_t>& fd : RecordOf(slot).files) {
    if (fd.load() < 0) break;
    files.emplace_back(::fcntl(fd.load(), F_DUPFD_CLOEXEC, 0));
    if (!files.back()) return Status::System(errno, "an output");
  }
  Result<std::vector<TracerPlan>> plans = PlanTracers(
      *config, names,
      {.users = &order.names,
       .first_id = order.id,
       .targets = {.known = order.targets.empty() ? nullptr : &order.targets},
       .files = &files,
       .again = true});
  if (!plans.ok()) return plans.status();
  TracerParts& parts = plans->front().parts;
  parts.serial = order.serial;
  parts.survives = &area_.header().traces[slot];
  return plans;
}

Result<std::vector<TracerPlan>> Orders::PlanAgain(NameTable& names) {
  const std::lock_guard lock(mu_);
  std::vector<std::atomic<uint64_t>*> words;
  for (OrderRecord& record : area_.header().orders) {
    words.push_back(&record.said);
  }
  for (TraceRecord& trace : area_.header().traces) {
    words.push_back(&trace.counts);
  }
  survive::ForgetLostTexts(area_, words);
  std::vector<TracerPlan> plans;
  for (size_t slot = begun_with_; slot < taken_.size(); ++slot) {
    const TraceRecord& trace = area_.header().traces[slot];
    const bool goes_on = IsAdded(slot) && trace.turns.load() != 0 &&
                         trace.states[trace.turns.load() % 2].ended == 0;
    if (!goes_on) {
      const bool used = RecordOf(slot).said.load() != 0 ||
                        trace.turns.load() != 0 || trace.output.memory != 0;
      area_.header().added.fetch_and(~(uint64_t{1} << slot));
      if (used) Free(slot);
      continue;
    }
    const std::optional<Order> order = Read(slot);
    Status status = Status::SystemSaid(
        EUCLEAN, "what the daemon before has left about a tracer is wrong");
    if (order && !kept_.contains(order->id)) {
      Result<std::vector<TracerPlan>> planned = PlanOne(*order, slot, names);
      if (planned.ok()) {
        taken_[slot] = true;
        kept_[order->id] = {.slot = slot, .order = *order};
        std::ranges::move(*planned, std::back_inserter(plans));
        continue;
      }
      status = planned.status().Prefixed("tracer " + std::to_string(order->id) +
                                         " cannot go on");
    }
    if (area_.header().stays_shut.load() != 0) return status;
    Notify(NoticeId::kOutputFailed, status.message());
    Free(slot);
  }
  return plans;
}

Status Orders::DoAgain(TracerRegistry& tracers, NameTable& names) {
  std::vector<Order> orders;
  {
    const std::lock_guard lock(mu_);
    for (const auto& [id, kept] : kept_) orders.push_back(kept.order);
  }
  const TracerRegistry::Entries there = tracers.All();
  for (const Order& order : orders) {
    if (!there.contains(order.id)) continue;
    if (order.removed) {
      // It is gone even where its end could not be written.
      if (Status s = tracers.Remove(order.id); !s.ok()) {
        Notify(NoticeId::kOutputFailed, s.message());
      }
      Forget(order.id);
      continue;
    }
    if (order.filter) {
      const Result<Filter> filter = Filter::Compile(
          *order.filter, {.file = "filter"}, order.filter_names, names);
      if (!filter.ok()) return filter.status();
      if (Status s = tracers.SetFilter(order.id, *filter); !s.ok()) return s;
    }
    if (!order.targets.empty()) {
      if (Status s = tracers.Bind(order.id, order.targets); !s.ok()) return s;
    }
    if (!order.suspended) continue;
    if (Status s = tracers.Suspend(order.id); !s.ok()) return s;
  }
  return Status::Ok();
}

}  // namespace tracefs
