// Words that stand for values: of options, in one table for what is read, what
// is refused and what is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tracefs {

template <typename Value>
struct Choice {
  std::string_view word;
  Value value;
};

// The words, with blanks between.
template <typename Value, size_t kCount>
std::string WordsOf(const Choice<Value> (&choices)[kCount]) {
  std::string words;
  for (const Choice<Value>& choice : choices) {
    if (!words.empty()) words += ' ';
    words += choice.word;
  }
  return words;
}

}  // namespace tracefs
