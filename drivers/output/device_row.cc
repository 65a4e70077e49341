#include "drivers/output/device.h"
#include "drivers/output/rows.h"

namespace tracefs {
namespace {

constexpr OptionRow kOptions[] = {
    kBufOption, {.name = "unbuffered"}, {.name = "sync"}, kLocalPolicyOption};

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  return {{.path = entry.value.text,
           .sync = entry.Has("sync"),
           .kind = Wish::Kind::kDevice}};
}

Result<std::unique_ptr<OutputDriver>> Make(const ConfigEntry& entry,
                                           OutputDriverFacts* facts) {
  DeviceOptions options;
  options.path = entry.value.text;
  options.buffer_bytes = entry.Number("buf");
  options.sync = entry.Has("sync");
  facts->when_full = PolicyOf(entry, LossPolicy::kDrop);
  facts->unbuffered = entry.Has("unbuffered");
  if (!facts->given.empty()) {
    return DeviceDriver::Create(std::move(options), std::move(facts->given[0]));
  }
  Result<UniqueFd> fd = DeviceDriver::Open(options);
  if (!fd.ok()) return fd.status();
  return DeviceDriver::Create(std::move(options), *std::move(fd));
}

// Opening it changes nothing.
Status Probe(const ConfigEntry& entry) {
  OutputDriverFacts facts;
  return Make(entry, &facts).status();
}

}  // namespace

OutputDriverRow DeviceRow() {
  return {.entry = {.name = "device",
                    .role = EntryRole::kDriver,
                    .value = {.type = ValueType::kText, .required = true},
                    .options = kOptions},
          .help = "a block device, from its first byte on, over what is there",
          .make = &Make,
          .wishes = &Wishes,
          .probe = &Probe};
}

}  // namespace tracefs
