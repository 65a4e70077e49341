// The parts of a tracer put together, whoever wants it: a config, the rules of
// another tracer, or a client that listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "filters/input/filter.h"
#include "tracefs/base/status.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/pipeline/tracer.h"

namespace tracefs {

struct TracerWish {
  TracerKind kind = TracerKind::kConfig;
  std::string name;
  std::string drivers;       // for the header: kDefaultAssembly
  std::string output_chain;  // for header and preamble: "compress; file"
};

// A tracer with a filter and a serial number of its own, and what its header
// says of both. It has no id yet (SetId), no assembly drivers and no output.
Result<TracerParts> BeginParts(TracerWish wish, Filter filter);

// Those of one that no config describes: it records all there is of each
// operation, and its output is called what it is. Without id and output.
Result<TracerParts> BeginOwnParts(TracerKind kind, const std::string& name,
                                  Filter filter);

// Likewise one that only counts, for who looks on (`watch` in docs/control-
// protocol.md): operation, error, user, process,
// its parent and name, and path; or what `counted`, clauses of `aggregate`,
// says; told every `every_ns`. kInvalid if the clauses are wrong, or have
// `every`.
Result<TracerParts> BeginWatchParts(const std::string& name, Filter filter,
                                    uint64_t every_ns,
                                    const std::string& counted = {});

void SetId(uint32_t id, TracerParts* parts);

// Puts a driver at the end of a chain that has nothing yet, then a filter
// before what is there; each with a meter that bears its name.
void PutDriver(const std::string& name, std::unique_ptr<OutputDriver> driver,
               TracerParts* parts);
void PutFilter(const std::string& name, std::unique_ptr<OutputFilter> filter,
               TracerParts* parts);

}  // namespace tracefs
