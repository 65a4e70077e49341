#include "tracefs/replay/undo_plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

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
constexpr uint64_t kAfterAll = UINT64_MAX;
constexpr size_t kPiece = size_t{256} << 10;
constexpr char kNotCompared[] =
    "what it holds by now cannot be compared with what the trace has left: not "
    "all of its bytes are in the trace";
constexpr char kNotAsLeft[] = "it is not as the trace has left it";

bool IsMaking(Kind kind) {
  return kind == Kind::kMakeFile || kind == Kind::kMakeDir ||
         kind == Kind::kMakeLink || kind == Kind::kMakeNode ||
         kind == Kind::kLinkAgain;
}

bool IsRemoving(Kind kind) {
  return kind == Kind::kRemove || kind == Kind::kRemoveDir;
}

bool IsChanging(Kind kind) {
  return kind == Kind::kContents || kind == Kind::kMode ||
         kind == Kind::kOwner || kind == Kind::kXattr ||
         kind == Kind::kRemoveXattr;
}

bool IsOfXattr(Kind kind) {
  return kind == Kind::kXattr || kind == Kind::kRemoveXattr;
}

bool IsDressing(Kind kind) {
  return kind == Kind::kMode || kind == Kind::kOwner;
}

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
    if (target_.told_by_ns != 0) return IsToldOf(file, now);
    const auto at = target_.expected.find(path);
    const bool known =
        at != target_.expected.end() && at->second.Knows(TreeEntry::kAllBytes);
    if (!known && target_.keeps && at != target_.expected.end() &&
        at->second.Knows(TreeEntry::kChecksum)) {
      const UniqueFd fd = OpenAt(target_.root, path, O_RDONLY | O_NONBLOCK);
      return fd && FileChecksum(fd.get()) == at->second.checksum;
    }
    if (!known || !holes_.Take(now)) {
      record_.unread.insert(file);
      return true;
    }
    const UniqueFd a = OpenAt(target_.scratch, path, O_RDONLY | O_NONBLOCK);
    const UniqueFd b = OpenAt(target_.root, path, O_RDONLY | O_NONBLOCK);
    return a && b && SameBytes(a.get(), b.get());
  }

  // Whether the last change of a file is one that the trace tells, which is
  // still being written. Times of its operations are counted from its begin, by
  // a clock that is adjusted by half a thousandth at most.
  bool IsToldOf(uint64_t file, const struct stat& now) const {
    constexpr uint64_t kInaccuracyNs = 5'000'000;
    const auto last = record_.touched.find(file);
    if (last == record_.touched.end()) return false;
    const uint64_t changed = NsOf(now.st_ctim);
    return changed <= target_.told_by_ns &&
           changed <= target_.first_real_ns + last->second +
                          last->second / 2000 + kInaccuracyNs;
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
    if (mode || owner) record_.dressed.insert(file);
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

class Decision {
 public:
  Decision(UndoRecord* record, const UndoTarget& target)
      : record_(*record), target_(target) {}

  void Decide() {
    // A file that is passing and would stay cannot be made: then what comes
    // after has to be decided again.
    do {
      names_ = record_.names;
      blocked_.clear();
      passing_.clear();
      refused_.assign(record_.groups.size(), {});
      for (size_t i = record_.groups.size(); i-- > 0;) Try(i);
    } while (RefusePassing());
    for (size_t i = 0; i < refused_.size(); ++i) {
      record_.groups[i].why_not = std::move(refused_[i]);
    }
    std::reverse(record_.groups.begin(), record_.groups.end());
  }

 private:
  void Try(size_t index) {
    UndoGroup& group = record_.groups[index];
    std::string why = group.why_not;
    log_.clear();
    for (UndoStep& step : group.steps) {
      if (!why.empty()) break;
      step.is_nothing = false;
      why = WhatItTakes(step);
      if (why.empty()) why = TryStep(group.sequence, step);
    }
    if (why.empty()) return;
    for (auto at = log_.rbegin(); at != log_.rend(); ++at) {
      Put(*at);
    }
    for (const UndoStep& step : group.steps) {
      if (IsChanging(step.kind)) {
        blocked_.try_emplace(step.file, group.sequence);
      }
    }
    refused_[index] = std::move(why);
  }

  // Rights that a step would give without being asked to.
  std::string WhatItTakes(const UndoStep& step) const {
    if (step.is_passing) return {};
    std::vector<Privilege> takes;
    const bool makes = IsMaking(step.kind) && step.kind != Kind::kLinkAgain;
    if ((makes || step.kind == Kind::kMode) && (step.mode & kSetIdBits) != 0) {
      takes.push_back(Privilege::kSetId);
    }
    const bool foreign = step.uid != ::geteuid() || step.gid != ::getegid();
    if (step.kind == Kind::kOwner || (makes && foreign)) {
      takes.push_back(Privilege::kOwner);
    }
    const auto look = [&](const std::string& name, std::string_view value) {
      const auto privilege = PrivilegeOfXattr(name, AsBytes(value));
      if (privilege) takes.push_back(*privilege);
    };
    if (step.kind == Kind::kXattr) look(step.other, step.value);
    if (step.kind == Kind::kRemoveXattr) look(step.other, {});
    for (const auto& [name, value] : step.xattrs) look(name, value);
    for (const Privilege privilege : takes) {
      if (target_.grants.Has(privilege)) continue;
      const PrivilegeInfo& info = Info(privilege);
      return "it takes " + std::string(info.option) + ": " +
             std::string(info.text);
    }
    return {};
  }

  std::string TryStep(uint64_t sequence, UndoStep& step) {
    if (IsRemoving(step.kind)) return TryRemove(sequence, step);
    if (IsMaking(step.kind)) return TryMake(step);
    if (step.kind == Kind::kRename) return TryRename(sequence, step);
    if (step.kind == Kind::kExchange) return TryExchange(sequence, step);
    return TryChange(sequence, step);
  }

  std::string TryRemove(uint64_t sequence, UndoStep& step) {
    const Name name(step.dir, step.name);
    if (!Gave(sequence, name, step.file)) {
      return "that name was taken away or given to another since";
    }
    if (step.kind == Kind::kRemoveDir && !names_.IsEmpty(step.file)) {
      return "something is in it";
    }
    if (std::string why = ChangedAfterAll(step.file); !why.empty()) return why;
    if (names_.CountOf(step.file) == 1) {
      if (!record_.made.contains(step.file)) {
        return "it is the only name by now";
      }
      if (std::string why = ChangedSince(sequence, step.file); !why.empty()) {
        return why;
      }
    }
    step.is_nothing = passing_.contains(step.file);
    return Settle(name, kNoFile, 0, &step.path);
  }

  std::string TryMake(UndoStep& step) {
    const Name name(step.dir, step.name);
    if (names_.Find(name) != kNoFile) return "its name is another's by now";
    if (!names_.IsThere(step.dir)) return "its directory is not there";
    const bool has_name = names_.IsThere(step.file);
    if (std::string why = ChangedAfterAll(step.file); !why.empty()) return why;
    if (step.kind == Kind::kLinkAgain) {
      if (!has_name) return "no other name of it is left";
      (void)names_.PathOf(step.file, &step.other);
      step.is_nothing = passing_.contains(step.file);
    } else if (has_name) {
      return "it has got another name since";
    } else if (step.is_passing) {
      if (staying_.contains(step.file)) {
        return "what it held was not kept, since its maker removed it";
      }
      passing_.insert(step.file);
      step.is_nothing = true;
    }
    return Settle(name, step.file, step.given_by, &step.path);
  }

  std::string TryRename(uint64_t sequence, UndoStep& step) {
    const Name name(step.dir, step.name);
    const Name other(step.other_dir, step.other_name);
    if (!Gave(sequence, name, step.file)) {
      return "it has not that name any more";
    }
    if (names_.Find(other) != kNoFile) {
      return "its former name is another's by now";
    }
    if (std::string why = ChangedAfterAll(step.file); !why.empty()) return why;
    if (!names_.IsThere(step.other_dir)) {
      return "its former directory is not there";
    }
    if (names_.IsIn(step.other_dir, step.file)) {
      return "its former directory is in it by now";
    }
    step.is_nothing = passing_.contains(step.file);
    (void)names_.PathOf(other, &step.other);
    (void)names_.PathOf(name, &step.path);
    Set(name, kNoFile, 0);
    Set(other, step.file, step.given_by);
    return {};
  }

  std::string TryExchange(uint64_t sequence, UndoStep& step) {
    const Name name(step.dir, step.name);
    const Name other(step.other_dir, step.other_name);
    const uint64_t second = step.other_file;
    if (!Gave(sequence, name, step.file) || !Gave(sequence, other, second)) {
      return "they have not these names any more";
    }
    if (names_.IsIn(step.dir, second) ||
        names_.IsIn(step.other_dir, step.file)) {
      return "one of them is in the other by now";
    }
    for (const uint64_t file : {step.file, second}) {
      if (std::string why = ChangedAfterAll(file); !why.empty()) return why;
    }
    step.is_nothing = passing_.contains(step.file);
    if (step.is_nothing != passing_.contains(second)) {
      return "one of them was removed, and what it held was not kept";
    }
    (void)names_.PathOf(other, &step.other);
    (void)names_.PathOf(name, &step.path);
    Set(name, second, step.other_given_by);
    Set(other, step.file, step.given_by);
    return {};
  }

  std::string TryChange(uint64_t sequence, UndoStep& step) {
    if (step.file == kRootFile) return "DIR itself is left as it is";
    if (!names_.PathOf(step.file, &step.path)) {
      return "it is not there any more";
    }
    if ((IsDressing(step.kind) || IsOfXattr(step.kind)) &&
        record_.dressed.contains(step.file)) {
      return kNotAsLeft;
    }
    if (record_.unread.contains(step.file)) {
      return kNotCompared;
    }
    return ChangedSince(sequence, step.file);
  }

  // Names are given back whatever others did to the file in the trace, but not
  // to another file.
  std::string ChangedAfterAll(uint64_t file) const {
    const auto other = record_.others.find(file);
    const bool changed =
        other != record_.others.end() && other->second == kAfterAll;
    return changed ? kNotAsLeft : "";
  }

  std::string ChangedSince(uint64_t sequence, uint64_t file) const {
    const auto other = record_.others.find(file);
    if (other != record_.others.end() && other->second > sequence) {
      return other->second == kAfterAll
                 ? kNotAsLeft
                 : "operation " + std::to_string(other->second) +
                       " changed it since";
    }
    const auto blocked = blocked_.find(file);
    if (blocked == blocked_.end() || blocked->second == sequence) return {};
    return "operation " + std::to_string(blocked->second) +
           ", which came later, is not taken back";
  }

  // Whether the file has that name, and since that operation: others may have
  // taken it away and given it again.
  bool Gave(uint64_t sequence, const Name& name, uint64_t file) const {
    return names_.Find(name) == file && names_.GivenBy(name) == sequence;
  }

  std::string Settle(const Name& name, uint64_t file, uint64_t given_by,
                     std::string* path) {
    if (!names_.PathOf(name, path)) return "its directory is not there";
    Set(name, file, given_by);
    return {};
  }

  // Who has a name, or nobody.
  struct Owned {
    Name name;
    uint64_t file;
    uint64_t given_by;
  };
  void Set(const Name& name, uint64_t file, uint64_t given_by) {
    log_.push_back({name, names_.Find(name), names_.GivenBy(name)});
    Put({name, file, given_by});
  }
  void Put(const Owned& owned) {
    if (owned.file == kNoFile) {
      names_.Remove(owned.name);
    } else {
      names_.Add(owned.name, owned.file, owned.given_by);
    }
  }

  bool RefusePassing() {
    bool any = false;
    for (const uint64_t file : passing_) {
      if (names_.IsThere(file)) any |= staying_.insert(file).second;
    }
    return any;
  }

  UndoRecord& record_;
  const UndoTarget& target_;
  UndoNames names_;
  std::unordered_map<uint64_t, uint64_t> blocked_;  // file: by which operation
  std::unordered_set<uint64_t> passing_;
  std::unordered_set<uint64_t> staying_;
  std::vector<std::string> refused_;
  std::vector<Owned> log_;  // before the group at hand
};

}  // namespace

std::vector<UndoGroup> DecideUndo(UndoRecord record, const UndoTarget& target,
                                  LiveFiles* live) {
  Survey(target, &record).Look();
  Decision(&record, target).Decide();
  *live = std::move(record.live);
  return std::move(record.groups);
}

}  // namespace tracefs::replay
