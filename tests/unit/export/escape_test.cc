// Escaping, against a JSON library and against decoders written here.
#include "tracefs/text/escape.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tracefs/text/decimal.h"

namespace tracefs {
namespace {

using nlohmann::json;

std::string Escaped(std::string_view text) {
  std::string out(6 * text.size() + 8, '#');
  char* const end = PutJsonIfUtf8(out.data(), text);
  if (end == nullptr) return "not UTF-8";
  out.resize(static_cast<size_t>(end - out.data()));
  return out;
}

// RFC 3629's table, as plainly as can be.
bool IsUtf8Slowly(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto b = [&](size_t at) {
      return at < s.size() ? static_cast<unsigned char>(s[at]) : 0;
    };
    const auto in = [&](size_t at, int low, int high) {
      return b(at) >= low && b(at) <= high;
    };
    if (in(i, 0x00, 0x7f)) {
      i += 1;
    } else if (in(i, 0xc2, 0xdf) && in(i + 1, 0x80, 0xbf)) {
      i += 2;
    } else if ((in(i, 0xe0, 0xe0) && in(i + 1, 0xa0, 0xbf) &&
                in(i + 2, 0x80, 0xbf)) ||
               ((in(i, 0xe1, 0xec) || in(i, 0xee, 0xef)) &&
                in(i + 1, 0x80, 0xbf) && in(i + 2, 0x80, 0xbf)) ||
               (in(i, 0xed, 0xed) && in(i + 1, 0x80, 0x9f) &&
                in(i + 2, 0x80, 0xbf))) {
      i += 3;
    } else if (((in(i, 0xf0, 0xf0) && in(i + 1, 0x90, 0xbf)) ||
                (in(i, 0xf1, 0xf3) && in(i + 1, 0x80, 0xbf)) ||
                (in(i, 0xf4, 0xf4) && in(i + 1, 0x80, 0x8f))) &&
               in(i + 2, 0x80, 0xbf) && in(i + 3, 0x80, 0xbf)) {
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

// Bytes that often come near to being UTF-8.
std::string NearlyUtf8(std::mt19937_64& random) {
  constexpr unsigned char kBytes[] = {
      0x00, 'a',  '"',  '\\', '\n', 0x1f, 0x20, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
      0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
  std::string text(random() % 30, ' ');
  for (char& c : text) {
    if (random() % 3 == 0) {
      c = static_cast<char>(kBytes[random() % sizeof kBytes]);
    }
  }
  return text;
}

TEST(Utf8Test, AgreesWithTheTableOfTheRfc) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (const int c : {-1, 0x00, 0x7f, 0x80, 0xbf, 0xc0}) {
        for (const int d : {-1, 0x80, 0xbf, 0xff}) {
          std::string text = {static_cast<char>(a), static_cast<char>(b)};
          if (c >= 0) text += static_cast<char>(c);
          if (d >= 0) text += static_cast<char>(d);
          ASSERT_EQ(IsUtf8(text), IsUtf8Slowly(text));
        }
      }
    }
  }
}

TEST(JsonEscapeTest, ALibraryReadsBackEveryText) {
  std::mt19937_64 random(1);
  int valid = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text = NearlyUtf8(random);
    const std::string escaped = Escaped(text);
    if (!IsUtf8Slowly(text)) {
      ASSERT_EQ(escaped, "not UTF-8");
      continue;
    }
    ++valid;
    const json parsed = json::parse("\"" + escaped + "\"", nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << escaped;
    ASSERT_EQ(parsed.get<std::string>(), text);
  }
  EXPECT_GT(valid, 1000);
}

TEST(JsonEscapeTest, WhatCannotBeSeenIsSpelledOutAtEveryPlaceOfAWord) {
  const std::map<std::string, std::string> cases = {
      {"\x7f", "\\u007f"},
      {"\xc2\x9b", "\\u009b"},      // C1: CSI
      {"\xc2\xad", "\\u00ad"},      // soft hyphen
      {"\xd8\x9c", "\\u061c"},      // Arabic letter mark
      {"\xe2\x80\x8e", "\\u200e"},  // left to right
      {"\xe2\x80\x8f", "\\u200f"},  // right to left
      {"\xe2\x80\xa8", "\\u2028"},  // line end
      {"\xe2\x80\xa9", "\\u2029"},  // paragraph end
      {"\xe2\x80\xaa", "\\u202a"},  // embedding
      {"\xe2\x80\xae", "\\u202e"},  // override
      {"\xe2\x81\xa6", "\\u2066"},  // isolates
      {"\xe2\x81\xa9", "\\u2069"},
      {"\xef\xbb\xbf", "\\ufeff"},
      {"\xf3\xa0\x81\xbf", "\\udb40\\udc7f"},  // a tag
  };
  for (const auto& [character, wanted] : cases) {
    for (size_t at = 0; at < 17; ++at) {
      std::string text(17, 'x');
      text.insert(at, character);
      std::string escaped(17, 'x');
      escaped.insert(at, wanted);
      ASSERT_EQ(Escaped(text), escaped);
      ASSERT_EQ(json::parse("\"" + escaped + "\"").get<std::string>(), text);
      // JSON that another library wrote.
      ASSERT_EQ(JsonWithoutHidden("\"" + text + "\""), "\"" + escaped + "\"");
    }
  }
  // Their neighbours can be seen.
  for (const char* text : {"\xc2\xa0", "\xd8\x9d", "\xe2\x80\x90",
                           "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe2\x81\xb0"}) {
    EXPECT_EQ(Escaped(text), text);
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(JsonEscapeTest, EveryByteAtEveryPlaceOfAWord) {
  for (int c = 0; c < 0x80; ++c) {
    for (size_t at = 0; at < 17; ++at) {
      std::string text(17, 'x');
      text[at] = static_cast<char>(c);
      const json parsed = json::parse("\"" + Escaped(text) + "\"");
      ASSERT_EQ(parsed.get<std::string>(), text);
    }
  }
}

TEST(Base64Test, MatchesTheVectorsOfRfc4648AndComesBack) {
  const auto encode = [](std::string_view bytes) {
    std::string out(Base64Size(bytes.size()), '#');
    EXPECT_EQ(PutBase64(out.data(), bytes), out.data() + out.size());
    return out;
  };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foob"), "Zm9vYg==");
  EXPECT_EQ(encode("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode("\xff\xfe\xfd"), "//79");
}

TEST(TerminalTest, ControlAndHiddenCharactersAreSpelledOut) {
  EXPECT_EQ(TerminalWord("/usr/lib/libc.so"), "/usr/lib/libc.so");
  EXPECT_EQ(TerminalWord("a\nb\tc\\d"), "a\\nb\\tc\\\\d");
  EXPECT_EQ(TerminalWord("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(TerminalWord("na\xc3\xafve"), "na\xc3\xafve");
  EXPECT_EQ(TerminalWord("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(TerminalWord("\xc2\x9b"), "\\xc2\\x9b");           // C1: CSI
  EXPECT_EQ(TerminalWord("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(TerminalWord("\x7f"), "\\x7f");
  EXPECT_EQ(TerminalWord("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");  // isolates
  EXPECT_EQ(TerminalWord("\xe2\x81\xa9"), "\\xe2\\x81\\xa9");
  EXPECT_EQ(TerminalWord("\xd8\x9c"), "\\xd8\\x9c");
  EXPECT_EQ(TerminalWord("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
}

TEST(TerminalTest, EveryCharacterAtEveryPlaceOfAWord) {
  std::vector<std::string> characters = {"\xc2\x9b", "\xc3\xa4", "\xff"};
  for (int c = 0; c < 0x80; ++c) {
    characters.emplace_back(1, static_cast<char>(c));
  }
  for (const std::string& character : characters) {
    const std::string alone = TerminalText(character);
    for (size_t at = 0; at < 17; ++at) {
      std::string text(17, 'x');
      text.insert(at, character);
      std::string escaped(17, 'x');
      escaped.insert(at, alone);
      ASSERT_EQ(TerminalText(text), escaped);
    }
  }
}

TEST(PrintableTest, IsOneLineAndDoneTwiceTheSame) {
  EXPECT_EQ(Printable("open '/a\\b c'"), "open '/a\\b c'");
  EXPECT_EQ(Printable("a\nb\x1b\xff\xe2\x81\xa9"),
            "a\\nb\\x1b\\xff\\xe2\\x81\\xa9");
  std::mt19937_64 random(4);
  for (int i = 0; i < 10'000; ++i) {
    const std::string once = Printable(NearlyUtf8(random));
    ASSERT_TRUE(IsUtf8Slowly(once));
    ASSERT_EQ(Printable(once), once);
  }
}

TEST(TerminalTest, WordsWithoutVisibleEndsAreQuoted) {
  EXPECT_EQ(TerminalWord(""), "\"\"");
  EXPECT_EQ(TerminalWord("a b"), "\"a b\"");
  EXPECT_EQ(TerminalWord("say \"hi\""), "\"say \\\"hi\\\"\"");
  EXPECT_EQ(TerminalWord("a\xc2\xa0"
                         "b"),
            "\"a\xc2\xa0"
            "b\"");
  EXPECT_EQ(TerminalWord("a\xe3\x80\x80"
                         "b"),
            "\"a\xe3\x80\x80"
            "b\"");
  EXPECT_EQ(TerminalWord("a[1]", "[]"), "\"a[1]\"");
}

TEST(TerminalTest, NothingATerminalObeysIsLeft) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = NearlyUtf8(random);
    const std::string word = TerminalWord(text);
    EXPECT_LE(word.size(), 4 * text.size() + 2);
    ASSERT_TRUE(IsUtf8Slowly(word));
    for (size_t at = 0; at < word.size(); ++at) {
      const auto c = static_cast<unsigned char>(word[at]);
      ASSERT_TRUE(c >= 0x20 && c != 0x7f);
      if (c == 0xc2) {
        ASSERT_GE(static_cast<unsigned char>(word[at + 1]), 0xa0);
      }
    }
  }
}

TEST(DecimalTest, AgreesWithTheStandardLibrary) {
  const auto check = [](uint64_t value) {
    std::array<char, kMaxDecimal> text;
    ASSERT_EQ(std::string(text.data(), PutDecimal(text.data(), value)),
              std::to_string(value));
    std::array<char, kMaxDecimal + 1> text2;
    const auto as_signed = static_cast<int64_t>(value);
    ASSERT_EQ(
        std::string(text2.data(), PutSignedDecimal(text2.data(), as_signed)),
        std::to_string(as_signed));
  };
  std::mt19937_64 random(3);
  for (uint64_t power = 1; power <= 10'000'000'000'000'000'000u;) {
    for (const uint64_t value : {power - 1, power, power + 1}) check(value);
    if (power == 10'000'000'000'000'000'000u) break;
    power *= 10;
  }
  check(UINT64_MAX);
  check(uint64_t{1} << 63);
  for (int i = 0; i < 100'000; ++i) check(random() >> (random() % 64));
}

TEST(EscapeTest, WhatMayNeedEscapesIsFoundAtAnyPlace) {
  for (size_t size = 0; size < 20; ++size) {
    const std::string plain(size, 'a');
    EXPECT_FALSE(MayNeedEscapes(plain)) << size;
    for (size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text = plain;
        text[at] = static_cast<char>(byte);
        EXPECT_EQ(MayNeedEscapes(text), Escaped(text) != text)
            << byte << " at " << at << " of " << size;
      }
    }
  }
}

}  // namespace
}  // namespace tracefs
