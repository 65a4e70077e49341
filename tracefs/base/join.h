// Lists of words as one text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tracefs {

// Puts `word` at the end of `list`, with `separator` before it unless nothing
// stands there yet.
inline void AppendWord(std::string_view word, std::string_view separator,
                       std::string* list) {
  if (!list->empty()) *list += separator;
  *list += word;
}

// "a, b, c": what `text_of`, a function or a member, makes of each word.
template <typename Words, typename TextOf = std::identity>
std::string JoinWords(const Words& words, std::string_view separator,
                      TextOf text_of = {}) {
  std::string list;
  for (const auto& word : words) {
    AppendWord(std::invoke(text_of, word), separator, &list);
  }
  return list;
}

}  // namespace tracefs
