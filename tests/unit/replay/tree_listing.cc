#include "tests/unit/replay/tree_listing.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "tests/unit/filters/output/temp_folder.h"

namespace tracefs::replay {
namespace {

std::string Described(const std::string& path, struct stat* st) {
  EXPECT_EQ(::lstat(path.c_str(), st), 0) << path;
  std::string text = std::to_string(st->st_mode) + " " +
                     std::to_string(st->st_uid) + ":" +
                     std::to_string(st->st_gid);
  if (S_ISREG(st->st_mode)) text += " = " + TempFolder::Read(path);
  if (S_ISLNK(st->st_mode)) {
    text += " -> " + std::filesystem::read_symlink(path).string();
  }
  std::array<char, 4096> names;
  std::array<char, 4096> value;
  const ssize_t n = ::llistxattr(path.c_str(), names.data(), names.size());
  for (const char* name = names.data(); n > 0 && name < names.data() + n;
       name += std::string_view(name).size() + 1) {
    const ssize_t size =
        ::lgetxattr(path.c_str(), name, value.data(), value.size());
    text += std::string(" ") + name + "=" +
            std::string(value.data(), static_cast<size_t>(size));
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> Listing(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> found;
  std::map<ino_t, std::string> first;
  std::map<std::string, ino_t> inodes;
  for (auto at = fs::recursive_directory_iterator(folder);
       at != fs::recursive_directory_iterator(); ++at) {
    if (at->path().filename() == kRoomOfUndo) {
      at.disable_recursion_pending();
      continue;
    }
    const std::string name = at->path().lexically_relative(folder);
    struct stat st;
    found[name] = Described(at->path(), &st);
    if (S_ISDIR(st.st_mode)) continue;
    inodes[name] = st.st_ino;
    auto& least = first.try_emplace(st.st_ino, name).first->second;
    least = std::min(least, name);
  }
  for (const auto& [name, inode] : inodes) {
    found[name] += " as " + first[inode];
  }
  return found;
}

}  // namespace tracefs::replay
