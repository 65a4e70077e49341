// Keys and clicks out of the bytes that a terminal sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs::screen {

struct Key {
  enum class Kind : uint8_t {
    kText,  // `text`: one character, not a control character
    kEnter,
    kTab,
    kBackTab,
    kBackspace,
    kEscape,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kFunction,  // `number`: F1 is 1
    kClick,     // at `line`, `column`, from 0
    kWheelUp,
    kWheelDown,
    kInterrupt,  // Ctrl-C, where it is no signal
    kRedraw,     // Ctrl-L
  };
  Kind kind{};
  std::string text = {};
  unsigned number = 0;
  size_t line = 0;
  size_t column = 0;

  bool Is(std::string_view character) const {
    return kind == Kind::kText && text == character;
  }
};

// Used by one thread. Any bytes do: what it does not know it passes over.
class KeyDecoder {
 public:
  // Takes bytes; returns the keys that are complete.
  std::vector<Key> Take(std::string_view bytes);
  // Nothing has come for a while: an escape that waits for more was the key.
  std::vector<Key> Pause();
  bool waiting() const { return !pending_.empty(); }

 private:
  // Takes one key off the front; false if it is not complete.
  bool TakeOne(std::vector<Key>* keys);

  std::string pending_;
};

}  // namespace tracefs::screen
