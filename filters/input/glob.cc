#include "filters/input/glob.h"

#include <bitset>

namespace tracefs {
namespace {

using ByteSet = std::bitset<256>;

// The automaton before it is packed into words.
struct Position {
  ByteSet bytes;         // what takes state i to state i + 1
  bool literal = false;  // `bytes` is one byte
};
struct State {
  bool loop = false;
  bool loop_in_component = false;
  bool skip = false;
};

size_t Byte(char c) { return static_cast<unsigned char>(c); }

// Reads a class; `*at` is just after '['. False without its ']'.
bool ReadClass(std::string_view pattern, size_t* at, ByteSet* bytes) {
  size_t i = *at;
  const bool negated =
      i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  const auto take = [&](size_t* byte) {
    if (pattern[i] == '\\') ++i;
    if (i >= pattern.size()) return false;
    *byte = Byte(pattern[i++]);
    return true;
  };
  for (bool first = true;; first = false) {
    if (i >= pattern.size()) return false;
    if (pattern[i] == ']' && !first) break;
    size_t from = 0;
    if (!take(&from)) return false;
    size_t to = from;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (!take(&to)) return false;
    }
    for (size_t b = from; b <= to; ++b) bytes->set(b);
  }
  *at = i + 1;
  if (negated) bytes->flip();
  return true;
}

}  // namespace

Result<Glob> Glob::Compile(std::string_view pattern, GlobKind kind) {
  if (pattern.size() > kMaxBytes) {
    return Status::Invalid("a pattern longer than " +
                           std::to_string(kMaxBytes) + " bytes");
  }
  const bool path = kind == GlobKind::kPath;
  std::vector<Position> positions;
  std::vector<State> states(1);
  const auto add = [&](Position position) {
    positions.push_back(position);
    states.emplace_back();
  };
  for (size_t i = 0; i < pattern.size();) {
    const char c = pattern[i++];
    Position position;
    switch (c) {
      case '*': {
        const size_t begin = i - 1;
        while (i < pattern.size() && pattern[i] == '*') ++i;
        State& state = states.back();
        if (!path) {
          state.loop = true;
        } else if (i - begin < 2) {
          state.loop_in_component = true;
        } else {
          state.loop = true;
          state.skip = begin > 0 && pattern[begin - 1] == '/' &&
                       i < pattern.size() && pattern[i] == '/';
        }
        continue;
      }
      case '?':
        position.bytes.set();
        if (path) position.bytes.reset(Byte('/'));
        break;
      case '[':
        if (!ReadClass(pattern, &i, &position.bytes)) {
          return Status::Invalid("a '[' without its ']'");
        }
        if (path) position.bytes.reset(Byte('/'));
        break;
      case '\\':
        if (i == pattern.size()) {
          return Status::Invalid("a backslash with nothing after it");
        }
        position.bytes.set(Byte(pattern[i++]));
        position.literal = true;
        break;
      default:
        position.bytes.set(Byte(c));
        position.literal = true;
    }
    add(position);
  }

  Glob glob;
  glob.pattern_ = std::string(pattern);
  glob.positions_ = positions.size();
  const auto literal = [&](size_t i) {
    size_t byte = 0;
    while (!positions[i].bytes.test(byte)) ++byte;
    return static_cast<char>(byte);
  };
  const auto stays = [&](size_t i) {
    return states[i].loop || states[i].loop_in_component;
  };
  size_t first = 0;
  while (first < positions.size() && positions[first].literal &&
         !stays(first)) {
    glob.prefix_ += literal(first++);
  }
  size_t last = positions.size();
  while (last > first && positions[last - 1].literal && !stays(last)) {
    glob.suffix_.insert(glob.suffix_.begin(), literal(--last));
  }
  // Only a star is left between the two, or nothing. A "/**/" whose slashes
  // overlap is not of this simple kind.
  glob.only_prefix_and_suffix_ =
      first == last && states[first].loop && !states[first].skip;

  glob.words_.resize(states.size() / 64 + 1);
  for (size_t i = 0; i < states.size(); ++i) {
    Word& word = glob.words_[i / 64];
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (states[i].loop) word.loop |= bit;
    if (states[i].loop_in_component) word.loop_in_component |= bit;
    if (states[i].skip) word.skip |= bit;
    if (i == positions.size()) break;
    for (size_t byte = 0; byte < 256; ++byte) {
      if (positions[i].bytes.test(byte)) word.advance[byte] |= bit;
    }
  }
  return glob;
}

bool Glob::Matches(std::string_view text) const {
  if (text.size() < prefix_.size() || !text.starts_with(prefix_)) return false;
  if (!text.ends_with(suffix_)) return false;
  if (only_prefix_and_suffix_) {
    return text.size() >= prefix_.size() + suffix_.size();
  }
  return MatchesAutomaton(text);
}

bool Glob::MatchesAutomaton(std::string_view text) const {
  constexpr size_t kMaxWords = kMaxBytes / 64 + 1;
  const size_t count = words_.size();
  std::array<uint64_t, kMaxWords> active;
  active[0] = 1;
  for (size_t w = 1; w < count; ++w) active[w] = 0;
  for (const char c : text) {
    uint64_t carry = 0;
    uint64_t any = 0;
    for (size_t w = 0; w < count; ++w) {
      const Word& word = words_[w];
      const uint64_t now = active[w];
      const uint64_t moved = now & word.advance[Byte(c)];
      const uint64_t stays =
          c == '/' ? word.loop : word.loop | word.loop_in_component;
      active[w] = (moved << 1) | carry | (now & stays);
      carry = moved >> 63;
      any |= active[w];
    }
    if (any == 0) return false;
    if (c == '/') {
      carry = 0;
      for (size_t w = 0; w < count; ++w) {
        const uint64_t moved = active[w] & words_[w].skip;
        active[w] |= (moved << 1) | carry;
        carry = moved >> 63;
      }
    }
  }
  return (active[positions_ / 64] >> (positions_ % 64) & 1) != 0;
}

}  // namespace tracefs
