#include "tracefs/keep/kept_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/folder.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::keep {
namespace {

constexpr size_t kSerialDigits = 32;
constexpr size_t kMostObjectDigits = 20;
constexpr std::string_view kSays =
    "What file operations were about to destroy is kept here by Tracefs "
    "(STR_KEEP),\nwhich removes the oldest of it by itself.\n";

bool HasMark(int folder) {
  struct stat st;
  return ::fstatat(folder, kKeptMark, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(st.st_mode);
}

Status Mark(int folder, const std::string& what) {
  const UniqueFd fd(::openat(folder, kKeptMark,
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd) return WriteAll(fd.get(), AsBytes(kSays), what);
  // Another mount has just begun to keep here.
  if (errno == EEXIST && HasMark(folder)) return {};
  return Status::System(errno, what + "/" + kKeptMark);
}

Status Refused(const std::string& what, const std::string& name) {
  return Status::Invalid(
      what + " is no folder of kept things alone: " + Printable(name) +
      " in it is not Tracefs's. Name a folder that is empty or not there yet, "
      "or move that elsewhere");
}

}  // namespace

bool IsTraceName(std::string_view name) {
  return name.size() == kSerialDigits && IsMadeOf(name, kHexDigits);
}

bool IsObjectName(std::string_view name) {
  return !name.empty() && name.size() <= kMostObjectDigits &&
         IsMadeOf(name, kDecimalDigits);
}

Status TakeAsKept(int folder, const std::string& what) {
  // Before its names are listed: whoever marks it does so before all else.
  const bool marked = HasMark(folder);
  const Result<std::vector<std::string>> names = NamesInFolder(folder);
  if (!names.ok()) return names.status().Prefixed(what);
  const bool is_ours = marked || HasMark(folder);
  const auto foreign = std::ranges::find_if(*names, [&](const auto& name) {
    return !is_ours || (name != kKeptMark && !IsTraceName(name));
  });
  if (foreign != names->end()) return Refused(what, *foreign);
  return is_ours ? Status() : Mark(folder, what);
}

}  // namespace tracefs::keep
