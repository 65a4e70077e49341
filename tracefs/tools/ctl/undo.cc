#include "tracefs/tools/ctl/undo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/descriptor_limit.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/join.h"
#include "tracefs/base/mount_table.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/text.h"
#include "tracefs/command/progress.h"
#include "tracefs/control/mount_note.h"
#include "tracefs/replay/compile.h"
#include "tracefs/replay/interruption.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/undo_rooms.h"
#include "tracefs/replay/undo_run.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/shell_word.h"
#include "tracefs/tools/ctl/mount_holders.h"
#include "tracefs/tools/ctl/request.h"

namespace tracefs {
namespace {

using std::chrono_literals::operator""ms;

// Longer than a tick of the clock by which the kernel gives files their times.
constexpr auto kTick = 20ms;

// All of the mount, whatever in it was named, and nothing that is mounted in
// it.
struct Root {
  std::string path;
  UniqueFd fd;
};

Result<Root> OpenRoot(const MountIdentity& mount) {
  const std::string device =
      std::to_string(mount.major) + ':' + std::to_string(mount.minor);
  for (const MountLine& line : MountTable()) {
    if (line.device != device || line.root != "/") continue;
    UniqueFd fd(::open(line.point.c_str(),
                       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct statx st;
    if (!fd ||
        ::statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) != 0 ||
        st.stx_dev_major != mount.major || st.stx_dev_minor != mount.minor) {
      continue;  // something else is mounted upon it
    }
    return Root{line.point, EncloseFolder(std::move(fd))};
  }
  return Status::Invalid(
      "the root of the mount is nowhere to be reached in this mount "
      "namespace: something else is mounted upon it, or parts of it alone are "
      "mounted here");
}

// Which traces, and where what was kept is.
Result<MountNote> FindTraces(const CtlOptions& options,
                             const MountIdentity& mount) {
  Result<MountNote> note = ReadMountNote(mount);
  MountNote found = note.ok() ? *std::move(note) : MountNote();
  if (!options.traces.empty()) found.traces = options.traces;
  if (!options.kept.empty()) found.kept = options.kept;
  if (found.traces.empty()) {
    return Status::Invalid(
        "undo: no trace of this mount is known to be a file on this host. "
        "Name it with --trace. What a receiver stores is taken back where it "
        "is stored: tracefs-replay FILE --root MNT --undo 'FILTER'");
  }
  if (found.traces.size() > 1) {
    const std::string names =
        JoinWords(found.traces, ", ",
                  [](const std::string& trace) { return TerminalWord(trace); });
    return Status::Invalid(
        "undo: the mount writes several traces, which all tell the same "
        "operations; choose one with --trace: " +
        names);
  }
  return found;
}

// Whoever could write to a trace could have anything done.
Status CheckTrace(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return Status::System(errno, TerminalWord(path));
  return CheckOwnership(fd.get(), {}, "trace " + TerminalWord(path));
}

// All parts of the trace, as far as it is written by now.
Status FindParts(MountNote* files) {
  files->traces = replay::WithAllParts(files->traces);
  for (const std::string& path : files->traces) {
    if (Status s = CheckTrace(path); !s.ok()) return s;
  }
  return {};
}

// Everything that was changed so far is in the trace when it returns: what had
// ended by `*ended_ns`, and what gave a file a time up to `*told_ns`. What
// comes later is recognised by its time.
Status BringToTrace(const Root& root, ControlClient& client, uint64_t* told_ns,
                    uint64_t* ended_ns) {
  const UniqueFd fd(
      replay::OpenBeneath(root.fd.get(), ".", O_RDONLY | O_DIRECTORY));
  // What was written through maps is still in the kernel.
  if (!fd || ::syncfs(fd.get()) != 0) {
    return Status::System(errno, TerminalWord(root.path));
  }
  *told_ns = RealNs();
  std::this_thread::sleep_for(kTick);
  *ended_ns = RealNs();
  std::this_thread::sleep_for(kTick);
  return client.Call(SimpleRequest("flush")).status();
}

std::set<uint64_t> InodesOf(const replay::UndoPlan& plan) {
  std::set<uint64_t> inodes;
  for (const replay::UndoGroup& group : plan.groups) {
    if (!group.why_not.empty()) continue;
    for (const replay::UndoStep& step : group.steps) {
      const auto live = plan.live.find(step.file);
      if (live != plan.live.end() && S_ISREG(live->second.st_mode)) {
        inodes.insert(live->second.st_ino);
      }
    }
  }
  return inodes;
}

bool SaysYes(OutputBuffer& out) {
  out.Append("Do this? [y/N] ");
  static_cast<void>(out.Flush());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

class LiveUndo {
 public:
  LiveUndo(const CtlOptions& options, ControlClient& client, OutputBuffer& out,
           const std::function<void(const std::string&)>& tell)
      : options_(options), client_(client), out_(out), tell_(tell) {}

  Result<uint64_t> Run() {
    const MountIdentity mount = client_.mount();
    Result<Root> root = OpenRoot(mount);
    if (!root.ok()) return root.status();
    Result<MountNote> files = FindTraces(options_, mount);
    if (!files.ok()) return files.status();
    // Before the daemon is asked for anything.
    if (Status s = FindParts(&*files); !s.ok()) return s;
    Result<std::vector<std::string>> left =
        replay::LeftUndoRooms(root->fd.get());
    if (!left.ok()) return left.status();
    RaiseDescriptorLimit();
    replay::UndoOptions how = {.root = root->path,
                               .target = options_.target,
                               .kept = files->kept,
                               .json = options_.json};
    how.to_apply = options_.dry_run ? "; without --dry-run the others are" : "";
    uint64_t ended_ns = 0;
    if (Status s = BringToTrace(*root, client_, &how.told_by_ns, &ended_ns);
        !s.ok()) {
      return s;
    }
    if (Status s = FindParts(&*files); !s.ok()) return s;
    Result<replay::Compiled> compiled =
        CompileTrace(*files, *std::move(left), ended_ns);
    if (!compiled.ok()) return compiled.status();
    if (Status s = CheckPlace(*compiled, mount); !s.ok()) return s;
    // What the trace says of that is the daemon's word: no more than a name in
    // the folder that is known.
    if (how.kept.empty()) compiled->kept.clear();
    replay::Interruption interruption;
    Result<replay::UndoPlan> plan =
        PlanUndo(how, *compiled, root->fd.get(), &interruption);
    if (!plan.ok()) return plan.status();
    if (std::string users = FileUsersText(mount, InodesOf(*plan));
        !users.empty()) {
      tell_("in use, and what is written there from now on stays: " + users);
    }
    if (plan->groups.empty()) {
      tell_(
          "no change in the trace matches; what does: tracefs-dump --filter " +
          ShellWord(TerminalText(options_.filter)) + ' ' +
          ShellPath(files->traces[0]));
    }
    return ShowAndDo(how, *plan, root->fd.get());
  }

 private:
  Result<replay::Compiled> CompileTrace(const MountNote& files,
                                        std::vector<std::string> left,
                                        uint64_t ended_ns) {
    replay::CompileOptions what;
    what.traces = files.traces;
    what.keys = options_.keys;
    what.undo = options_.filter;
    what.says.clear();
    what.undo_origin = "undo";
    what.ended_by_ns = ended_ns;
    if (!left.empty()) {
      tell_("an undo before was killed: what it did is taken back, too");
    }
    what.left_rooms = std::move(left);
    Progress progress(what.traces);
    what.progress = [&](uint64_t bytes) { progress.Tell(bytes); };
    Result<replay::Compiled> compiled = Compile(what, /*dry=*/false);
    progress.Hide();
    if (!compiled.ok()) return compiled;
    std::string_view problems = compiled->problems;
    while (!problems.empty()) tell_(std::string(TakeUpTo(problems, '\n')));
    return compiled;
  }

  static Status CheckPlace(const replay::Compiled& compiled,
                           const MountIdentity& mount) {
    const std::vector<std::string> points = MountPointsOf(mount);
    if (std::ranges::find(points, compiled.mount_point) != points.end()) {
      return {};
    }
    return Status::Invalid("undo: the trace is of the mount at " +
                           TerminalWord(compiled.mount_point) +
                           ", not of this one");
  }

  Result<uint64_t> ShowAndDo(replay::UndoOptions& how, replay::UndoPlan& plan,
                             int root) {
    if (options_.dry_run) return ShowOrApplyUndo(how, plan, root, out_);
    // Rules would take it for what it takes back.
    Result<ControlClient> asked =
        ControlClient::Connect(options_.mount, options_.patience);
    if (!asked.ok()) return asked.status();
    client_ = std::move(*asked);
    if (const Result<std::string> spared = client_.Call(SpareRequest());
        !spared.ok()) {
      return spared.status();
    }
    const bool asks = !options_.yes && !options_.json &&
                      ::isatty(STDIN_FILENO) == 1 &&
                      ::isatty(STDOUT_FILENO) == 1;
    if (asks) {
      const auto left = ShowOrApplyUndo(how, plan, root, out_);
      if (!left.ok() || plan.groups.empty() || !plan.doubt.empty()) return left;
      if (!SaysYes(out_)) {
        return Status::SystemSaid(ECANCELED, "undo: nothing was done");
      }
    }
    how.apply = true;
    auto left = ShowOrApplyUndo(how, plan, root, out_);
    if (left.ok() && !options_.json && !plan.groups.empty() &&
        plan.doubt.empty()) {
      tell_("this was done by process " + std::to_string(::getpid()) +
            ": undo 'cpid = " + std::to_string(::getpid()) +
            "' takes it back again");
    }
    return left;
  }

  const CtlOptions& options_;
  ControlClient& client_;
  OutputBuffer& out_;
  const std::function<void(const std::string&)>& tell_;
};

}  // namespace

Result<uint64_t> UndoOnMount(
    const CtlOptions& options, ControlClient& client, OutputBuffer& out,
    const std::function<void(const std::string&)>& tell) {
  return LiveUndo(options, client, out, tell).Run();
}

}  // namespace tracefs
