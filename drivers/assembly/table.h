// Every assembly driver, in one table: it feeds the config's grammar, --help
// and look-up by name. A new driver is one new row.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "config/config.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct AssemblyDriverRow {
  EntryRow entry;
  std::string_view help;
  // Makes the driver that a checked entry of the config describes; `file` is
  // for messages.
  Result<std::unique_ptr<AssemblyDriver>> (*make)(const ConfigEntry& entry,
                                                  std::string_view file);
  // It puts counts into a trace, and no operations.
  bool only_counts = false;
};

std::span<const AssemblyDriverRow> AssemblyDrivers();

// The row of that name; null if there is none.
const AssemblyDriverRow* FindAssemblyDriver(std::string_view name);

// The driver of a tracer whose config names none, as a config would say it:
// what every later use of a trace can live with.
inline constexpr std::string_view kDefaultAssembly = "stream = { STR_ALL }";
inline constexpr std::string_view kDefaultAssemblyDriver =
    kDefaultAssembly.substr(0, kDefaultAssembly.find(' '));
std::unique_ptr<AssemblyDriver> MakeDefaultAssembly();

}  // namespace tracefs
