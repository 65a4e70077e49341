#include "tracefs/text/csv_text.h"

#include <algorithm>
#include <cstdint>

#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

// Where spreadsheets begin a cell within text, besides its start.
constexpr char kOtherSeparator = ';';

bool IsSign(uint32_t c) {
  return c == '=' || c == '+' || c == '-' || c == '@' || c == 0xff1d ||
         c == 0xff0b || c == 0xff0d || c == 0xff20;
}

// The sign that a cell begins with, behind blanks.
FormulaSign SignOfCell(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    if (point.size == 0) break;
    if (IsSign(point.value)) return {at, point.size};
    if (!IsBlank(point.value)) break;
    at += point.size;
  }
  return {};
}

char* PutCell(char* out, std::string_view text, CsvReader reader) {
  while (reader == CsvReader::kSpreadsheet) {
    const FormulaSign sign = FindFormula(text);
    if (sign.size == 0) break;
    out = PutTerminalEscaped(out, text.substr(0, sign.at));
    for (const char c : text.substr(sign.at, sign.size)) {
      out = PutHexEscape(out, c);
    }
    text.remove_prefix(sign.at + sign.size);
    // What follows is no beginning of a cell, until the next separator.
    const size_t next = std::min(text.find(kOtherSeparator), text.size());
    out = PutTerminalEscaped(out, text.substr(0, next));
    text.remove_prefix(next);
  }
  return PutTerminalEscaped(out, text);
}

}  // namespace

FormulaSign FindFormula(std::string_view text) {
  FormulaSign sign = SignOfCell(text, 0);
  for (size_t at = 0; sign.size == 0;) {
    at = text.find(kOtherSeparator, at);
    if (at == std::string_view::npos) break;
    sign = SignOfCell(text, ++at);
  }
  return sign;
}

char* PutCsvText(char* out, std::string_view text, CsvReader reader) {
  // Not find_first_of, which looks for each byte of the text in the two.
  if (text.find(',') == std::string_view::npos &&
      text.find('"') == std::string_view::npos) {
    return PutCell(out, text, reader);
  }
  char* const begin = out;
  out = PutCell(out + 1, text, reader);
  // Quotes are doubled from the end on, in place: they have room, for none of
  // them was escaped.
  const auto quotes = std::count(begin + 1, out, '"');
  char* to = out + quotes;
  char* const end = to;
  for (char* from = out; from != begin + 1;) {
    *--to = *--from;
    if (*from == '"') *--to = '"';
  }
  *begin = '"';
  *end = '"';
  return end + 1;
}

std::string CsvText(std::string_view text, CsvReader reader) {
  std::string out(4 * text.size() + 2, '\0');
  out.resize(
      static_cast<size_t>(PutCsvText(out.data(), text, reader) - out.data()));
  return out;
}

}  // namespace tracefs
