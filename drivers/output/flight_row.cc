#include <fcntl.h>

#include <cerrno>

#include "drivers/output/flight.h"
#include "drivers/output/rows.h"

namespace tracefs {
namespace {

constexpr uint64_t kDefaultEveryNs = 10'000'000'000;
constexpr OptionRow kOptions[] = {
    kBufOption,
    {.name = "size",
     .type = ValueType::kSize,
     .min = format::kMinFlightRingBytes,
     .max = format::kMaxFlightRingBytes},
    {.name = "rings",
     .type = ValueType::kCount,
     .min = 1,
     .max = format::kMaxFlightRings},
    {.name = "map", .type = ValueType::kText},
    {.name = "trigger", .type = ValueType::kText},
    {.name = "every",
     .type = ValueType::kDuration,
     .max = uint64_t{24} * 3600 * 1'000'000'000},
    {.name = "keep", .type = ValueType::kCount, .min = 1, .max = 1'000'000},
};

FlightOptions OptionsOf(const ConfigEntry& entry) {
  FlightOptions options;
  options.path = entry.value.text;
  options.buffer_bytes = entry.Number("buf");
  options.ring_bytes = entry.Number("size", options.ring_bytes);
  options.rings = static_cast<uint32_t>(entry.Number("rings", options.rings));
  options.keep = entry.Number("keep", options.keep);
  return options;
}

Status Check(const ConfigEntry& entry) {
  if (entry.Has("every") && !entry.Has("trigger")) {
    return Status::Invalid(
        "every says how often a trigger may make a snapshot, and there is no "
        "trigger");
  }
  const FlightOptions options = OptionsOf(entry);
  if (options.rings * options.ring_bytes > format::kMaxFlightBytes) {
    return Status::Invalid(
        "rings times size is more than 4 GiB; make one of them smaller");
  }
  return Status::Ok();
}

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes = {
      {.path = entry.value.text, .kind = Wish::Kind::kFolder}};
  if (const ConfigOption* map = entry.Find("map")) {
    wishes.push_back({.path = map->value.text, .kind = Wish::Kind::kNewMap});
  }
  return wishes;
}

// A map that is there may hold what nobody has looked at yet.
Status MapRefused(const Status& refused) {
  if (refused.error() != EEXIST) return refused;
  return refused.Prefixed(
      "map: it may hold what an earlier recorder saw; look at it with "
      "tracefs-dump, then remove it");
}

Status Probe(const ConfigEntry& entry) {
  const Result<OutputFolder> folder = OutputFolder::Open(entry.value.text);
  if (!folder.ok()) return folder.status();
  if (Status s = folder->CheckWritable(); !s.ok()) return s;
  const ConfigOption* map = entry.Find("map");
  if (map == nullptr) return Status::Ok();
  const Result<OutputFolder> of_map = OutputFolder::Open(map->value.text);
  if (!of_map.ok()) return of_map.status();
  return MapRefused(of_map->CheckMake(of_map->base()));
}

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  const bool given = inputs.given.any();
  Result<OutputFolder> folder = FolderOf(entry, &inputs.given);
  if (!folder.ok()) return folder.status();
  MadeOutputDriver made;
  UniqueFd map;
  std::function<void()> unused;
  if (const ConfigOption* option = entry.Find("map")) {
    if (given) {
      map = inputs.given.Take();
      if (!map) return Status::Invalid("flight: no map file was sent");
    } else {
      Result<OutputFolder> opened = OutputFolder::Open(option->value.text);
      if (!opened.ok()) return opened.status();
      OutputFileId id;
      Result<UniqueFd> file = opened->Make(opened->base(), O_RDWR, &id);
      opened->Enclose();
      const auto of_map =
          std::make_shared<const OutputFolder>(*std::move(opened));
      if (!file.ok()) return MapRefused(file.status());
      made.files.push_back(id);
      map = *std::move(file);
      unused = [of_map, id] { of_map->Remove(of_map->base(), id); };
    }
  }
  FlightOptions options = OptionsOf(entry);
  options.stay = std::move(inputs.stay);
  const Result<std::shared_ptr<FlightRecorder>> recorder =
      FlightRecorder::Create(std::move(options), *std::move(folder),
                             std::move(map), std::move(unused));
  if (!recorder.ok()) return recorder.status();
  made.flight =
      FlightHooks{.snapshot =
                      [recorder = *recorder](std::string_view reason) {
                        return recorder->Snapshot(reason);
                      },
                  .trigger_every_ns = entry.Number("every", kDefaultEveryNs),
                  .outlives_daemon = entry.Has("map")};
  made.driver = (*recorder)->MakeDriver(*recorder);
  return made;
}

}  // namespace

OutputDriverRow FlightRow() {
  return {.entry = {.name = "flight",
                    .role = EntryRole::kDriver,
                    .value = {.type = ValueType::kText, .required = true},
                    .options = kOptions},
          .help = "memory that keeps the newest and is written out on demand",
          .make = &Make,
          .wishes = &Wishes,
          .check = &Check,
          .probe = &Probe,
          .makes_named_files = true,
          .trigger_option = "trigger"};
}

}  // namespace tracefs
