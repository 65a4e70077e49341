// Habits: words of other tools that people type into filters, and ours.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tracefs {

// "; did you mean 'x'?": what a word of another tool is called here, else the
// nearest known one; or nothing.
std::string DidYouMeanOp(std::string_view word,
                         std::span<const std::string_view> known);
std::string DidYouMeanPredicate(std::string_view word,
                                std::span<const std::string_view> known);

}  // namespace tracefs
