#include "tracefs/screen/look.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs::screen {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool IsDumb() {
  const std::string_view term = Environment("TERM");
  return term.empty() || term == "dumb";
}

}  // namespace

std::string_view Begin(Look look, bool colour) {
  switch (look) {
    case Look::kPlain:
      return {};
    case Look::kTitle:
      return colour ? "\x1b[1;36m" : "\x1b[1m";
    case Look::kTab:
      return colour ? "\x1b[36m" : "";
    case Look::kTabHere:
      return "\x1b[7m";
    case Look::kHead:
      return colour ? "\x1b[30;42m" : "\x1b[7m";
    case Look::kHeadSorted:
      return colour ? "\x1b[30;46m" : "\x1b[1;4m";
    case Look::kSelected:
      return colour ? "\x1b[30;46m" : "\x1b[7m";
    case Look::kGood:
      return colour ? "\x1b[32m" : "";
    case Look::kBad:
      return colour ? "\x1b[1;31m" : "\x1b[1;7m";
    case Look::kAccent:
      return colour ? "\x1b[33m" : "";
    case Look::kKey:
      return colour ? "\x1b[1;33m" : "\x1b[1m";
  }
  return {};
}

bool WantsColour(ColourWish wish, int fd) {
  if (wish != ColourWish::kAuto) return wish == ColourWish::kAlways;
  return Environment("NO_COLOR").empty() && !IsDumb() && ::isatty(fd) == 1;
}

bool CanDraw() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 &&
         !IsDumb();
}

}  // namespace tracefs::screen
