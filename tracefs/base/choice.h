// Words that stand for values: of options, in one table for what is read, what
// is refused and what is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "tracefs/base/join.h"

namespace tracefs {

template <typename Value>
struct Choice {
  std::string_view word;
  Value value;
};

// The words, with blanks between.
template <typename Value, size_t kCount>
std::string WordsOf(const Choice<Value> (&choices)[kCount]) {
  return JoinWords(choices, " ", &Choice<Value>::word);
}

// The word of `value`; `otherwise` if it has none.
template <typename Value, size_t kCount>
constexpr std::string_view WordOf(const Choice<Value> (&choices)[kCount],
                                  std::type_identity_t<Value> value,
                                  std::string_view otherwise = {}) {
  for (const Choice<Value>& choice : choices) {
    if (choice.value == value) return choice.word;
  }
  return otherwise;
}

}  // namespace tracefs
