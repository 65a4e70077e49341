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

Status TakeWhenFull(const ConfigEntry& entry, WhenFull* when_full) {
  when_full->block = entry.Text("when_full", "block") == "block";
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

void WishKey(const ConfigEntry& entry, std::string_view option,
             std::vector<Wish>* wishes) {
  const ConfigOption* found = entry.Find(option);
  if (found == nullptr) return;
  const Result<KeySource> source = ParseKeySource(found->value.text);
  if (!source.ok()) return;
  if (source->place == KeySource::Place::kFile) {
    wishes->push_back({.path = source->name, .kind = Wish::Kind::kRead});
  } else {
    wishes->push_back({.path = found->value.text, .kind = Wish::Kind::kSecret});
  }
}

Result<KeySource> TakeKeySource(const ConfigOption& option, Given* given) {
  Result<KeySource> source = ParseKeySource(option.value.text);
  if (source.ok() && given->any()) {
    source->given = std::make_shared<const UniqueFd>(given->Take());
  }
  return source;
}

}  // namespace tracefs
