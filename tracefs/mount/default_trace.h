// A recording that nobody wrote a config for: where it goes, and what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// Most that the traces of one mount take before older parts go.
inline constexpr uint64_t kDefaultPartBytes = uint64_t{256} << 20;
inline constexpr unsigned kDefaultParts = 4;

// "FOLDER/NAME-20261122T031405Z.trace", which does not exist. NAME is the last
// part of `of`, of letters, digits and the like alone.
std::string DatedTraceIn(const std::string& folder, std::string_view of);

// The same in a folder of this user's alone: below StateFolder(), or where that
// is not to be had, or lies in the directory that is traced, in /var/tmp. With
// `here`, that is the last resort, else kSystem or kInvalid.
Result<std::string> NewTraceOf(const std::string& traced,
                               std::string_view here = {});

// A tracer of everything worth recording: `filter`, or all but locks, which
// stay with the kernel.
std::string FilterOr(std::string_view filter);
// The lines of `rules` have the numbers that they have there.
std::string MountConfigText(const std::string& trace, std::string_view rules);
// In a name of a file it stands for something.
std::string WithoutPatterns(std::string_view path);

}  // namespace tracefs
