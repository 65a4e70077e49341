// The header of an anonymised trace: the START message, written from scratch,
// with what a reader needs to reveal: which policy, which keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anonymize/plan.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/trace_header.h"

namespace tracefs::anonymize {

struct NewHeader {
  uint32_t tracer_id = 0;
  ClockPair clock;
  std::vector<std::pair<std::string, std::string>> properties;
};

// "anon.policy", "anon.keys", "anon.version".
bool IsOwnProperty(std::string_view key);

// Says in the header what was done: the plan's policy and key ids; after a
// reveal, what is still hidden of what `description` says.
void AddOwnProperties(const Plan& plan,
                      const format::SelfDescription& description,
                      NewHeader* header);

// A START message: messages and arguments as `description` names them, as this
// version does where it is empty.
std::vector<std::byte> EncodeStart(const format::SelfDescription& description,
                                   const NewHeader& header);

// What the header of an anonymised trace says.
struct AnonymisedBy {
  Policy policy;
  std::map<std::string, std::string> key_ids;  // by domain
};
// kInvalid if the trace is not anonymised; kCorrupt if what it says cannot be
// read.
Result<AnonymisedBy> ReadOwnProperties(const format::TraceHeader& header);

}  // namespace tracefs::anonymize
