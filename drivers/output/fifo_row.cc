#include "config/shared_options.h"
#include "drivers/output/feed/feed.h"
#include "drivers/output/fifo.h"
#include "drivers/output/rows.h"

namespace tracefs {
namespace {

constexpr OptionRow kOptions[] = {
    kBufOption,  {.name = "unbuffered"}, kBlockOrDropOption, kDeadlineOption,
    kFeedOption,
};

bool Blocks(const ConfigEntry& entry) {
  return PolicyOf(entry, LossPolicy::kDrop) == LossPolicy::kBlock;
}

Status Check(const ConfigEntry& entry) {
  if (entry.Has("deadline") && !Blocks(entry)) {
    return Status::Invalid(
        "a deadline is of use only with when_full = block; without it nothing "
        "waits");
  }
  return Status::Ok();
}

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  return {{.path = entry.value.text, .kind = Wish::Kind::kFolder}};
}

Result<MadeOutputDriver> Make(const ConfigEntry& entry,
                              OutputDriverInputs inputs) {
  FifoOptions options;
  options.path = entry.value.text;
  options.buffer_bytes = entry.Number("buf");
  if (Blocks(entry)) {
    options.deadline =
        std::chrono::nanoseconds(entry.Number("deadline", 1'000'000'000));
  }
  Result<OutputFolder> folder = FolderOf(entry, &inputs.given);
  if (!folder.ok()) return folder.status();
  Result<std::unique_ptr<OutputDriver>> driver =
      FifoDriver::Create(std::move(options), *std::move(folder));
  if (!driver.ok()) return driver.status();
  return Made(WithFeed(entry, *std::move(driver)));
}

Status Probe(const ConfigEntry& entry) {
  const Result<OutputFolder> folder = OutputFolder::Open(entry.value.text);
  return folder.ok() ? FifoDriver::Probe(entry.value.text, *folder)
                     : folder.status();
}

}  // namespace

OutputDriverRow FifoRow() {
  return {.entry = {.name = "fifo",
                    .role = EntryRole::kDriver,
                    .value = {.type = ValueType::kText, .required = true},
                    .options = kOptions},
          .help = "a named pipe, for whoever reads it",
          .make = &Make,
          .wishes = &Wishes,
          .check = &Check,
          .probe = &Probe,
          .feed = &FeedOf};
}

}  // namespace tracefs
