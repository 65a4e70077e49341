#include "tracefs/build/temporary_names.h"

#include <algorithm>
#include <array>

namespace tracefs::build {
namespace {

constexpr std::array<std::string_view, 4> kFolders = {"/tmp/", "/var/tmp/",
                                                      "/usr/tmp/", "/dev/shm/"};

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

size_t CountWord(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, IsWordCharacter);
  return static_cast<size_t>(end - text.begin());
}

// "Config": by itself it is somebody's name for something, and one in a hundred
// made-up ones.
bool LooksLikeWord(std::string_view text) {
  return std::ranges::all_of(text.substr(1),
                             [](char c) { return c >= 'a' && c <= 'z'; }) &&
         (text[0] < '0' || text[0] > '9') && text[0] != '_';
}

// The length of the made-up part that `name`, one component of a path, begins
// with; 0 if it is no such name.
size_t MadeUpPart(std::string_view name) {
  constexpr size_t kGcc = 2 + 6;  // ccXXXXXX.s, of libiberty's make_temp_file
  if (name.starts_with("cc") && CountWord(name) == kGcc &&
      (name.size() > kGcc || !LooksLikeWord(name.substr(2)))) {
    return kGcc;
  }
  // tmp.XXXXXXXXXX of mktemp(1), tmpXXXXXXXX of Python's tempfile.
  if (name.starts_with("tmp.") && CountWord(name.substr(4)) >= 6) {
    return 4 + CountWord(name.substr(4));
  }
  if (name.starts_with("tmp") && CountWord(name) == 3 + 8) return 3 + 8;
  // NAME-xxxxxx.o of clang: six digits before the ending.
  const size_t stem = std::min(name.find('.'), name.size());
  constexpr size_t kClang = 6;
  if (stem > kClang && name[stem - kClang - 1] == '-' &&
      std::ranges::all_of(name.substr(stem - kClang, kClang), IsHex)) {
    return stem;
  }
  return 0;
}

// Up to what cannot be in the component of a path, in the words of a command.
std::string_view ComponentOf(std::string_view text) {
  return text.substr(0, text.find_first_of("/ ,:;=\"'\t\n"));
}

}  // namespace

bool IsTemporary(std::string_view path) {
  return std::ranges::any_of(kFolders, [&](std::string_view folder) {
    return path.starts_with(folder) &&
           MadeUpPart(ComponentOf(path.substr(folder.size()))) != 0;
  });
}

std::string WithoutTemporaryNames(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto folder = std::ranges::find_if(
        kFolders,
        [&](std::string_view each) { return text.starts_with(each); });
    const size_t taken = folder == kFolders.end() ? 1 : folder->size();
    result += text.substr(0, taken);
    text.remove_prefix(taken);
    if (folder == kFolders.end()) continue;
    if (const size_t part = MadeUpPart(ComponentOf(text)); part != 0) {
      result += '*';
      text.remove_prefix(part);
    }
  }
  return result;
}

}  // namespace tracefs::build
