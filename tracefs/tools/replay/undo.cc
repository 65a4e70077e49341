#include "tracefs/tools/replay/undo.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tracefs/base/printable.h"
#include "tracefs/replay/player.h"
#include "tracefs/tools/replay/clear_tree.h"
#include "tracefs/tools/replay/prepare.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

// A directory that is gone with the object.
class Scratch {
 public:
  Status Make() {
    std::string path = TemporaryFolder() + "/tracefs-undo.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return Status::System(errno, Printable(path) + ": room to work it out");
    }
    path_ = std::move(path);
    return {};
  }
  ~Scratch() {
    if (path_.empty()) return;
    (void)ClearTree(path_);  // what is left is in a folder for such things
    ::rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Result<UndoPlan> PlanUndo(const ReplayOptions& options,
                          const Compiled& compiled) {
  Scratch scratch;
  if (Status s = scratch.Make(); !s.ok()) return s;
  UndoPlan result;
  result.store.Reset(
      ::open(scratch.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  struct statvfs st;
  if (!result.store || ::fstatvfs(result.store.get(), &st) != 0) {
    return Status::System(errno, Printable(scratch.path()));
  }
  replay::TargetOptions target = options.target;
  target.devices = false;
  if (target.max_bytes == UINT64_MAX) {
    target.max_bytes = uint64_t{st.f_bavail} * st.f_frsize / 2;
  }
  auto tree = replay::TargetTree::Open(scratch.path(), compiled.header, target);
  if (!tree.ok()) return tree.status();
  auto prepared = PrepareTree(compiled.plan.get(), /*make=*/true, tree->get());
  if (!prepared.ok()) return prepared.status();
  replay::UndoRecorder recorder(**tree, result.store.get(), target.max_bytes);
  Status failed;
  replay::PlayOptions play;
  play.order = replay::OrderMode::kGlobal;
  play.verify.as_recorded_users = target.as_recorded_users;
  play.before = [&](const replay::Action& action) {
    failed = recorder.Before(action);
    return failed.ok();
  };
  replay::Outcome outcome;
  replay::Player player(compiled.plan.get(), compiled.header, tree->get(),
                        std::move(play));
  const Status played = player.Run(&outcome);
  if (!failed.ok()) return failed;
  if (!played.ok()) return played;
  result.steps = recorder.Take();
  result.mismatched = outcome.mismatched() + prepared->failed;
  return result;
}

Result<uint64_t> ShowOrApplyUndo(const ReplayOptions& options,
                                 const UndoPlan& plan, int root,
                                 OutputBuffer& out) {
  Json steps = Json::array();
  uint64_t left = 0;
  // A replay that came to something else says nothing about DIR.
  const bool apply = options.apply && plan.mismatched == 0;
  for (const replay::UndoStep& step : plan.steps) {
    std::string why_not = step.why_not;
    if (why_not.empty() && apply) {
      const Status done = DoUndoStep(root, plan.store.get(),
                                     options.target.as_recorded_users, step);
      if (!done.ok()) why_not = done.message();
    }
    if (!why_not.empty()) ++left;
    if (options.json) {
      Json line = {{"operation", step.sequence}, {"step", step.Text()}};
      if (!why_not.empty()) line["not_done"] = Printable(why_not);
      steps.push_back(std::move(line));
    } else {
      out.Append(
          step.Text() + "  # operation " + std::to_string(step.sequence) +
          (why_not.empty() ? "" : ": not done: " + Printable(why_not)) + "\n");
    }
  }
  if (options.apply && !apply) left = plan.steps.size();
  if (options.json) {
    const Json all = {{"steps", steps},
                      {"not_done", left},
                      {"applied", apply},
                      {"differs", plan.mismatched}};
    out.Append(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return left;
  }
  out.Append(std::to_string(plan.steps.size()) + " steps, " +
             std::to_string(left) + (apply ? " not done" : " not possible") +
             (options.apply ? "\n" : "; --apply does them\n"));
  if (plan.mismatched != 0) {
    out.Append(std::to_string(plan.mismatched) +
               " results of the trace come out otherwise when it is replayed: "
               "the steps are not relied on, and none is done\n");
  }
  return left;
}

}  // namespace tracefs
