#include "tracefs/base/mount_path.h"

namespace tracefs {

std::string UnescapeMountPath(std::string_view text) {
  const auto octal = [&](size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '7';
  };
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      path += static_cast<char>((text[i + 1] - '0') * 64 +
                                (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

bool IsAtOrBelow(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.substr(0, folder.size()) == folder &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace tracefs
