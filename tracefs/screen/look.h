// How parts of a screen look, and what a terminal can show of that.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracefs/base/choice.h"

namespace tracefs::screen {

enum class Look : uint8_t {
  kPlain,
  kTitle,
  kTab,
  kTabHere,  // the view that is shown
  kHead,
  kHeadSorted,
  kSelected,
  kGood,
  kBad,
  kAccent,
  kKey,
};

struct Means {
  bool colour = true;
  bool utf8 = true;  // blocks and names beyond ASCII
};

// The escape sequence that begins a look; empty of kPlain. "\x1b[0m" ends it.
std::string_view Begin(Look look, bool colour);

// --color.
enum class ColourWish : uint8_t { kAuto, kAlways, kNever };

inline constexpr Choice<ColourWish> kColourWishes[] = {
    {"auto", ColourWish::kAuto},
    {"always", ColourWish::kAlways},
    {"never", ColourWish::kNever}};

// Whether to colour what goes to a descriptor: as wished, or if it is a
// terminal other than TERM=dumb and NO_COLOR is not set (no-color.org).
bool WantsColour(ColourWish wish, int fd);
// Whether standard input and output are a terminal that obeys sequences.
bool CanDraw();

}  // namespace tracefs::screen
