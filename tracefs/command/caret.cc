#include "tracefs/command/caret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
// Of a line, before and behind the place.
constexpr size_t kMostBefore = 50;
constexpr size_t kMostBehind = 25;
constexpr std::string_view kFilter = "--filter";

struct Place {
  std::string_view file;
  uint64_t line = 0;
  uint64_t column = 0;  // a byte
};

std::optional<Place> PlaceIn(std::string_view message) {
  for (size_t at = message.find(':'); at != std::string_view::npos;
       at = message.find(':', at + 1)) {
    std::string_view rest = message.substr(at + 1);
    const auto line = ParseUnsigned(TakeUpTo(rest, ':'));
    const auto column = ParseUnsigned(TakeUpTo(rest, ':'));
    if (line && column && *line != 0 && *column != 0) {
      return Place{message.substr(0, at), *line, *column};
    }
  }
  return std::nullopt;
}

// What is still there as it was: a regular file.
std::string TextOf(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st = {};
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  const auto text = ReadText(fd.get(), kMaxFileBytes, file);
  return text.ok() ? *text : std::string();
}

bool GoesOn(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

size_t CharactersOf(std::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), &GoesOn));
}

}  // namespace

std::string CaretLines(std::string_view message, std::string_view filter) {
  const std::optional<Place> place = PlaceIn(message);
  if (!place) return {};
  const std::string file = place->file == kFilter
                               ? std::string(filter)
                               : TextOf(std::string(place->file));
  std::string_view rest = file;
  std::string_view line;
  for (uint64_t number = 0; number < place->line; ++number) {
    if (rest.empty()) return {};
    line = TakeUpTo(rest, '\n');
  }
  // The end of a line is a place as well.
  if (place->column > line.size() + 1) return {};
  std::string_view before = line.substr(0, place->column - 1);
  std::string_view behind = line.substr(place->column - 1);
  if (before.size() > kMostBefore) {
    before.remove_prefix(before.size() - kMostBefore);
    while (!before.empty() && GoesOn(before[0])) before.remove_prefix(1);
  }
  if (behind.size() > kMostBehind) {
    size_t end = kMostBehind;
    while (end > 0 && GoesOn(behind[end])) --end;
    behind = behind.substr(0, end);
  }
  // A tab is one column: so is what stands for it.
  const auto shown = [](std::string_view text) {
    std::string out(text);
    std::replace(out.begin(), out.end(), '\t', ' ');
    return Printable(out);
  };
  const std::string left = shown(before);
  return "  " + left + shown(behind) + "\n  " +
         std::string(CharactersOf(left), ' ') + "^\n";
}

std::string CaretOnTerminal(std::string_view message, std::string_view filter) {
  return ::isatty(STDERR_FILENO) == 1 ? CaretLines(message, filter)
                                      : std::string();
}

}  // namespace tracefs
