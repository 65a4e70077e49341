#include "tracefs/base/text_cursor.h"

#include <algorithm>

namespace tracefs {
namespace {

constexpr size_t kMaxQuotedBytes = 40;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Status ErrorAt(std::string_view file, SourcePosition position,
               std::string_view message) {
  if (file.empty() || file == kNobodysText) {
    return Status::Invalid(std::string(message));
  }
  std::string text(file);
  text += ':' + std::to_string(position.line) + ':' +
          std::to_string(position.column) + ": ";
  text += message;
  return Status::Invalid(std::move(text));
}

std::string Quoted(std::string_view word) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : word.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      quoted += "\\x";
      quoted += kDigits[byte >> 4];
      quoted += kDigits[byte & 15];
    } else {
      quoted += c;
    }
  }
  if (word.size() > kMaxQuotedBytes) quoted += "...";
  quoted += '\'';
  return quoted;
}

std::string_view TextCursor::Next(ByteClass in_word) const {
  size_t length = 0;
  while (in_word(Peek(length))) ++length;
  return Rest().substr(0, std::max<size_t>(length, 1));
}

std::string TextCursor::Found(ByteClass in_word, std::string_view end) const {
  return AtEnd() ? std::string(end) : Quoted(Next(in_word));
}

std::string_view TextCursor::TakeWord(ByteClass in_word) {
  const size_t begin = offset_;
  while (in_word(Peek())) Advance();
  return Since(begin);
}

bool TextCursor::Take(char c) {
  SkipSpace();
  if (AtEnd() || Peek() != c) return false;
  Advance();
  return true;
}

void TextCursor::Advance(size_t bytes) {
  const size_t end = offset_ + std::min(bytes, text_.size() - offset_);
  for (; offset_ < end; ++offset_) {
    if (text_[offset_] == '\n') {
      ++position_.line;
      position_.column = 1;
    } else {
      ++position_.column;
    }
  }
}

void TextCursor::SkipSpace() {
  while (!AtEnd()) {
    switch (Peek()) {
      case ' ':
      case '\t':
      case '\r':
      case '\n':
        Advance();
        break;
      case '#':
        while (!AtEnd() && Peek() != '\n') Advance();
        break;
      default:
        return;
    }
  }
}

Result<std::string> TextCursor::TakeString(size_t max_bytes) {
  const SourcePosition begin = position_;
  std::string value;
  Advance();
  for (;;) {
    if (AtEnd() || Peek() == '\n') {
      return ErrorAt(file_, begin,
                     "this string has no closing quote on its line");
    }
    char c = Peek();
    if (c == '"') break;
    if (c == '\\') {
      const int high = HexDigit(Peek(2));
      const int low = HexDigit(Peek(3));
      switch (Peek(1)) {
        case '"':
        case '\\':
          c = Peek(1);
          break;
        case 'n':
          c = '\n';
          break;
        case 't':
          c = '\t';
          break;
        case 'x':
          if (high < 0 || low < 0) {
            return ErrorHere("\\x needs two hexadecimal digits");
          }
          c = static_cast<char>(high * 16 + low);
          Advance(2);
          break;
        default:
          return ErrorHere(
              "unknown escape in a string; known are \\\" \\\\ \\n \\t \\xHH");
      }
      Advance();
    }
    if (c == '\0') return ErrorHere("a string cannot hold a NUL byte");
    if (value.size() == max_bytes) {
      return ErrorAt(
          file_, begin,
          "this string is longer than " + std::to_string(max_bytes) + " bytes");
    }
    value += c;
    Advance();
  }
  Advance();
  return value;
}

}  // namespace tracefs
