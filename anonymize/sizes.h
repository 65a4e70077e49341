// What fields of a trace tell of the sizes of files: the one table of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/plan.h"

namespace tracefs::anonymize {

enum class SizeTell : uint8_t {
  kNothing,
  kUnknown,    // of a field that the table lacks
  kSize,       // the size itself
  kTransfer,   // where a transfer began or ended, or how long it was
  kSum,        // of such lengths, or the largest
  kHistogram,  // of such lengths
  kRanges,     // where the file has data: the last range ends at its end
  kBytes,      // as many bytes as were transferred
  kTarget,     // what a symbolic link leads to: as long as the link's size
  kExtents,    // where blocks of the file are: the last one is at its end
};

SizeTell TellsOfSize(uint16_t arg_id);
// "the size of the file", for messages.
std::string_view WhatItTells(SizeTell tells);

// Such fields as are counted, and can only be kept: they become what lengths
// become.
inline bool IsCounted(SizeTell tells) {
  return tells == SizeTell::kSum || tells == SizeTell::kHistogram ||
         tells == SizeTell::kRanges;
}

// Whether some size can be told exactly by what the field's rule makes of it.
bool TellsExactly(const FieldPlan& field);

// What is hidden of a file's size must not be told exactly by another field:
// kInvalid, naming all that do.
Status CheckSizes(const std::vector<FieldPlan>& fields);

// The value of a histogram whose buckets go where `map` takes their lowest
// number. Counts of buckets that become one are added up; `map` keeps order.
Result<std::string> CoarseHistogram(
    ByteSpan histogram, const std::function<Status(uint64_t*)>& map);

}  // namespace tracefs::anonymize
