#include "tracefs/replay/caller_words.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "tracefs/event/field.h"
#include "tracefs/event/op_set.h"
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

bool AsksForAncestors(std::string_view word) {
  return word == "under" || word == Info(Field::kAncestor).predicate;
}

bool Changes(const Event& event) {
  if (event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0) return false;
  if (event.op == Op::open_) return (event.Get(Field::kFlags) & O_TRUNC) != 0;
  return ChangesFiles(event.op) || ChangesNames(event.op);
}

bool KnowsAncestors(Event& event) {
  return event.resolver != nullptr &&
         event.resolver->ForEachAncestor(
             event, nullptr,
             [](void*, uint32_t, std::string_view) { return true; });
}

}  // namespace

CallerWords::CallerWords(std::string_view question) : question_(question) {
  std::string_view rest = question;
  for (std::string_view word = TakeWord(&rest); !word.empty();
       word = TakeWord(&rest)) {
    asks_for_ancestors_ |= AsksForAncestors(word);
  }
}

void CallerWords::See(format::Record& record, bool is_answer) {
  Event& event = record.event;
  numbers_ |= event.present;
  texts_ |= record.text_present;
  if (!asks_for_ancestors_ || is_answer || !Changes(event)) return;
  // What the kernel does by itself is no process's.
  const uint64_t pid = event.GetOr0(Field::kPid);
  if (pid != 0 && !doubtful_.contains(pid) && !KnowsAncestors(event)) {
    doubtful_.insert(pid);
  }
}

bool CallerWords::Tells(Field field) const {
  return IsNumeric(field)
             ? (numbers_ & Bit(field)) != 0
             : (texts_ >> format::Record::TextIndex(field) & 1) != 0;
}

std::string CallerWords::AllTold() const {
  std::string known;
  for (const Field field : kAboutCallers) {
    if (!Tells(field)) continue;
    known += (known.empty() ? "" : ", ") + std::string(Info(field).predicate);
  }
  return known.empty() ? ", or anything else of who did it"
                       : "; of who did it they tell " + known;
}

std::string CallerWords::Missing(bool process_records) const {
  std::string_view rest = question_;
  for (std::string_view word = TakeWord(&rest); !word.empty();
       word = TakeWord(&rest)) {
    if (AsksForAncestors(word) && !process_records && !Tells(Field::kPpid)) {
      return "the trace does not tell whose child a process is, which takes "
             "STR_PROCESS, or STR_PPID for those that did something "
             "themselves" +
             AllTold();
    }
    const FieldInfo* const field = FieldByPredicate(word);
    if (field == nullptr || Tells(field->field) ||
        std::ranges::find(kAboutCallers, field->field) == kAboutCallers.end()) {
      continue;
    }
    return "no operation of the trace tells " + std::string(field->predicate) +
           AllTold();
  }
  return {};
}

}  // namespace tracefs::replay
