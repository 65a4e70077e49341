// Every output driver, in one table: it feeds the config's grammar, --help and
// look-up by name. A new driver is one new row.
#ifndef DRIVERS_OUTPUT_TABLE_H_
#define DRIVERS_OUTPUT_TABLE_H_

#include <memory>
#include <span>
#include <vector>

#include "config/config.h"
#include "drivers/output/file.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// What the maker of a driver finds out besides.
struct OutputDriverFacts {
  std::vector<OutputFileId> files;  // written by it: not to be traced
  bool unbuffered = false;          // each message leaves at once
};

struct OutputDriverRow {
  EntryRow entry;
  std::string_view help;
  // Opens what a checked entry of the config describes.
  Result<std::unique_ptr<OutputDriver>> (*make)(const ConfigEntry& entry,
                                                OutputDriverFacts* facts);
};

std::span<const OutputDriverRow> OutputDrivers();

// The row of that name; null if there is none.
const OutputDriverRow* FindOutputDriver(std::string_view name);

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_TABLE_H_
