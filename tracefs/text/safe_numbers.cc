#include "tracefs/text/safe_numbers.h"

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

constexpr std::string_view kLargest = "9007199254740991";

bool IsPartOfNumber(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
         c == 'e' || c == 'E';
}

bool IsTooLarge(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  // A fraction is no whole number.
  if (!IsMadeOf(number, kDecimalDigits)) return false;
  return number.size() != kLargest.size() ? number.size() > kLargest.size()
                                          : number > kLargest;
}

}  // namespace

void SafeNumbers::EndNumber() {
  if (number_.empty()) return;
  const bool quoted = IsTooLarge(number_);
  if (quoted) out_.Append("\"");
  out_.Append(number_);
  if (quoted) out_.Append("\"");
  number_.clear();
}

Status SafeNumbers::Emit(std::string_view text) {
  size_t plain = 0;  // from here on nothing was passed on yet
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
      continue;
    }
    // Letters of true, false and null are no numbers: these begin otherwise.
    if ((c >= '0' && c <= '9') || c == '-' ||
        (!number_.empty() && IsPartOfNumber(c))) {
      if (number_.empty()) out_.Append(text.substr(plain, i - plain));
      number_ += c;
      plain = i + 1;
      continue;
    }
    EndNumber();
    in_string_ = c == '"';
  }
  if (number_.empty()) out_.Append(text.substr(plain));
  return out_.Flush();
}

}  // namespace tracefs
