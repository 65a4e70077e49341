// Every output driver, in one table: it feeds the config's grammar, --help and
// look-up by name. A new driver is one new row.
#ifndef DRIVERS_OUTPUT_TABLE_H_
#define DRIVERS_OUTPUT_TABLE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "drivers/output/file.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// A file that a driver makes when it is made.
struct OutputFileWish {
  std::string path;
  bool sync = false;  // O_DSYNC
};

// What the maker of a driver gets and finds out besides.
struct OutputDriverFacts {
  // Files made for it already, as `wishes` of its row has them; empty: it makes
  // them.
  std::vector<UniqueFd> given;
  std::vector<OutputFileId> files;  // written by it: not to be traced
  bool unbuffered = false;          // each message leaves at once
};

struct OutputDriverRow {
  EntryRow entry;
  std::string_view help;
  // Opens what a checked entry of the config describes.
  Result<std::unique_ptr<OutputDriver>> (*make)(const ConfigEntry& entry,
                                                OutputDriverFacts* facts);
  // The files that `make` would make. Null: none.
  std::vector<OutputFileWish> (*wishes)(const ConfigEntry& entry) = nullptr;
};

std::span<const OutputDriverRow> OutputDrivers();

// The row of that name; null if there is none.
const OutputDriverRow* FindOutputDriver(std::string_view name);

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_TABLE_H_
