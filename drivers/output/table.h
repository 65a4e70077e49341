// Every output driver, in one table: it feeds the config's grammar, --help and
// look-up by name. A new driver is one new row.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "drivers/output/output_folder.h"
#include "tracefs/pipeline/loss_policy.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {

// What a flight recorder offers to whoever may ask it.
struct FlightHooks {
  // Writes a snapshot and returns its path. Threads: any; outlives the driver.
  std::function<Result<std::string>(std::string_view reason)> snapshot;
  uint64_t trigger_every_ns = 0;  // no more than one snapshot in this time
  // What it was given is there when the daemon is killed: so each message is to
  // be given to it at once.
  bool outlives_daemon = false;
};

// What a driver is made from, besides its entry.
struct OutputDriverInputs {
  // What was opened for it already, as `wishes` of its row has it; nothing: it
  // opens it itself.
  Given given = {};
  // Told of files that come and go later. May be empty.
  OutputFileChange changed = {};
  OutputsStay stay = {};
};

// A driver, and what its tracer has to know of it.
struct MadeOutputDriver {
  std::unique_ptr<OutputDriver> driver;
  std::vector<OutputFileId> files = {};  // written by it: not to be traced
  std::optional<FlightHooks> flight = {};
  // What the tracer does when it cannot keep what it records.
  LossPolicy when_full = LossPolicy::kBlock;
};

struct OutputDriverRow {
  EntryRow entry;
  std::string_view help;
  // Opens what a checked entry of the config describes.
  Result<MadeOutputDriver> (*make)(const ConfigEntry& entry,
                                   OutputDriverInputs inputs);
  // What `make` would open. Null: nothing.
  std::vector<Wish> (*wishes)(const ConfigEntry& entry) = nullptr;
  // What the grammar cannot see, without opening anything: before `make` and
  // `probe`. Null: nothing.
  Status (*check)(const ConfigEntry& entry) = nullptr;
  // What `make` would be refused for as things are now: looks at folders and
  // reads keys, and makes nothing. For --check. Null: nothing.
  Status (*probe)(const ConfigEntry& entry) = nullptr;
  // Which feed `entry` asks for, "ocsf": the driver then reads the blocks,
  // which must come to it as they were made and hold operations. Empty, and
  // null: it takes whatever comes.
  std::string_view (*feed)(const ConfigEntry& entry) = nullptr;
  // The value names files that are made, and may hold %date and %serial
  // (file_name.h).
  bool makes_named_files = false;
  // For a flight recorder, which alone writes snapshots: its option that holds
  // the filter of operations that ask for one. Empty: it is none.
  std::string_view trigger_option = {};
};

std::span<const OutputDriverRow> OutputDrivers();

// The row of that name; null if there is none.
const OutputDriverRow* FindOutputDriver(std::string_view name);

}  // namespace tracefs
