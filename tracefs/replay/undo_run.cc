#include "tracefs/replay/undo_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/printable.h"
#include "tracefs/event/op.h"
#include "tracefs/event/op_set.h"
#include "tracefs/replay/digest.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/player.h"
#include "tracefs/replay/prepare.h"
#include "tracefs/replay/private_folder.h"
#include "tracefs/replay/undo.h"
#include "tracefs/replay/undo_plan.h"
#include "tracefs/replay/undo_rooms.h"

namespace tracefs::replay {
namespace {

using Json = nlohmann::ordered_json;

Result<PrivateFolder> MakeScratch() {
  const std::string folder = TemporaryFolder();
  const UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, Printable(folder));
  auto made = PrivateFolder::Make(fd.get(), "tracefs-undo-");
  if (!made.ok()) return made.status().Prefixed(Printable(folder));
  return made;
}

bool ChangesTree(Op op) {
  return (ChangesFiles(op) && !ChangesXattrs(op)) || ChangesNames(op);
}

// What is there in the beginning, for the recorder.
Status PlaceInitial(int plan, UndoRecorder* recorder) {
  return ForEachInitial(
      plan, [&](const TreeEntry& entry) { recorder->Place(entry); });
}

// Results that the replay got otherwise, where that counts.
uint64_t DifferingOf(const Outcome& outcome) {
  uint64_t differ = outcome.untimed_failed;
  for (size_t i = 0; i < outcome.ops.size(); ++i) {
    uint64_t failed = 0;  // or succeeded, for a reason that is known or not
    for (const auto& [errors, count] : outcome.ops[i].errors) failed += count;
    // Whether there are extended attributes is known of each step.
    if (!ChangesTree(static_cast<Op>(i))) failed = 0;
    differ += std::max(failed, outcome.ops[i].mismatched);
  }
  return differ;
}

// Where a replay comes to something else, it says nothing about DIR.
std::string DoubtOf(const Compiled& compiled, const Prepared& prepared,
                    uint64_t differing) {
  if (prepared.failed != 0) {
    return "the tree that was there before cannot be made from the trace";
  }
  if (compiled.damaged || compiled.header.lost != 0) {
    return "the trace is damaged, or operations are lost";
  }
  if (compiled.header.unplaced_changes != 0) {
    return std::to_string(compiled.header.unplaced_changes) +
           " changes in the trace cannot be placed";
  }
  if (differing == 0) return {};
  return std::to_string(differing) +
         " results of the trace come out otherwise when it is replayed";
}

// Given may be the folder of the trace, or the one that it is in.
std::string KeptFolderOf(const UndoOptions& options, const Compiled& compiled) {
  if (options.kept.empty()) return compiled.kept;
  const size_t slash = compiled.kept.rfind('/');
  const std::string name =
      slash == std::string::npos ? "" : compiled.kept.substr(slash + 1);
  struct stat st;
  const std::string within = options.kept + "/" + name;
  const bool is_name = !name.empty() && name != "." && name != "..";
  return is_name && ::stat(within.c_str(), &st) == 0 ? within : options.kept;
}

}  // namespace

Result<UndoPlan> PlanUndo(const UndoOptions& options, const Compiled& compiled,
                          int root, Interruption* interruption) {
  const auto scratch = MakeScratch();
  if (!scratch.ok()) return scratch.status();
  UndoPlan result;
  result.store.Reset(OpenBeneath(scratch->fd(), ".", O_TMPFILE | O_RDWR, 0600));
  struct statvfs st;
  if (!result.store || ::fstatvfs(result.store.get(), &st) != 0) {
    return Status::System(errno, "room for the bytes to be kept");
  }
  TargetOptions target = options.target;
  // No other user can enter the scratch directory, and it is removed at the
  // end: files there keep everything. DIR gets what was asked for.
  target.grants = {};
  for (const Privilege privilege :
       {Privilege::kSetId, Privilege::kSecurityXattr,
        Privilege::kTrustedXattr}) {
    target.grants.Add(privilege);
  }
  // Owners take root; ACLs do not, and are lost with what is not made with
  // them.
  if (::geteuid() == 0 && (options.target.owners_matter ||
                           options.target.grants.Has(Privilege::kOwner))) {
    target.grants.Add(Privilege::kOwner);
  }
  target.all_acls = true;
  target.only_what_was_done = true;
  if (target.max_bytes == UINT64_MAX) {
    target.max_bytes = uint64_t{st.f_bavail} * st.f_frsize / 2;
  }
  const int plan = compiled.plan.get();
  UniqueFd folder =
      EncloseFolder(UniqueFd(::fcntl(scratch->fd(), F_DUPFD_CLOEXEC, 0)));
  const auto tree =
      TargetTree::Open(std::move(folder), compiled.header, target);
  auto prepared = PrepareTree(plan, /*make=*/true, tree.get());
  if (!prepared.ok()) return prepared.status();
  keep::KeptReader kept(KeptFolderOf(options, compiled));
  UndoRecorder recorder(*tree, result.store.get(), target.max_bytes, &kept);
  if (Status s = PlaceInitial(plan, &recorder); !s.ok()) return s;
  Status failed;
  PlayOptions play;
  play.order = OrderMode::kGlobal;
  play.verify.grants = target.grants;
  play.before = [&](const Action& action) {
    failed = recorder.Before(action);
    return failed.ok();
  };
  Outcome outcome;
  Player player(plan, compiled.header, tree.get(), std::move(play));
  Status played;
  {
    const Interruption::Watching watching(interruption, &player);
    played = player.Run(&outcome);
  }
  if (Interruption::Happened()) {
    return Status::System(EINTR, "nothing is taken back");
  }
  if (!failed.ok()) return failed;
  if (!played.ok()) return played;
  auto expected = ExpectedOf(plan);
  if (!expected.ok()) return expected.status();
  result.groups = DecideUndo(recorder.Take(),
                             {.root = root,
                              .scratch = tree->root(),
                              .grants = options.target.grants,
                              .expected = *std::move(expected),
                              .keeps = !compiled.kept.empty(),
                              .told_by_ns = options.told_by_ns,
                              .first_real_ns = compiled.header.first_real_ns,
                              .left_out = compiled.left_out},
                             &result.live);
  result.differing = DifferingOf(outcome);
  result.doubtful_callers = compiled.doubtful_callers;
  result.doubt = DoubtOf(compiled, *prepared, result.differing);
  return result;
}

