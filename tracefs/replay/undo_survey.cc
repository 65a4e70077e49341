#include "tracefs/replay/undo_survey.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/file_checksum.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/hole_budget.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/plan_file.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;
using Name = UndoNames::Name;

// A file of DIR that is in no trace, and the time at which it came.
constexpr uint64_t kForeign = UINT64_MAX;
constexpr size_t kPiece = size_t{256} << 10;

bool StatAt(int root, const std::string& path, struct stat* st) {
  std::string name;
  const UniqueFd dir = OpenParentBeneath(root, path, &name);
  return dir &&
         ::fstatat(dir.get(), name.c_str(), st, AT_SYMLINK_NOFOLLOW) == 0;
}

UniqueFd OpenAt(int root, const std::string& path, int flags) {
  std::string name;
  const UniqueFd dir = OpenParentBeneath(root, path, &name);
  if (!dir) return {};
  return UniqueFd(OpenBeneath(dir.get(), name, flags | O_NOFOLLOW));
}

std::string TargetAt(int root, const std::string& path) {
  std::array<char, 4096> target;
  const UniqueFd fd = OpenAt(root, path, O_PATH);
  const ssize_t n =
      fd ? ::readlinkat(fd.get(), "", target.data(), target.size()) : -1;
  return n < 0 ? "" : std::string(target.data(), static_cast<size_t>(n));
}

bool SameBytes(int a, int b) {
  std::vector<char> of_a(kPiece);
  std::vector<char> of_b(kPiece);
  for (off_t at = 0;; at += static_cast<off_t>(kPiece)) {
    const ssize_t n = ::pread(a, of_a.data(), kPiece, at);
    const ssize_t m = ::pread(b, of_b.data(), kPiece, at);
    if (n < 0 || n != m) return false;
    if (std::memcmp(of_a.data(), of_b.data(), static_cast<size_t>(n)) != 0) {
      return false;
    }
    if (static_cast<size_t>(n) < kPiece) return true;
  }
}

// Where DIR is not as the trace has left it, others have changed it since.
class Survey {
 public:
  Survey(const UndoTarget& target, UndoRecord* record)
      : target_(target), record_(*record) {}

  void Look() {
    for (const UndoGroup& group : record_.groups) {
      for (const UndoStep& step : group.steps) LookAt(step);
    }
    for (const Name& name : foreign_) record_.names.Add(name, kForeign, 0);
  }

