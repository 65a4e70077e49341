// Policies may come from anyone, and the header of an anonymised trace holds
// one: parsing, applying to this version's fields, and printing must survive
// any text, and what is printed must parse to the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "anonymize/plan.h"
#include "tests/fuzz/structured.h"
#include "tracefs/format/trace_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tracefs;             // NOLINT: a fuzz target
  using namespace tracefs::anonymize;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Policy> policy = ParsePolicy(text, "fuzz");
  if (!policy.ok()) return 0;
  for (const bool for_trace : {false, true}) {
    const std::string printed = PolicyText(*policy, for_trace);
    const Result<Policy> again = ParsePolicy(printed, "again");
    if (!again.ok() || PolicyText(*again, for_trace) != printed) std::abort();
  }
  static const format::SelfDescription* const kDescription = [] {
    auto* description = new format::SelfDescription;
    const auto block = format::EncodeStartBlock({});
    (void)format::ReadStart(
        ByteSpan(block).subspan(format::kMessageHeaderBytes), description);
    return description;
  }();
  KeySet keys;
  keys.SetMaster(SecretKey());
  for (const bool reveal : {false, true}) {
    PlanOptions options;
    options.reveal = reveal;
    if (reveal) options.domains = {"uid", "name", "time", "host"};
    const auto plan = Plan::Make(*policy, *kDescription, keys, options);
    if (plan.ok()) (void)(*plan)->Explain();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateText(data, size, max, seed);
}
