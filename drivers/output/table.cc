#include "drivers/output/table.h"

namespace tracefs {
namespace {

constexpr std::string_view kFileAliases[] = {"filename"};
constexpr OptionRow kFileOptions[] = {
    {.name = "buf",
     .type = ValueType::kSize,
     .min = 4096,
     .max = uint64_t{16} << 20},
    {.name = "unbuffered"},
    {.name = "sync"},
};

Result<std::unique_ptr<OutputDriver>> MakeFile(const ConfigEntry& entry,
                                               OutputDriverFacts* facts) {
  FileOptions options;
  options.path = entry.value.text;
  if (const ConfigOption* buf = entry.Find("buf")) {
    options.buffer_bytes = buf->value.number;
  }
  options.sync = entry.Find("sync") != nullptr;
  facts->unbuffered = entry.Find("unbuffered") != nullptr;
  OutputFileId id;
  Result<std::unique_ptr<OutputDriver>> driver =
      facts->given.empty() ? FileDriver::Create(std::move(options), &id)
                           : FileDriver::Adopt(std::move(options),
                                               std::move(facts->given[0]), &id);
  if (driver.ok()) facts->files.push_back(id);
  return driver;
}

std::vector<OutputFileWish> FileWishes(const ConfigEntry& entry) {
  return {{.path = entry.value.text, .sync = entry.Find("sync") != nullptr}};
}

constexpr OutputDriverRow kOutputDrivers[] = {
    {{.name = "file",
      .role = EntryRole::kDriver,
      .aliases = kFileAliases,
      .value = {.type = ValueType::kText, .required = true},
      .options = kFileOptions},
     "a new regular file",
     &MakeFile,
     &FileWishes},
};

}  // namespace

std::span<const OutputDriverRow> OutputDrivers() { return kOutputDrivers; }

const OutputDriverRow* FindOutputDriver(std::string_view name) {
  for (const OutputDriverRow& row : kOutputDrivers) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

}  // namespace tracefs