 private:
  // Before anything of it is compared: what changes from then on is noticed.
  void Hold(uint64_t file) {
    std::string path;
    if (file == kNoFile || record_.live.contains(file) ||
        !record_.names.PathOf(file, &path)) {
      return;
    }
    struct stat st;
    const UniqueFd fd =
        path.empty() ? UniqueFd(::fcntl(target_.root, F_DUPFD_CLOEXEC, 0))
                     : OpenAt(target_.root, path, O_PATH);
    if (fd && ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) == 0) {
      record_.live[file] = st;
    }
  }

  void LookAt(const UndoStep& step) {
    for (const uint64_t file :
         {step.file, step.dir, step.other_dir, step.other_file}) {
      Hold(file);
    }
    LookAt(step.file, {step.dir, step.name});
    if (step.kind == Kind::kExchange) {
      LookAt(step.other_file, {step.other_dir, step.other_name});
    }
    if (IsDressing(step.kind)) CompareAttributes(step.file);
    if (IsOfXattr(step.kind)) CompareXattr(step);
    if (step.kind == Kind::kRemoveDir) List(step.file);
    if (IsMaking(step.kind)) LookForForeign({step.dir, step.name});
    if (step.kind == Kind::kRename) {
      LookForForeign({step.other_dir, step.other_name});
    }
  }

  // By one of its names, and by the one that a step is about.
  void LookAt(uint64_t file, const Name& name) {
    std::string path;
    if (looked_.insert(file).second && record_.names.PathOf(file, &path)) {
      Compare(file, path);
    }
    if (!name.second.empty() && record_.names.Find(name) == file &&
        record_.names.PathOf(name, &path)) {
      Compare(file, path);
    }
  }

  void Compare(uint64_t file, const std::string& path) {
    if (!path.empty() && compared_.insert(path).second && !IsSame(file, path)) {
      record_.others[file] = kAfterAll;
    }
  }

  bool IsSame(uint64_t file, const std::string& path) {
    struct stat then;
    struct stat now;
    if (!StatAt(target_.scratch, path, &then) ||
        !StatAt(target_.root, path, &now) ||
        (then.st_mode & S_IFMT) != (now.st_mode & S_IFMT)) {
      return false;
    }
    if (S_ISLNK(then.st_mode) && record_.made.contains(file)) {
      return TargetAt(target_.scratch, path) == TargetAt(target_.root, path);
    }
    // A name that the trace does not tell of may be anywhere.
    const auto untold = record_.untold_names.find(file);
    if (untold != record_.untold_names.end()) then.st_nlink += untold->second;
    if (!S_ISDIR(then.st_mode) && then.st_nlink != now.st_nlink) return false;
    if (!S_ISREG(then.st_mode)) return true;
    if (then.st_size != now.st_size) return false;
    if (target_.told_by_ns != 0) {
      if (!IsToldOf(file, now)) return false;
      if (target_.left_out.empty()) return true;
    }
    return HasSameBytes(file, path, now);
  }

  // Where that cannot be found out, notes it.
  bool HasSameBytes(uint64_t file, const std::string& path,
                    const struct stat& now) {
    const auto at = target_.expected.find(path);
    const bool is_expected = at != target_.expected.end();
    const bool known = is_expected && at->second.Knows(TreeEntry::kAllBytes);
    // A checksum of the end has what others did in it, told or not.
    if (!known && target_.keeps && target_.left_out.empty() && is_expected &&
        at->second.Knows(TreeEntry::kChecksum)) {
      if (WasYoungerInTheEnd(file, at->second)) return false;
      const UniqueFd fd = OpenAt(target_.root, path, O_RDONLY | O_NONBLOCK);
      return fd && FileChecksum(fd.get()) == at->second.checksum;
    }
    if (!known || !holes_.Take(now)) {
      record_.unread.insert(file);
      if (target_.left_out.empty() && IsOfLastChange(file, now)) {
        record_.untouched.insert(file);
      }
      return true;
    }
    const UniqueFd a = OpenAt(target_.scratch, path, O_RDONLY | O_NONBLOCK);
    const UniqueFd b = OpenAt(target_.root, path, O_RDONLY | O_NONBLOCK);
    return a && b && SameBytes(a.get(), b.get());
  }

  // Whether the file is the one that the last operation of the trace on it has
  // changed, and nobody has changed it since. A copy of it is younger.
  bool IsOfLastChange(uint64_t file, const struct stat& now) const {
    constexpr uint64_t kTickNs = 20'000'000;
    const auto from = record_.touched_from.find(file);
    const uint64_t changed = NsOf(now.st_ctim);
    return from != record_.touched_from.end() && IsTold(file, changed) &&
           changed + kTickNs + from->second / 2000 >=
               target_.first_real_ns + from->second;
  }

  bool IsToldOf(uint64_t file, const struct stat& now) const {
    const uint64_t changed = NsOf(now.st_ctim);
    return changed <= target_.told_by_ns && IsTold(file, changed);
  }

  // Whether the last change of a file is one that the trace tells, or older.
  // Times of its operations are counted from its begin, by a clock that is
  // adjusted by half a thousandth at most.
  bool IsTold(uint64_t file, uint64_t changed) const {
    constexpr uint64_t kInaccuracyNs = 5'000'000;
    const auto last = record_.touched.find(file);
    if (last == record_.touched.end()) return false;
    return changed <= target_.first_real_ns + last->second +
                          last->second / 2000 + kInaccuracyNs;
  }

  // Whether somebody had written to it, when the trace ended, after the last
  // operation that it tells of: below the mount.
  bool WasYoungerInTheEnd(uint64_t file, const TreeEntry& entry) const {
    return entry.Knows(TreeEntry::kMtime) && entry.mtime_ns > 0 &&
           !record_.dated.contains(file) &&
           !IsTold(file, static_cast<uint64_t>(entry.mtime_ns));
  }

  // The attribute must have the value that the trace left.
  void CompareXattr(const UndoStep& step) {
    std::string path;
    if (!record_.names.PathOf(step.file, &path)) return;
    const auto value_in = [&](int root) -> std::optional<std::string> {
      const UniqueFd fd = OpenAt(root, path, O_PATH);
      std::string value(65536, '\0');
      const ssize_t n =
          fd ? ::getxattr(FdPath(fd.get()).c_str(), step.other.c_str(),
                          value.data(), value.size())
             : -1;
      if (n < 0) return std::nullopt;
      value.resize(static_cast<size_t>(n));
      return value;
    };
    if (value_in(target_.scratch) != value_in(target_.root)) {
      record_.dressed.insert(step.file);
    }
  }

  // Contents and names are given back whatever mode and owner a file has by
  // now.
  void CompareAttributes(uint64_t file) {
    std::string path;
    struct stat now;
    if (!record_.names.PathOf(file, &path)) return;
    const auto at = target_.expected.find(path);
    if (at == target_.expected.end() || !StatAt(target_.root, path, &now)) {
      return;
    }
    const TreeEntry& then = at->second;
    const bool mode = then.Knows(TreeEntry::kMode) &&
                      (then.mode & 07777) != (now.st_mode & 07777);
    const bool owner = ::geteuid() == 0 && then.Knows(TreeEntry::kOwner) &&
                       (then.uid != now.st_uid || then.gid != now.st_gid);
    if (mode || owner || !IsDressedAsTold(path, now)) {
      record_.dressed.insert(file);
    }
  }

  // What is expected may be what others have made of it, who are not told.
  bool IsDressedAsTold(const std::string& path, const struct stat& now) const {
    constexpr mode_t kRights = 0777;  // a write may end the others
    struct stat then;
    if (target_.left_out.empty()) return true;
    return StatAt(target_.scratch, path, &then) &&
           (then.st_mode & kRights) == (now.st_mode & kRights) &&
           (!target_.grants.Has(Privilege::kOwner) ||
            (then.st_uid == now.st_uid && then.st_gid == now.st_gid));
  }

  void LookForForeign(const Name& name) {
    std::string path;
    struct stat st;
    if (record_.names.Find(name) == kNoFile &&
        record_.names.PathOf(name, &path) && StatAt(target_.root, path, &st)) {
      foreign_.push_back(name);
    }
  }

  void List(uint64_t dir) {
    std::string path;
    if (!record_.names.PathOf(dir, &path) || path.empty()) return;
    UniqueFd fd = OpenAt(target_.root, path, O_RDONLY | O_DIRECTORY);
    if (!fd) return;
    DIR* const stream = ::fdopendir(fd.get());
    if (stream == nullptr) return;
    (void)fd.Release();
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view text = entry->d_name;
      if (text == "." || text == "..") continue;
      const Name name(dir, text);
      if (record_.names.Find(name) == kNoFile) foreign_.push_back(name);
    }
    ::closedir(stream);
  }

  const UndoTarget& target_;
  UndoRecord& record_;
  HoleBudget holes_;
  std::unordered_set<uint64_t> looked_;
  std::unordered_set<std::string> compared_;
  std::vector<Name> foreign_;
};

}  // namespace

void SurveyUndo(const UndoTarget& target, UndoRecord* record) {
  Survey(target, record).Look();
}

}  // namespace tracefs::replay
