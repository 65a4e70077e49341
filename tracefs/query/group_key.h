// GroupKey: one part of what operations are grouped by. The words are those of
// `aggregate = { by … }` in a config, and more that only a trace can answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/table.h"
#include "tracefs/reader/fields.h"

namespace tracefs::query {

struct GroupKey {
  enum class From : uint8_t {
    kField,      // the value of a field
    kDir,        // the directory a path is in, or its first `depth` parts
    kExt,        // the extension of a path
    kName,       // its last part
    kContainer,  // of a control group
    kHost,       // of the trace
    kTime,       // the begin of the period it began in
    kLog2,       // the power of two below or at a number
    kLinear,     // the multiple of `width` below or at a number
    kProcess,    // name and pid
    kAlign,      // the greatest power of two that divides a number
    kFlagNames,  // flags by their names
    kTree,       // the names of the process and all its ancestors
  };
  static constexpr size_t kMax = 8;

  From from{};
  std::string name;                         // of its column
  const reader::FieldRow* field = nullptr;  // what it is made from
  uint32_t depth = 0;                       // of kDir; 0 = all of it
  uint64_t period_ns = 0;                   // of kTime
  uint64_t width = 0;                       // of kLinear

  bool is_number() const;  // its values are numbers, else texts
  Unit unit() const;
};

// "dir(1),cname". kInvalid with the nearest word; `option` is for the message.
Result<std::vector<GroupKey>> ParseGroupKeys(std::string_view text,
                                             std::string_view option);
// `time(period_ns)`.
GroupKey PeriodKey(uint64_t period_ns);

// What a text makes of another one: the directory of a path and so on. The view
// points into `text` or is static. Nothing, where it has none.
std::string_view DerivedText(const GroupKey& key, std::string_view text);

// The field that says of the second file of an operation what the field of
// `key` says of the first; kData: no field does, though it is about a file.
// Nothing: the key is not about a file.
std::optional<Field> FieldOfSecond(const GroupKey& key);
// Whether what an operation does with its second file belongs to the group of
// that file: keys are about files, and none is about the second one.
bool TellFilesApart(const std::vector<GroupKey>& keys);

// The first `depth` parts of a directory, or all of it.
std::string_view DirectoryStart(std::string_view directory, uint32_t depth);

}  // namespace tracefs::query
