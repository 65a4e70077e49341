// Options that filters and drivers have in common.
#pragma once

#include <string_view>

#include "config/schema.h"

namespace tracefs {

// `when_full = block | drop`: of those with no place to spill to.
inline constexpr std::string_view kBlockOrDropWords[] = {"block", "drop"};
inline constexpr OptionRow kBlockOrDropOption = {.name = "when_full",
                                                 .type = ValueType::kChoice,
                                                 .words = kBlockOrDropWords};
// `deadline = 1s`: how long a write may wait.
inline constexpr OptionRow kDeadlineOption = {
    .name = "deadline", .type = ValueType::kDuration, .max = 60'000'000'000};

}  // namespace tracefs
