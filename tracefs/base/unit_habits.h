// Units as people write them elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// "; did you mean 'x'?" of a number or duration with a unit that we write
// otherwise: "10MB" is 10M, "10sec" 10s. Nothing for all else.
std::string DidYouMeanNumber(std::string_view word);

}  // namespace tracefs
