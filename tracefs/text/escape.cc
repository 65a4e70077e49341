#include "tracefs/text/escape.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tracefs/base/bytes.h"
#include "tracefs/base/text.h"

namespace tracefs {
namespace {

// What a byte becomes in JSON: 0 = itself, 'u' = \u00NN, else \ and that.
// Bytes from 0x80 on are left to the caller: 1.
constexpr std::array<char, 256> kJson = [] {
  std::array<char, 256> table{};
  for (int c = 0; c < 0x20; ++c) table[c] = 'u';
  table['\b'] = 'b';
  table['\t'] = 't';
  table['\n'] = 'n';
  table['\f'] = 'f';
  table['\r'] = 'r';
  table['"'] = '"';
  table['\\'] = '\\';
  table[0x7f] = 'u';
  for (int c = 0x80; c < 0x100; ++c) table[c] = 1;
  return table;
}();

// True if one of eight bytes is not plain: below 0x20, '"', '\\' or above 0x7e
// (the classic "has a byte less than n" and "has a zero byte" tests; false
// alarms are possible only beside a byte that is not plain).
bool AnySpecial(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHigh = 0x8080808080808080;
  const uint64_t quote = word ^ (kOnes * '"');
  const uint64_t backslash = word ^ (kOnes * '\\');
  return (((word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) |
           word | (word + kOnes)) &
          kHigh) != 0;
}

char* PutJsonByte(char* out, unsigned char c, char how) {
  *out++ = '\\';
  if (how != 'u') {
    *out++ = how;
    return out;
  }
  std::memcpy(out, "u00", 3);
  out[3] = kHexDigits[c >> 4];
  out[4] = kHexDigits[c & 15];
  return out + 5;
}

// \uXXXX; a pair of them beyond 16 bits.
char* PutJsonCodePoint(char* out, uint32_t c) {
  const auto put = [&out](uint32_t unit) {
    *out++ = '\\';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) {
      *out++ = kHexDigits[unit >> shift & 15];
    }
  };
  if (c < 0x10000) {
    put(c);
  } else {
    put(0xd800 + ((c - 0x10000) >> 10));
    put(0xdc00 + ((c - 0x10000) & 0x3ff));
  }
  return out;
}

template <bool kCheckUtf8>
char* PutJson(char* out, std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (end - at >= 8) {
      const auto word = LoadLe<uint64_t>(at);
      if (!AnySpecial(word)) {
        StoreLe<uint64_t>(out, word);
        at += 8;
        out += 8;
        continue;
      }
    }
    // Byte by byte, as far as a word reaches.
    const char* const stop = end - at >= 8 ? at + 8 : end;
    while (at < stop) {
      const auto c = static_cast<unsigned char>(*at);
      const char how = kJson[c];
      if (how == 0) {
        *out++ = *at++;
      } else if (how != 1) {
        out = PutJsonByte(out, c, how);
        ++at;
      } else {
        const CodePoint point =
            FirstCodePoint({at, static_cast<size_t>(end - at)});
        if (point.size == 0) {
          if (kCheckUtf8) return nullptr;
          *out++ = *at++;  // against the contract: as it is
          continue;
        }
        if (IsHidden(point.value)) {
          out = PutJsonCodePoint(out, point.value);
        } else {
          std::memcpy(out, at, point.size);
          out += point.size;
        }
        at += point.size;
      }
    }
  }
  return out;
}

// Where a word ends could not be seen, or it could be taken for another.
bool NeedsQuotes(std::string_view text, std::string_view more) {
  if (text.empty()) return true;
  bool ascii = true;
  for (const char c : text) {
    if (c == ' ' || c == '"') return true;
    if (more.find(c) != std::string_view::npos) return true;
    ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  }
  while (!ascii && !text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    if (IsBlank(point.value)) return true;
    text.remove_prefix(std::max<size_t>(point.size, 1));
  }
  return false;
}

}  // namespace

char* PutHexEscape(char* out, char byte) {
  const auto c = static_cast<unsigned char>(byte);
  out[0] = '\\';
  out[1] = 'x';
  out[2] = kHexDigits[c >> 4];
  out[3] = kHexDigits[c & 15];
  return out + 4;
}

