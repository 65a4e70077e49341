// Keys out of what terminals send: whole, in pieces, and anything else.
#include "tracefs/screen/keys.h"

#include <gtest/gtest.h>

#include <random>

namespace tracefs::screen {
namespace {

using Kind = Key::Kind;

struct Sent {
  std::string bytes;
  Kind kind;
  std::string text;
  unsigned number;
};

const std::vector<Sent> kSent = {
    {"q", Kind::kText, "q", 0},
    {"\xc3\xa4", Kind::kText, "\xc3\xa4", 0},
    {"\r", Kind::kEnter, "", 0},
    {"\n", Kind::kEnter, "", 0},
    {"\t", Kind::kTab, "", 0},
    {"\x1b[Z", Kind::kBackTab, "", 0},
    {"\x7f", Kind::kBackspace, "", 0},
    {"\b", Kind::kBackspace, "", 0},
    {"\x1b[A", Kind::kUp, "", 0},
    {"\x1bOB", Kind::kDown, "", 0},
    {"\x1b[1;2C", Kind::kRight, "", 0},
    {"\x1b[D", Kind::kLeft, "", 0},
    {"\x1b[5~", Kind::kPageUp, "", 0},
    {"\x1b[6~", Kind::kPageDown, "", 0},
    {"\x1b[H", Kind::kHome, "", 0},
    {"\x1b[4~", Kind::kEnd, "", 0},
    {"\x1bOP", Kind::kFunction, "", 1},
    {"\x1b[15~", Kind::kFunction, "", 5},
    {"\x1b[24~", Kind::kFunction, "", 12},
    {"\x1b[<64;1;1M", Kind::kWheelUp, "", 0},
    {"\x1b[<65;1;1M", Kind::kWheelDown, "", 0},
    {"\x03", Kind::kInterrupt, "", 0},
};

TEST(KeyDecoderTest, KnowsWhatTerminalsSendWholeAndByteByByte) {
  for (const Sent& sent : kSent) {
    for (const bool whole : {true, false}) {
      KeyDecoder decoder;
      std::vector<Key> keys;
      if (whole) {
        keys = decoder.Take(sent.bytes);
      } else {
        for (const char byte : sent.bytes) {
          for (Key& key : decoder.Take(std::string_view(&byte, 1))) {
            keys.push_back(key);
          }
        }
      }
      ASSERT_EQ(keys.size(), 1u) << testing::PrintToString(sent.bytes);
      EXPECT_EQ(keys[0].kind, sent.kind) << testing::PrintToString(sent.bytes);
      EXPECT_EQ(keys[0].text, sent.text);
      EXPECT_EQ(keys[0].number, sent.number);
      EXPECT_FALSE(decoder.waiting());
    }
  }
}

TEST(KeyDecoderTest, AnEscapeAloneIsTheKeyWhenNothingFollows) {
  KeyDecoder decoder;
  EXPECT_TRUE(decoder.Take("\x1b").empty());
  EXPECT_TRUE(decoder.waiting());
  const std::vector<Key> keys = decoder.Pause();
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].kind, Kind::kEscape);
  EXPECT_FALSE(decoder.waiting());
}

TEST(KeyDecoderTest, ClicksHaveAPlaceFromZero) {
  KeyDecoder decoder;
  const std::vector<Key> keys = decoder.Take("\x1b[<0;12;3M\x1b[<0;12;3m");
  ASSERT_EQ(keys.size(), 1u);  // letting go is nothing
  EXPECT_EQ(keys[0].kind, Kind::kClick);
  EXPECT_EQ(keys[0].line, 2u);
  EXPECT_EQ(keys[0].column, 11u);
}

TEST(KeyDecoderTest, Malicious_AnyBytesAreTakenAndNoTextIsHidden) {
  std::mt19937 random(7);
  KeyDecoder decoder;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(1 + random() % 40, ' ');
    for (char& byte : bytes) {
      static constexpr char kLikely[] = "\x1b[<;0123456789MmO~\xc3\xe2\x80";
      byte = random() % 2 == 0 ? kLikely[random() % (sizeof kLikely - 1)]
                               : static_cast<char>(random() % 256);
    }
    for (const Key& key : decoder.Take(bytes)) {
      if (key.kind != Kind::kText) continue;
      ASSERT_FALSE(key.text.empty());
      ASSERT_GE(static_cast<unsigned char>(key.text[0]), 0x20);
    }
    if (i % 3 == 0) static_cast<void>(decoder.Pause());
  }
  static_cast<void>(decoder.Pause());
  EXPECT_EQ(decoder.Take("q").size(), 1u);
}

}  // namespace
}  // namespace tracefs::screen
