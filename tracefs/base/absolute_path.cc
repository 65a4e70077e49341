#include "tracefs/base/absolute_path.h"

#include <vector>

#include "tracefs/base/text.h"

namespace tracefs {

std::string AbsolutePath(std::string_view cwd, std::string_view path) {
  std::string whole(path);
  if (!path.starts_with('/')) whole = std::string(cwd) + "/" + whole;
  std::vector<std::string_view> parts;
  std::string_view rest = whole;
  while (!rest.empty()) {
    const std::string_view part = TakeUpTo(rest, '/');
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string result;
  for (const std::string_view part : parts) {
    result += '/';
    result += part;
  }
  return result.empty() ? "/" : result;
}

bool LeadsUpward(std::string_view path) {
  if (path.starts_with('/')) return false;
  size_t depth = 0;
  while (!path.empty()) {
    const std::string_view part = TakeUpTo(path, '/');
    if (part == "..") {
      if (depth == 0) return true;
      --depth;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
  }
  return false;
}

bool TakeFolder(std::string_view folder, std::string_view* path) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  if (!path->starts_with(folder)) return false;
  const std::string_view rest = path->substr(folder.size());
  if (!rest.empty() && rest[0] != '/') return false;
  *path = rest.empty() ? "/" : rest;
  return true;
}

}  // namespace tracefs