char* PutJsonEscaped(char* out, std::string_view text) {
  return PutJson<false>(out, text);
}

char* PutJsonIfUtf8(char* out, std::string_view text) {
  return PutJson<true>(out, text);
}

char* PutBase64(char* out, std::string_view bytes) {
  constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t i = 0;
  const auto byte = [&bytes](size_t at) {
    return static_cast<uint32_t>(static_cast<unsigned char>(bytes[at]));
  };
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *out++ = kDigits[group >> 18];
    *out++ = kDigits[group >> 12 & 63];
    *out++ = kDigits[group >> 6 & 63];
    *out++ = kDigits[group & 63];
  }
  const size_t left = bytes.size() - i;
  if (left != 0) {
    const uint32_t group = byte(i) << 16 | (left == 2 ? byte(i + 1) << 8 : 0);
    *out++ = kDigits[group >> 18];
    *out++ = kDigits[group >> 12 & 63];
    *out++ = left == 2 ? kDigits[group >> 6 & 63] : '=';
    *out++ = '=';
  }
  return out;
}

char* PutTerminalEscaped(char* out, std::string_view text) {
  while (!text.empty()) {
    // What JSON has no need to escape, a terminal hasn't either.
    if (text.size() >= 8) {
      const auto word = LoadLe<uint64_t>(text.data());
      if (!AnySpecial(word)) {
        StoreLe<uint64_t>(out, word);
        out += 8;
        text.remove_prefix(8);
        continue;
      }
    }
    const auto c = static_cast<unsigned char>(text.front());
    if (c > 0x20 && c < 0x7f && c != '\\') {  // nearly always
      *out++ = text.front();
      text.remove_prefix(1);
      continue;
    }
    const CodePoint point = FirstCodePoint(text);
    if (point.size != 0 && !IsHidden(point.value) && point.value != '\\') {
      std::memcpy(out, text.data(), point.size);
      out += point.size;
      text.remove_prefix(point.size);
      continue;
    }
    if (c == '\n' || c == '\t' || c == '\\') {
      *out++ = '\\';
      *out++ = c == '\n' ? 'n' : c == '\t' ? 't' : '\\';
    } else {
      // All bytes of a hidden character, one by one.
      for (size_t i = 1; i < point.size; ++i) {
        out = PutHexEscape(out, static_cast<unsigned char>(text.front()));
        text.remove_prefix(1);
      }
      out = PutHexEscape(out, static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(1);
  }
  return out;
}

char* PutTerminalWord(char* out, std::string_view text, std::string_view more) {
  if (!NeedsQuotes(text, more)) return PutTerminalEscaped(out, text);
  *out++ = '"';
  while (!text.empty()) {
    const size_t quote = std::min(text.find('"'), text.size());
    out = PutTerminalEscaped(out, text.substr(0, quote));
    text.remove_prefix(quote);
    if (text.empty()) break;
    *out++ = '\\';
    *out++ = '"';
    text.remove_prefix(1);
  }
  *out++ = '"';
  return out;
}

std::string TerminalWord(std::string_view text, std::string_view more) {
  std::string word(4 * text.size() + 2, '\0');
  word.resize(static_cast<size_t>(PutTerminalWord(word.data(), text, more) -
                                  word.data()));
  return word;
}

std::string TerminalText(std::string_view text) {
  std::string out(4 * text.size(), '\0');
  out.resize(
      static_cast<size_t>(PutTerminalEscaped(out.data(), text) - out.data()));
  return out;
}

bool MayNeedEscapes(std::string_view text) {
  size_t at = 0;
  for (; text.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (AnySpecial(word)) return true;
  }
  // What is left, after as many plain bytes as make it whole.
  uint64_t word = 0x2020202020202020;
  std::memcpy(&word, text.data() + at, text.size() - at);
  return AnySpecial(word);
}

std::string Utf8Text(std::string_view bytes) {
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string text(4 * bytes.size(), '\0');
  text.resize(static_cast<size_t>(PutTerminalEscaped(text.data(), bytes) -
                                  text.data()));
  return text;
}

}  // namespace tracefs
