// Finds the known word a mistyped one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tracefs {

// Whether the two differ only in the case of ASCII letters.
bool SameButForCase(std::string_view a, std::string_view b);

// The word of `known` with the smallest edit distance to `word` (insert,
// remove, replace or swap two neighbours; case does not count), the first one
// if several are equal. Empty if none is near: more than a third of the letters
// differ, and none begins with it.
std::string_view NearestWord(std::string_view word,
                             std::span<const std::string_view> known);

// "; did you mean 'x'?" or nothing, to append to a message.
std::string DidYouMean(std::string_view word,
                       std::span<const std::string_view> known);

}  // namespace tracefs
