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

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  DeviceOptions options;
  options.path = entry.value.text;
  options.buffer_bytes = entry.Number("buf");
  options.sync = entry.Has("sync");
  Result<UniqueFd> fd =
      inputs.given.any() ? inputs.given.Take() : DeviceDriver::Open(options);
  if (!fd.ok()) return fd.status();
  return Made(DeviceDriver::Create(std::move(options), *std::move(fd)),
              PolicyOf(entry, LossPolicy::kDrop));
}

// Opening it changes nothing.
Status Probe(const ConfigEntry& entry) { return Make(entry, {}).status(); }

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
