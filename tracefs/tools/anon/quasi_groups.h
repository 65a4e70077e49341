// QuasiGroups: how many operations share their values of some fields. Who is
// alone in a group can be told from all others by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/event/field.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/tools/anon/distinct.h"

namespace tracefs::anonymize {

class QuasiGroups {
 public:
  // Fields by their names, which outlive it.
  explicit QuasiGroups(const std::vector<std::string>& names);

  // Counts the operations of a block, which it takes.
  void Count(format::TraceContext* context, std::vector<std::byte>&& block,
             const format::Frame& frame);
  // For people; empty if there was no operation.
  std::string Text() const;

 private:
  const std::vector<std::string>& names_;
  std::vector<const FieldInfo*> fields_;  // null: there is no such field
  Distinct groups_;                       // by the values of the fields, packed
  std::string group_;
  std::string last_group_;  // that came last, with its number in groups_
  std::optional<uint32_t> last_;
};

}  // namespace tracefs::anonymize
