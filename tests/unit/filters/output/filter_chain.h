// FilterChain: output filters as a config describes them, for tests; and the
// decoder that their chain text makes.
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "filters/output/chain.h"
#include "filters/output/table.h"
#include "tests/unit/filters/output/chain_end.h"

namespace tracefs {

// The tracer of a config whose output section is `output`, which ends in a
// driver called file.
Result<TracerConfig> ParseOutput(const std::string& output);

// The filters of a parsed output section, checked and ending in a ChainEnd.
Result<std::unique_ptr<OutputFilter>> MakeFilters(const TracerConfig& tracer,
                                                  ChainLog* log);

// The same from text; a test failure and null if it does not work.
std::unique_ptr<OutputFilter> MustMakeFilters(const std::string& output,
                                              ChainLog* log);

// Runs `blocks` through a chain, the last as the last of the trace.
std::vector<Written> RunChain(const std::string& output,
                              const std::vector<std::string>& blocks,
                              const TraceIdentity& identity = TestIdentity());

// The chain text of such a section.
std::string ChainTextOf(const std::string& output);

// Undoes a chain for one payload.
Result<std::string> DecodeWith(ChainDecoder& decoder, const Written& written,
                               const format::Serial& serial = TestSerial(),
                               BlockNotes* notes = nullptr);

// The same with a decoder of its own.
Result<std::string> DecodeChain(const std::string& chain, const KeyRing& keys,
                                const Written& written,
                                const format::Serial& serial = TestSerial(),
                                BlockNotes* notes = nullptr);

}  // namespace tracefs
