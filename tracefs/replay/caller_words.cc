#include "tracefs/replay/caller_words.h"

#include <algorithm>
#include <array>

#include "tracefs/event/field.h"
#include "tracefs/format/record.h"

namespace tracefs::replay {
namespace {

constexpr std::array kAboutCallers = {Field::kTid,  Field::kPid,  Field::kPpid,
                                      Field::kPgid, Field::kSid,  Field::kUid,
                                      Field::kGid,  Field::kComm, Field::kExe};

bool IsOfWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// The next word outside of quotation marks; empty: there is none.
std::string_view TakeWord(std::string_view* text) {
  while (!text->empty() && !IsOfWord(text->front())) {
    if (const char mark = text->front(); mark == '"' || mark == '\'') {
      text->remove_prefix(std::min(text->find(mark, 1), text->size() - 1));
    }
    text->remove_prefix(1);
  }
  size_t end = 0;
  while (end < text->size() && IsOfWord((*text)[end])) ++end;
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

}  // namespace

bool CallerWords::Tells(Field field) const {
  return IsNumeric(field)
             ? (numbers_ & Bit(field)) != 0
             : (texts_ >> format::Record::TextIndex(field) & 1) != 0;
}

std::string CallerWords::Missing(std::string_view text) const {
  std::string_view rest = text;
  for (std::string_view word = TakeWord(&rest); !word.empty();
       word = TakeWord(&rest)) {
    const FieldInfo* const field = FieldByPredicate(word);
    if (field == nullptr || Tells(field->field) ||
        std::ranges::find(kAboutCallers, field->field) == kAboutCallers.end()) {
      continue;
    }
    std::string known;
    for (const Field other : kAboutCallers) {
      if (!Tells(other)) continue;
      known += (known.empty() ? "" : ", ") + std::string(Info(other).predicate);
    }
    return "no operation of the trace tells " + std::string(field->predicate) +
           (known.empty() ? ", or anything else of who did it"
                          : "; of who did it they tell " + known);
  }
  return {};
}

}  // namespace tracefs::replay
