#include "tracefs/base/mount_table.h"

#include <charconv>
#include <fstream>
#include <system_error>
#include <utility>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

// Undoes the \ooo escapes.
std::string Unescaped(std::string_view text) {
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

}  // namespace

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=…".
// Nothing but a blank parts the fields: the kernel escapes blanks, tabs and
// line ends in names, but no other white space.
std::optional<MountLine> ParseMountLine(std::string_view line) {
  MountLine mount;
  const std::string_view id = TakeUpTo(line, ' ');
  if (std::from_chars(id.data(), id.data() + id.size(), mount.id).ec !=
      std::errc()) {
    return std::nullopt;
  }
  TakeUpTo(line, ' ');  // the parent
  mount.device = TakeUpTo(line, ' ');
  mount.root = Unescaped(TakeUpTo(line, ' '));
  mount.point = Unescaped(TakeUpTo(line, ' '));
  mount.flags = TakeUpTo(line, ' ');
  while (TakeUpTo(line, ' ') != "-") {
    if (line.empty()) return std::nullopt;
  }
  mount.type = TakeUpTo(line, ' ');
  if (mount.type.empty()) return std::nullopt;
  mount.source = Unescaped(TakeUpTo(line, ' '));
  mount.options = TakeUpTo(line, ' ');
  return mount;
}

std::vector<MountLine> MountTable(const std::string& path) {
  std::vector<MountLine> mounts;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (std::optional<MountLine> mount = ParseMountLine(line)) {
      mounts.push_back(*std::move(mount));
    }
  }
  return mounts;
}

}  // namespace tracefs
