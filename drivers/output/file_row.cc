#include "drivers/output/feed/feed.h"
#include "drivers/output/file.h"
#include "drivers/output/rows.h"

namespace tracefs {
namespace {

constexpr std::string_view kAliases[] = {"filename"};
constexpr OptionRow kOptions[] = {
    kBufOption,
    {.name = "unbuffered"},
    {.name = "sync"},
    kLocalPolicyOption,
    {.name = "rotate_size",
     .type = ValueType::kSize,
     .min = 64 << 10,
     .max = uint64_t{1} << 50},
    {.name = "rotate_time",
     .type = ValueType::kDuration,
     .min = 1'000'000'000,
     .max = uint64_t{366} * 24 * 3600 * 1'000'000'000},
    {.name = "rotate_count", .type = ValueType::kCount, .min = 1},
    {.name = "keep", .type = ValueType::kCount, .min = 2, .max = 1'000'000},
    kFeedOption,
};

Rotation RotationOf(const ConfigEntry& entry) {
  return {.bytes = entry.Number("rotate_size"),
          .age_ns = entry.Number("rotate_time"),
          .events = entry.Number("rotate_count"),
          .keep = entry.Number("keep")};
}

FileOptions OptionsOf(const ConfigEntry& entry) {
  FileOptions options;
  options.path = entry.value.text;
  options.buffer_bytes = entry.Number("buf");
  options.sync = entry.Has("sync");
  options.rotation = RotationOf(entry);
  return options;
}

Status Check(const ConfigEntry& entry) {
  const Rotation rotation = RotationOf(entry);
  if (rotation.keep != 0 && !rotation.any()) {
    return Status::Invalid(
        "keep counts the files of a rotated trace; say with rotate_size, "
        "rotate_time or rotate_count when a new one begins");
  }
  if (rotation.any() && !FeedOf(entry).empty()) {
    return Status::Invalid(
        "a feed is not rotated: a part of it says nothing of the others; leave "
        "out rotate_ or feed");
  }
  return Status::Ok();
}

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes = {
      {.path = entry.value.text, .sync = entry.Has("sync")}};
  if (RotationOf(entry).any()) {
    wishes.push_back({.path = entry.value.text, .kind = Wish::Kind::kFolder});
  }
  return wishes;
}

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  FileOptions options = OptionsOf(entry);
  options.changed = std::move(inputs.changed);
  options.stay = std::move(inputs.stay);
  OutputFileId id;
  Result<std::unique_ptr<OutputDriver>> driver =
      inputs.given.any()
          ? FileDriver::Adopt(std::move(options), inputs.given, &id)
          : FileDriver::Create(std::move(options), &id);
  if (!driver.ok()) return driver.status();
  return MadeOutputDriver{.driver = WithFeed(entry, *std::move(driver)),
                          .files = {id},
                          .when_full = PolicyOf(entry, LossPolicy::kDrop)};
}

Status Probe(const ConfigEntry& entry) {
  return FileDriver::Probe(OptionsOf(entry));
}

}  // namespace

OutputDriverRow FileRow() {
  return {.entry = {.name = "file",
                    .role = EntryRole::kDriver,
                    .aliases = kAliases,
                    .value = {.type = ValueType::kText, .required = true},
                    .options = kOptions},
          .help =
              "a new regular file, or several of which each goes on where "
              "the one before ends; or a device such as /dev/null or a tape",
          .make = &Make,
          .wishes = &Wishes,
          .check = &Check,
          .probe = &Probe,
          .feed = &FeedOf,
          .makes_named_files = true};
}

}  // namespace tracefs
