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

WhenFull WhenFullOf(const ConfigEntry& entry) {
  return {.block = entry.Text("when_full", "block") == "block",
          .deadline = entry.Duration("deadline", WhenFull().deadline)};
}

Status CheckWhenFull(const ConfigEntry& entry) {
  if (WhenFullOf(entry).block || !entry.Has("deadline")) return Status::Ok();
  return Status::Invalid(entry.name +
                         ": when_full = drop waits for nothing; leave "
                         "deadline out");
}

void WishKey(const ConfigEntry& entry, std::string_view option,
             std::vector<Wish>* wishes) {
  if (!entry.Has(option)) return;
  const std::string text(entry.Text(option));
  const KeySource source = *ParseKeySource(text);
  if (source.place == KeySource::Place::kFile) {
    wishes->push_back({.path = source.name, .kind = Wish::Kind::kRead});
  } else {
    wishes->push_back({.path = text, .kind = Wish::Kind::kSecret});
  }
}

Status CheckKey(const ConfigEntry& entry, std::string_view option) {
  if (!entry.Has(option)) return Status::Ok();
  return ParseKeySource(entry.Text(option))
      .status()
      .Prefixed(entry.name + ": " + std::string(option));
}

KeySource TakeKeySource(const ConfigEntry& entry, std::string_view option,
                        Given* given) {
  KeySource source = *ParseKeySource(entry.Text(option));
  if (given->any()) {
    source.given = std::make_shared<const UniqueFd>(given->Take());
  }
  return source;
}

}  // namespace tracefs
