// The output sections of a config: what the grammar cannot see of them, the
// files that they want, and their making.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "tracefs/base/status.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// "file:line:column".
// Whether operations are to fail that the tracer with this output could not
// record: `when_full = fail`.
bool AsksToFail(const ConfigEntry& driver);

std::string PlaceText(const Config& file, SourcePosition position);

// Judges one section without opening anything. Errors, here and below, say
// "file:line:column: …".
Status CheckOutput(const Config& file, const TracerConfig& config);

// The files that MakeOutputs is to be given where it can make none itself.
Result<std::vector<Wish>> WishesOf(const Config& file);

// The config in which the outputs have the names that they have this time,
// written so that they are the same the next time. `plans`: made from it.
Config WithFixedNames(const Config& file, const std::vector<TracerPlan>& plans);

// Where the traces are, as absolute paths, that operations are taken back by:
// that of the tracer that keeps what is destroyed; if there is none, all that
// are files on this host. `plans` made from `file`, relative paths from `here`.
std::vector<std::string> TraceFilesOf(const Config& file,
                                      const std::vector<TracerPlan>& plans,
                                      const std::string& here);

// Makes the outputs of the tracers of `file`, with which `plans` begins.
Status MakeOutputs(const Config& file, const TracerPlanOptions& options,
                   std::vector<TracerPlan>* plans);

}  // namespace tracefs
