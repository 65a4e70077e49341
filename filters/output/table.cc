#include "filters/output/table.h"

#include "filters/output/rows.h"

namespace tracefs {

std::span<const OutputFilterRow> OutputFilters() {
  static const OutputFilterRow rows[] = {
      AsyncRow(),    ThrottleRow(), AnonymizeRow(),
      CompressRow(), EncryptRow(),  ChecksumRow(),
  };
  return rows;
}

const OutputFilterRow* FindOutputFilter(std::string_view name) {
  for (const OutputFilterRow& row : OutputFilters()) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

std::string_view TextOption(const ConfigEntry& entry, std::string_view option,
                            std::string_view otherwise) {
  const ConfigOption* found = entry.Find(option);
  return found == nullptr ? otherwise : std::string_view(found->value.text);
}

uint64_t NumberOption(const ConfigEntry& entry, std::string_view option,
                      uint64_t otherwise) {
  const ConfigOption* found = entry.Find(option);
  return found == nullptr ? otherwise : found->value.number;
}

Status TakeWhenFull(const ConfigEntry& entry, WhenFull* when_full) {
  when_full->block = TextOption(entry, "when_full", "block") == "block";
  const ConfigOption* deadline = entry.Find("deadline");
  if (deadline == nullptr) return Status::Ok();
  if (!when_full->block) {
    return Status::Invalid(entry.name +
                           ": when_full = drop waits for nothing; leave "
                           "deadline out");
  }
  when_full->deadline = std::chrono::nanoseconds(deadline->value.number);
  return Status::Ok();
}

}  // namespace tracefs
