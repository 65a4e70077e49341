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
// Of a number or duration with a unit that we write otherwise: "10MB" is 10M,
// "10sec" 10s.
std::string DidYouMeanNumber(std::string_view word);

}  // namespace tracefs
