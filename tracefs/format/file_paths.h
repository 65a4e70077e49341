// The paths of the files of an operation that has two (tally/transfer.h).
#pragma once

#include <string_view>

#include "tracefs/format/block_decoder.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::format {

// Empty if it is not known. The view points into `record` or `buffer`.
inline std::string_view PathOf(const Record& record, tally::End end,
                               PathBuffer& buffer) {
  return end == tally::End::kFile ? PathOf(record, buffer)
                                  : NewPathOf(record, buffer);
}

}  // namespace tracefs::format