namespace {

class Shown {
 public:
  Shown(bool json, OutputBuffer& out) : json_(json), out_(out) {}

  void Add(const UndoGroup& group) {
    for (const UndoStep& step : group.steps) {
      ++count_;
      if (!group.why_not.empty()) ++left_;
      const bool nothing = group.why_not.empty() && step.is_nothing;
      if (!json_) {
        out_.Append(step.Text() + "  # operation " +
                    std::to_string(group.sequence) +
                    (nothing ? ": made and removed: nothing to do" : "") +
                    (group.why_not.empty()
                         ? ""
                         : ": not done: " + Printable(group.why_not)) +
                    "\n");
        continue;
      }
      Json line = {{"operation", group.sequence}, {"step", step.Text()}};
      if (nothing) line["nothing_to_do"] = true;
      if (!group.why_not.empty()) line["not_done"] = Printable(group.why_not);
      steps_.push_back(std::move(line));
    }
  }

  uint64_t count() const { return count_; }
  uint64_t left() const { return left_; }
  const Json& steps() const { return steps_; }

 private:
  const bool json_;
  OutputBuffer& out_;
  Json steps_ = Json::array();
  uint64_t count_ = 0;
  uint64_t left_ = 0;
};

// Files of operations that could not be taken back, though that had been
// decided: beside the work of others that happens, and holds up those alone
// that are about the same files. All others look at what they find themselves.
class FailedFiles {
 public:
  void Add(const UndoGroup& group, const std::string& why) {
    for (const UndoStep& step : group.steps) {
      for (const uint64_t file : {step.file, step.other_file}) {
        if (file != kNoFile) why_.try_emplace(file, why);
      }
    }
  }
  // Empty: none of them is in its way.
  std::string WhyNot(const UndoGroup& group) const {
    for (const UndoStep& step : group.steps) {
      for (const uint64_t file :
           {step.file, step.other_file, step.dir, step.other_dir}) {
        if (const auto at = why_.find(file); at != why_.end()) {
          return at->second;
        }
      }
    }
    return {};
  }

 private:
  std::unordered_map<uint64_t, std::string> why_;
};

}  // namespace

Result<uint64_t> ShowOrApplyUndo(const UndoOptions& options, UndoPlan& plan,
                                 int root, OutputBuffer& out) {
  Shown shown(options.json, out);
  const bool applied = options.apply && plan.doubt.empty();
  std::string stopped;
  std::optional<PrivateFolder> room;
  UniqueFd occupied;
  std::optional<UndoApplier> applier;
  FailedFiles failed;
  if (applied) {
    auto made = PrivateFolder::Make(root, kUndoRoom);
    if (!made.ok()) return made.status().Prefixed(Printable(options.root));
    room.emplace(*std::move(made));
    occupied = OccupyUndoRoom(room->fd());
    applier.emplace(root, room->fd(), plan.store.get(), options.target.grants,
                    std::move(plan.live));
  }
  for (UndoGroup& group : plan.groups) {
    if (group.why_not.empty()) group.why_not = plan.doubt;
    if (stopped.empty() && Interruption::Happened()) stopped = "told to end";
    if (group.why_not.empty()) group.why_not = stopped;
    if (group.why_not.empty()) group.why_not = failed.WhyNot(group);
    if (group.why_not.empty() && applied) {
      const Status done = applier->Do(group);
      if (!done.ok()) {
        // What comes now was decided on as if this had been done.
        group.why_not = done.message();
        const std::string why = "operation " + std::to_string(group.sequence) +
                                " could not be taken back";
        if (options.told_by_ns == 0) stopped = why;
        failed.Add(group, why);
      }
    }
    shown.Add(group);
  }
  applier.reset();
  const Status removed =
      room ? room->Remove().Prefixed(Printable(options.root)) : Status();
  const auto result = [&]() -> Result<uint64_t> {
    if (!removed.ok()) return removed;
    return shown.left() + plan.doubtful_callers;
  };
  if (options.json) {
    const Json all = {{"steps", shown.steps()},
                      {"not_done", shown.left()},
                      {"applied", applied},
                      {"differs", plan.differing},
                      {"doubtful_callers", plan.doubtful_callers},
                      {"doubt", plan.doubt}};
    out.Append(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return result();
  }
  out.Append(std::to_string(shown.count()) + " steps, " +
             std::to_string(shown.left()) +
             (applied ? " not done" : " not possible") +
             (options.apply ? "" : options.to_apply) + "\n");
  if (plan.doubtful_callers != 0) {
    out.Append(std::to_string(plan.doubtful_callers) +
               " processes more have changed something, and below which others "
               "they were is not in the trace: what they did is left; record "
               "with STR_PROCESS\n");
  }
  if (!plan.doubt.empty()) {
    out.Append(plan.doubt +
               ": the steps are not relied on, and none is done\n");
  }
  return result();
}

}  // namespace tracefs::replay
