#include "filters/output/table.h"

#include "filters/output/rows.h"

namespace tracefs {

std::span<const OutputFilterRow> OutputFilters() {
  static const OutputFilterRow rows[] = {
      CompressRow(),
      EncryptRow(),
      ChecksumRow(),
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

}  // namespace tracefs
