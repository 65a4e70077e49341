#include "tracefs/replay/undo_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tracefs/replay/undo_survey.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;
using Name = UndoNames::Name;

constexpr char kNotCompared[] =
    "what it holds by now cannot be compared with what the trace has left: not "
    "all of its bytes are in the trace";
constexpr char kNotShown[] =
    "others may have changed it unseen, and not all of its bytes are in the "
    "trace to show that they have not";
constexpr char kNotAsLeft[] = "it is not as the trace has left it";

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
      // With its last name it would lose what it holds, whoever wrote that.
      if (record_.unread.contains(step.file) &&
          !record_.untouched.contains(step.file) &&
          !passing_.contains(step.file)) {
        return NotCompared();
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
    if (record_.unread.contains(step.file)) return NotCompared();
    return ChangedSince(sequence, step.file);
  }

  std::string NotCompared() const {
    if (target_.left_out.empty()) return kNotCompared;
    return kNotShown + (": " + target_.left_out);
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
  SurveyUndo(target, &record);
  Decision(&record, target).Decide();
  *live = std::move(record.live);
  return std::move(record.groups);
}

}  // namespace tracefs::replay
