#include "tracefs/screen/keys.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tracefs/base/printable.h"

namespace tracefs::screen {
namespace {

using Kind = Key::Kind;

constexpr char kEsc = '\x1b';
// A sequence that goes on for longer is none.
constexpr size_t kMaxSequence = 32;

struct Final {
  char byte;
  Kind kind;
  unsigned number;
};
// After "ESC [" or "ESC O".
constexpr std::array kFinals = {
    Final{'A', Kind::kUp, 0},       Final{'B', Kind::kDown, 0},
    Final{'C', Kind::kRight, 0},    Final{'D', Kind::kLeft, 0},
    Final{'H', Kind::kHome, 0},     Final{'F', Kind::kEnd, 0},
    Final{'Z', Kind::kBackTab, 0},  Final{'P', Kind::kFunction, 1},
    Final{'Q', Kind::kFunction, 2}, Final{'R', Kind::kFunction, 3},
    Final{'S', Kind::kFunction, 4}, Final{'M', Kind::kEnter, 0},
};

struct Tilde {
  unsigned code;
  Kind kind;
  unsigned number;
};
// "ESC [ code ~".
constexpr std::array kTildes = {
    Tilde{1, Kind::kHome, 0},       Tilde{4, Kind::kEnd, 0},
    Tilde{5, Kind::kPageUp, 0},     Tilde{6, Kind::kPageDown, 0},
    Tilde{7, Kind::kHome, 0},       Tilde{8, Kind::kEnd, 0},
    Tilde{11, Kind::kFunction, 1},  Tilde{12, Kind::kFunction, 2},
    Tilde{13, Kind::kFunction, 3},  Tilde{14, Kind::kFunction, 4},
    Tilde{15, Kind::kFunction, 5},  Tilde{17, Kind::kFunction, 6},
    Tilde{18, Kind::kFunction, 7},  Tilde{19, Kind::kFunction, 8},
    Tilde{20, Kind::kFunction, 9},  Tilde{21, Kind::kFunction, 10},
    Tilde{23, Kind::kFunction, 11}, Tilde{24, Kind::kFunction, 12},
};

Key Of(Kind kind) {
  Key key;
  key.kind = kind;
  return key;
}

// The numbers between semicolons; nothing if there is anything else.
std::optional<std::vector<unsigned>> Numbers(std::string_view text) {
  std::vector<unsigned> numbers(1);
  for (const char c : text) {
    if (c == ';') {
      numbers.push_back(0);
    } else if (c >= '0' && c <= '9' && numbers.back() < 100000) {
      numbers.back() = numbers.back() * 10 + static_cast<unsigned>(c - '0');
    } else {
      return std::nullopt;
    }
  }
  return numbers;
}

// "ESC [ < button ; column ; line M" (xterm's mode 1006); 'm': let go.
void TakeMouse(std::string_view inner, char final, std::vector<Key>* keys) {
  const auto numbers = Numbers(inner);
  if (!numbers || numbers->size() != 3 || final != 'M') return;
  Key key;
  switch ((*numbers)[0]) {
    case 0:
      key.kind = Kind::kClick;
      break;
    case 64:
      key.kind = Kind::kWheelUp;
      break;
    case 65:
      key.kind = Kind::kWheelDown;
      break;
    default:
      return;
  }
  key.column = std::max((*numbers)[1], 1u) - 1;
  key.line = std::max((*numbers)[2], 1u) - 1;
  keys->push_back(key);
}

void TakeSequence(std::string_view inner, char final, std::vector<Key>* keys) {
  if (inner.starts_with('<')) {
    TakeMouse(inner.substr(1), final, keys);
    return;
  }
  if (final == '~') {
    const auto numbers = Numbers(inner);
    if (!numbers) return;
    for (const Tilde& one : kTildes) {
      if (one.code != (*numbers)[0]) continue;
      Key key = Of(one.kind);
      key.number = one.number;
      keys->push_back(key);
    }
    return;
  }
  for (const Final& one : kFinals) {
    if (one.byte != final) continue;
    Key key = Of(one.kind);
    key.number = one.number;
    keys->push_back(key);
  }
}

}  // namespace

std::vector<Key> KeyDecoder::Take(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  while (!pending_.empty() && TakeOne(&keys)) {
  }
  return keys;
}

std::vector<Key> KeyDecoder::Pause() {
  std::vector<Key> keys;
  if (pending_ == std::string_view(&kEsc, 1)) keys.push_back(Of(Kind::kEscape));
  pending_.clear();
  return keys;
}

bool KeyDecoder::TakeOne(std::vector<Key>* keys) {
  const char first = pending_.front();
  const auto take = [this](size_t bytes) { pending_.erase(0, bytes); };
  if (first == kEsc) {
    if (pending_.size() == 1) return false;
    const char second = pending_[1];
    if (second != '[' && second != 'O') {
      keys->push_back(Of(Kind::kEscape));
      take(1);
      return true;
    }
    size_t end = 2;
    while (end < pending_.size() && end < kMaxSequence &&
           (pending_[end] < '@' || pending_[end] > '~')) {
      ++end;
    }
    if (end == pending_.size()) return false;
    if (end < kMaxSequence) {
      TakeSequence(std::string_view(pending_).substr(2, end - 2), pending_[end],
                   keys);
      ++end;
    }
    take(end);
    return true;
  }
  switch (first) {
    case '\r':
    case '\n':
      keys->push_back(Of(Kind::kEnter));
      break;
    case '\t':
      keys->push_back(Of(Kind::kTab));
      break;
    case '\b':
    case '\x7f':
      keys->push_back(Of(Kind::kBackspace));
      break;
    case '\x03':
      keys->push_back(Of(Kind::kInterrupt));
      break;
    case '\x0c':
      keys->push_back(Of(Kind::kRedraw));
      break;
    default: {
      const CodePoint point = FirstCodePoint(pending_);
      if (point.size == 0) {
        // The begin of a character, or no character.
        const auto byte = static_cast<unsigned char>(first);
        const size_t wanted = byte >= 0xf0   ? 4
                              : byte >= 0xe0 ? 3
                              : byte >= 0xc2 ? 2
                                             : 1;
        if (pending_.size() < wanted) return false;
        break;
      }
      if (!IsHidden(point.value)) {
        Key key = Of(Kind::kText);
        key.text = pending_.substr(0, point.size);
        keys->push_back(key);
      }
      take(point.size);
      return true;
    }
  }
  take(1);
  return true;
}

}  // namespace tracefs::screen
