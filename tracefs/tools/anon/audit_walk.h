// What --audit reads of a trace: each argument, with what a policy says of it,
// and what stands beside blocks.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "anonymize/plan.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs::anonymize {

// What is read of one trace: its header once, then every argument.
struct Visitor {
  std::function<Status(const format::SelfDescription&, const format::Preamble&,
                       std::shared_ptr<const Plan>*)>
      on_header;
  // Whether on_argument gets the numbers of a field, too; asked once for each.
  std::function<bool(const FieldPlan&)> wants_numbers;
  std::function<void(const format::Message&, const format::Argument&,
                     const FieldPlan&)>
      on_argument;
  // The whole block, which may be taken; may be empty.
  std::function<void(std::vector<std::byte>&& block, const format::Frame&)>
      on_block;
};

// What the container of a trace holds beside blocks.
struct Container {
  uint64_t unknown_frames = 0;
  uint64_t damaged_bytes = 0;
  uint64_t frames_after_final = 0;
  uint64_t embedded_files = 0;  // with what they hold, or their names
  uint64_t index_pieces = 0;    // of what was worked out in clear
  uint64_t undecodable = 0;
  uint64_t duplicates = 0;
  uint64_t operations = 0;
  uint64_t real_times = 0;  // of day: in heads of checksums, snapshot marks
};

// kCorrupt if the trace has no header that can be read. `options` says how the
// trace is opened.
Status Walk(const std::string& name, reader::TraceSet::Options options,
            Visitor visitor, Container* container);

// A plan that changes nothing: it knows fields and their rules.
Result<std::unique_ptr<const Plan>> LookupPlan(
    const Policy& policy, const format::SelfDescription& description);
// The policy does something to its values.
bool Hidden(const FieldPlan& field);

// Numbers are compared with those of their class, unit and width.
struct NumberGroup {
  std::string class_name;
  uint64_t per_second = 0;
  uint16_t width = 0;

  auto operator<=>(const NumberGroup&) const = default;
};
NumberGroup GroupOf(const FieldPlan& field);
// The number, without its sign; of wider ones, a digest. LoadVeryWide: of any
// width.
uint64_t LoadVeryWide(ByteSpan bytes);
inline uint64_t LoadWide(ByteSpan bytes) {
  switch (bytes.size()) {
    case 8:
      return LoadLe<uint64_t>(bytes.data());
    case 4:
      return LoadLe<uint32_t>(bytes.data());
    default:
      return LoadVeryWide(bytes);
  }
}

}  // namespace tracefs::anonymize
