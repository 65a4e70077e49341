// TextCursor: walks over text a person wrote (a config, a filter), knows line
// and column, and words errors alike everywhere: "file:3:7: message".
//
// Both languages share what it skips and how it reads strings: blanks, line
// ends, comments from '#' to the end of the line; strings in double quotes on
// one line, with \" \\ \n \t and \xHH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// Both count from 1; a column is a byte, a tab one column.
struct SourcePosition {
  uint32_t line = 1;
  uint32_t column = 1;

  friend bool operator==(const SourcePosition&,
                         const SourcePosition&) = default;
};

// The `file` of a text that no user wrote: nobody could look a place in it up.
inline constexpr std::string_view kNobodysText = "(no config)";

// kInvalid with "file:line:column: message"; without any place if `file` is
// empty or kNobodysText: a line of nothing cannot be looked up.
Status ErrorAt(std::string_view file, SourcePosition position,
               std::string_view message);

// `word` between single quotes for a message: bytes that are not printable
// ASCII as \xHH, and cut after 40 bytes, because the text may be hostile.
std::string Quoted(std::string_view word);

class TextCursor {
 public:
  // `text` and `file` must outlive the cursor. `start` is where in the file
  // the text begins.
  TextCursor(std::string_view text, std::string_view file,
             SourcePosition start = {})
      : text_(text), file_(file), position_(start) {}

  bool AtEnd() const { return offset_ == text_.size(); }
  // The byte `ahead` of the cursor; '\0' beyond the end.
  char Peek(size_t ahead = 0) const {
    return ahead < text_.size() - offset_ ? text_[offset_ + ahead] : '\0';
  }
  std::string_view Rest() const { return text_.substr(offset_); }
  size_t offset() const { return offset_; }
  SourcePosition position() const { return position_; }
  std::string_view file() const { return file_; }
  // The text from `offset` to the cursor.
  std::string_view Since(size_t offset) const {
    return text_.substr(offset, offset_ - offset);
  }

  // What the words of a language consist of.
  using ByteClass = bool (*)(char);
  // The word at the cursor, or the byte there; empty at the end.
  std::string_view Next(ByteClass in_word) const;
  // The same quoted, for "expected …, found …"; `end` where nothing is left.
  std::string Found(ByteClass in_word, std::string_view end) const;
  // Passes a word; empty if there is none.
  std::string_view TakeWord(ByteClass in_word);
  // Passes `c` behind blanks, and tells whether it is there.
  bool Take(char c);

  // Moves on, at most to the end.
  void Advance(size_t bytes = 1);
  // Skips blanks, line ends and comments.
  void SkipSpace();
  // Reads a string; the cursor stands at its opening quote. Refuses strings of
  // more than `max_bytes`, and NUL, which no name in a file system can hold.
  Result<std::string> TakeString(size_t max_bytes);

  Status ErrorHere(std::string_view message) const {
    return ErrorAt(file_, position_, message);
  }

 private:
  std::string_view text_;
  std::string_view file_;
  size_t offset_ = 0;
  SourcePosition position_;
};

}  // namespace tracefs
