#include "config/value.h"

#include <algorithm>
#include <string>

#include "tracefs/base/spelling.h"
#include "tracefs/base/unit_habits.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

// What a value of this type looks like, for "needs …".
std::string Wanted(const OptionRow& row) {
  switch (row.type) {
    case ValueType::kNone:
      return "no value";
    case ValueType::kText:
      return "a value: a string or a word";
    case ValueType::kChoice: {
      std::string words = "one of";
      for (const std::string_view word : row.words) {
        words += ' ';
        words += word;
      }
      return words;
    }
    case ValueType::kCount:
      return "a number, as 4 or 0x40";
    case ValueType::kSize:
      return "a size, as 4096, 256K or 1M";
    case ValueType::kDuration:
      return "a duration, as 250ms, 10s or 2m";
    case ValueType::kFlags:
      return "flags in braces, as { FLAG | FLAG }";
    case ValueType::kBlock:
      return "a block in braces";
    case ValueType::kRest:
      return "text";
  }
  return "a value";
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

Status CheckFlags(const OptionRow& row, std::string_view what,
                  std::string_view file, ConfigValue* value) {
  TextCursor in(value->text, file, value->position);
  in.SkipSpace();
  while (!in.AtEnd()) {
    const size_t begin = in.offset();
    const SourcePosition position = in.position();
    while (IsWordByte(in.Peek())) in.Advance();
    const std::string_view word = in.Since(begin);
    if (word.empty()) {
      return in.ErrorHere("expected a flag of " + std::string(what) +
                          ", found " + Quoted(in.Rest().substr(0, 1)));
    }
    if (std::find(row.words.begin(), row.words.end(), word) ==
        row.words.end()) {
      return ErrorAt(file, position,
                     "unknown flag " + Quoted(word) + " of " +
                         std::string(what) + DidYouMean(word, row.words));
    }
    for (const ConfigWord& earlier : value->flags) {
      if (earlier.text == word) {
        return ErrorAt(file, position,
                       "flag " + Quoted(word) + " is given twice");
      }
    }
    value->flags.push_back({std::string(word), position});
    in.SkipSpace();
    if (in.AtEnd()) break;
    if (in.Peek() != '|') {
      return in.ErrorHere("expected '|' or '}' after flag " + Quoted(word));
    }
    in.Advance();
    in.SkipSpace();
    if (in.AtEnd()) return in.ErrorHere("expected a flag after '|'");
  }
  return Status::Ok();
}

}  // namespace

Status CheckValue(const OptionRow& row, ValueForm form, std::string_view what,
                  std::string_view file, SourcePosition position, bool needed,
                  ConfigValue* value) {
  const std::string owner(what);
  if (form == ValueForm::kAbsent) {
    if (!needed) return Status::Ok();
    return ErrorAt(file, position, owner + " needs '= …': " + Wanted(row));
  }
  const bool braces =
      row.type == ValueType::kFlags || row.type == ValueType::kBlock;
  if (row.type == ValueType::kNone || braces != (form == ValueForm::kBlock)) {
    return ErrorAt(file, form == ValueForm::kBlock ? position : value->position,
                   owner + " takes " + Wanted(row));
  }
  value->type = row.type;
  switch (row.type) {
    case ValueType::kNone:
    case ValueType::kBlock:
    case ValueType::kRest:
      return Status::Ok();
    case ValueType::kText:
      if (value->text.empty()) {
        return ErrorAt(file, value->position, owner + " is empty");
      }
      return Status::Ok();
    case ValueType::kFlags:
      return CheckFlags(row, what, file, value);
    case ValueType::kChoice:
      if (std::find(row.words.begin(), row.words.end(), value->text) !=
          row.words.end()) {
        return Status::Ok();
      }
      return ErrorAt(file, value->position,
                     "unknown value " + Quoted(value->text) + " of " + owner +
                         ", which takes " + Wanted(row) +
                         DidYouMean(value->text, row.words));
    case ValueType::kCount:
    case ValueType::kSize:
    case ValueType::kDuration: {
      const std::optional<uint64_t> number =
          row.type == ValueType::kCount  ? ParseUnsigned(value->text)
          : row.type == ValueType::kSize ? ParseSize(value->text)
                                         : ParseDuration(value->text);
      if (!number) {
        return ErrorAt(file, value->position,
                       owner + " takes " + Wanted(row) + ", not " +
                           Quoted(value->text) +
                           (row.type == ValueType::kCount
                                ? ""
                                : DidYouMeanNumber(value->text)));
      }
      if (*number < row.min || *number > row.max) {
        const char* unit = row.type == ValueType::kSize       ? " bytes"
                           : row.type == ValueType::kDuration ? " ns"
                                                              : "";
        return ErrorAt(file, value->position,
                       owner + " must lie between " + std::to_string(row.min) +
                           " and " + std::to_string(row.max) + unit + ", not " +
                           Quoted(value->text));
      }
      value->number = *number;
      return Status::Ok();
    }
  }
  return Status::Ok();
}

}  // namespace tracefs
