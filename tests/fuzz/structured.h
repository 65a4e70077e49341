// Inputs that keep their structure: what is changed is a word, a line, a
// message or an argument, and what frames it (lengths, checksums) stays right,
// or else most changes would be refused at the door. Now and then one lies.
//
// For LLVMFuzzerCustomMutator, of libFuzzer and of cmake/fuzz_main.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Changes bytes at random: libFuzzer's, or that of fuzz_main.cc.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max);

namespace tracefs::fuzz {

using Dice = std::minstd_rand;

inline size_t Below(Dice& dice, size_t limit) {
  return limit == 0 ? 0 : dice() % limit;
}

// Cuts to `max`, writes back; the size for libFuzzer.
inline size_t PutBack(std::string_view made, uint8_t* data, size_t max) {
  const size_t size = std::min(made.size(), max);
  std::memcpy(data, made.data(), size);
  return size;
}

// --- Text: words, numbers, strings and marks.

inline std::vector<std::string> Words(std::string_view text) {
  const auto kind = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || byte >= 0x80) return 1;
    return c == ' ' || c == '\t' ? 2 : 0;  // 0: each by itself
  };
  std::vector<std::string> words;
  for (const char c : text) {
    if (!words.empty() && kind(c) != 0 &&
        kind(words.back().back()) == kind(c)) {
      words.back() += c;
    } else {
      words.emplace_back(1, c);
    }
  }
  return words;
}

inline std::string OddWord(Dice& dice) {
  constexpr std::array<std::string_view, 30> kOdd = {"0",
                                                     "-1",
                                                     "1",
                                                     "127",
                                                     "128",
                                                     "255",
                                                     "65535",
                                                     "65536",
                                                     "2147483647",
                                                     "2147483648",
                                                     "4294967295",
                                                     "4294967296",
                                                     "9223372036854775807",
                                                     "9223372036854775808",
                                                     "18446744073709551615",
                                                     "18446744073709551616",
                                                     "1e309",
                                                     "0x",
                                                     "00",
                                                     "1.5",
                                                     "\"",
                                                     "\\",
                                                     "\\x",
                                                     "\\u0000",
                                                     "\n",
                                                     "(",
                                                     ")",
                                                     "{",
                                                     "}",
                                                     "\xff"};
  if (Below(dice, 8) == 0) return std::string(Below(dice, 5000), 'a');
  return std::string(kOdd[Below(dice, kOdd.size())]);
}

// One change among the words.
inline void ChangeWords(std::vector<std::string>& words, Dice& dice) {
  if (words.empty()) words.emplace_back("x");
  const size_t at = Below(dice, words.size());
  const size_t other = Below(dice, words.size());
  const auto place = [&](size_t n) {
    return words.begin() + static_cast<std::ptrdiff_t>(n);
  };
  switch (Below(dice, 8)) {
    case 0:
      words.erase(place(at));
      break;
    case 1:
      words.insert(place(at), words[other]);
      break;
    case 2:
      std::swap(words[at], words[other]);
      break;
    case 3:
      words[at] = OddWord(dice);
      break;
    case 4:
      words.insert(place(at), OddWord(dice));
      break;
    case 5: {  // a run of them once more, or many times: nested, repeated
      const size_t end = std::min(words.size(), at + 1 + Below(dice, 40));
      const std::vector<std::string> run(place(at), place(end));
      size_t times = Below(dice, 6) == 0 ? 1 + Below(dice, 300) : 1;
      for (; times > 0 && words.size() < 20'000; --times) {
        words.insert(place(at), run.begin(), run.end());
      }
      break;
    }
    case 6: {  // a run of them goes
      const size_t end = std::min(words.size(), at + 1 + Below(dice, 40));
      words.erase(place(at), place(end));
      break;
    }
    default: {  // the bytes of one
      std::string word = words[at];
      const size_t size = word.size();
      word.resize(size + 16);
      word.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(word.data()),
                                   size, word.size()));
      words[at] = word;
    }
  }
}

inline std::string ChangedText(std::string_view text, Dice& dice) {
  std::vector<std::string> words = Words(text);
  for (size_t n = 1 + Below(dice, 4); n > 0; --n) ChangeWords(words, dice);
  std::string made;
  for (const std::string& word : words) made += word;
  return made;
}

inline size_t MutateText(uint8_t* data, size_t size, size_t max,
                         unsigned seed) {
  Dice dice(seed + 1);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  return PutBack(ChangedText(text, dice), data, max);
}

}  // namespace tracefs::fuzz
