// Any bytes as a config: an error, or structs that print and parse again to
// the same text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/config.h"
#include "tests/fuzz/structured.h"
#include "tests/support/config_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tracefs::ParseConfig;
  using tracefs::testing::kConfigSchema;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = ParseConfig(text, "fuzz", kConfigSchema);
  if (!config.ok()) {
    if (config.status().message().empty()) abort();
    return 0;
  }
  for (const tracefs::TracerConfig& tracer : config->tracers) {
    const std::string printed = ToText(tracer);
    // Printing lengthens: control bytes become escapes, numbers do not shrink.
    if (printed.size() > tracefs::kMaxConfigBytes) continue;
    const auto again = ParseConfig(printed, "again", kConfigSchema);
    if (!again.ok() || ToText(again->tracers.at(0)) != printed) abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateText(data, size, max, seed);
}
