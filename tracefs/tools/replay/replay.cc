#include "tracefs/tools/replay/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tracefs/base/clock.h"
#include "tracefs/base/descriptor_limit.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/thread.h"
#include "tracefs/command/progress.h"
#include "tracefs/replay/check.h"
#include "tracefs/replay/compile.h"
#include "tracefs/replay/digest.h"
#include "tracefs/replay/interruption.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/prepare.h"
#include "tracefs/replay/undo_run.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/replay/main.h"
#include "tracefs/tools/replay/report.h"
#include "tracefs/tools/replay/stepper.h"
#include "tracefs/tools/replay/workplace.h"

namespace tracefs {
namespace {

constexpr size_t kMostDifferences = 100;
constexpr size_t kMaxDigestBytes = size_t{1} << 30;

double ProcessorSeconds() {
  return static_cast<double>(ClockNs(CLOCK_PROCESS_CPUTIME_ID)) / 1e9;
}

class Run {
 public:
  Run(const ReplayOptions& options, OutputBuffer& out, OutputBuffer& err)
      : options_(options), out_(out), err_(err) {}

  int Start() {
    const Status status = Work();
    if (!status.ok()) {
      Say(status.message());
      Raise(ExitStatus(status));
    }
    const Status written = out_.Flush();
    if (!written.ok() && written.error() != EPIPE) {
      Say(written.message());
      Raise(ExitStatus(written));
    }
    (void)err_.Flush();  // nobody to tell
    return exit_status_;
  }

 private:
  void Raise(int status) { exit_status_ = std::max(exit_status_, status); }
  void Say(const std::string& text) { err_.Append(kReplaySays + text + "\n"); }

  Status Work() {
    if (!options_.digest_of.empty()) return PrintDigest();
    if (Status s = CompileTraces(); !s.ok()) return s;
    if (options_.check) {
      const std::vector<replay::Finding> findings =
          replay::FindLacks(compiled_);
      out_.Append(replay::LacksText(compiled_, findings, options_.json));
      for (const replay::Finding& f : findings) {
        if (f.fatal) Raise(1);
      }
      return {};
    }
    if (options_.root.empty()) {
      Say(std::to_string(compiled_.header.actions) + " actions in " +
          TerminalWord(options_.plan));
      return {};
    }
    // Directories and files stay open as long as a trace has them so.
    RaiseDescriptorLimit();
    if (!options_.undo.empty()) return Undo();
    if (Status s = CheckRoom(); !s.ok()) return s;
    return options_.step ? Step() : ReplayAll();
  }

  // What is to be taken back is worked out in a directory of its own.
  Status Undo() {
    const Result<UniqueFd> root = replay::OpenNamedFolder(options_.root);
    if (!root.ok()) return root.status();
    if (Status s = CheckRoom(); !s.ok()) return s;
    interruption_.emplace();
    const replay::UndoOptions how = {.root = options_.root,
                                     .target = options_.target,
                                     .kept = options_.kept,
                                     .json = options_.json,
                                     .apply = options_.apply};
    Result<replay::UndoPlan> plan =
        PlanUndo(how, compiled_, root->get(), &*interruption_);
    if (!plan.ok()) return plan.status();
    const Result<uint64_t> left =
        ShowOrApplyUndo(how, *plan, root->get(), out_);
    if (!left.ok()) return left.status();
    if (*left != 0) Raise(1);
    return {};
  }

  Status PrintDigest() {
    const Result<UniqueFd> folder = replay::OpenNamedFolder(options_.digest_of);
    if (!folder.ok()) return folder.status();
    const auto digest = replay::DigestTree(folder->get(), DigestHow());
    if (!digest.ok()) return digest.status();
    out_.Append(digest->Text());
    return {};
  }

  replay::DigestOptions DigestHow() const {
    using replay::Privilege;
    const replay::Grants& grants = options_.target.grants;
    return {.owners = grants.Has(Privilege::kOwner) ||
                      (!options_.digest_of.empty() && ::geteuid() == 0),
            .set_id = grants.Has(Privilege::kSetId)};
  }

  Status CompileTraces() {
    Progress progress(options_.traces);
    replay::CompileOptions how = options_;
    how.progress = [&](uint64_t bytes) { progress.Tell(bytes); };
    Result<replay::Compiled> compiled = Compile(how, options_.check);
    progress.Hide();
    if (!compiled.ok()) return compiled.status();
    compiled_ = *std::move(compiled);
    err_.Append(compiled_.problems);
    if (compiled_.damaged) Raise(1);
    if (options_.check || !compiled_.from_trace) return {};
    for (const replay::Finding& f : replay::FindLacks(compiled_)) {
      if (f.fatal) {
        Say(std::to_string(f.count) + " " + f.text);
        if (f.key == "lost" || f.key == "operations") Raise(1);
      }
    }
    return {};
  }

  // What can be known of room before the first operation.
  Status CheckRoom() {
    struct statvfs st;
    if (::statvfs(options_.root.c_str(), &st) != 0) {
      return Status::System(errno, "--root " + TerminalWord(options_.root));
    }
    const replay::PlanHeader& h = compiled_.header;
    target_ = options_.target;
    const uint64_t free = uint64_t{st.f_bavail} * st.f_frsize;
    if (target_.max_bytes == UINT64_MAX) target_.max_bytes = free;
    if (options_.target.max_bytes != UINT64_MAX &&
        h.written_bytes > options_.target.max_bytes) {
      return Status::Invalid(
          "--max-bytes: " + std::to_string(h.written_bytes) +
          " bytes are written; select less of the trace, or allow more");
    }
    if (h.made_entries + h.initial_entries > target_.max_inodes) {
      return Status::Invalid(
          "--max-inodes: " +
          std::to_string(h.made_entries + h.initial_entries) +
          " files are made; select less of the trace, or allow more");
    }
    return {};
  }

  // DIR, or one of its clones, which are below it through no link.
  Result<std::unique_ptr<Workplace>> OpenPlace(const std::string& clone) {
    Result<UniqueFd> dir = replay::OpenNamedFolder(options_.root);
    if (!dir.ok()) return dir.status();
    std::string name = options_.root;
    if (!clone.empty()) {
      name += "/" + clone;
      if (::mkdirat(dir->get(), clone.c_str(), 0755) != 0 && errno != EEXIST) {
        return Status::System(errno, TerminalWord(name));
      }
      dir->Reset(replay::OpenBeneath(dir->get(), clone,
                                     O_PATH | O_DIRECTORY | O_NOFOLLOW));
      if (!*dir) return Status::System(errno, TerminalWord(name));
    }
    return Workplace::Open(*std::move(dir), std::move(name), options_.existing,
                           options_.target.grants);
  }

  Result<replay::Prepared> Prepare(replay::TargetTree* tree, bool empty) {
    const bool make = options_.prepare.value_or(empty);
    return replay::PrepareTree(compiled_.plan.get(), make, tree);
  }

  replay::PlayOptions PlayHow() {
    replay::PlayOptions play = options_.play;
    if (options_.until) {
      const replay::Bound bound =
          replay::BoundOf(*options_.until, compiled_.header.first_real_ns);
      play.until_sequence = bound.sequence;
      play.until_ns = bound.ns;
    }
    play.verify.grants = options_.target.grants;
    play.verify.has_bytes = options_.target.data == replay::DataMode::kRecorded;
    play.warn = [this](const replay::Mismatch& m) {
      const std::lock_guard lock(mutex_);
      Say("operation " + std::to_string(m.sequence) + ", " +
          TerminalText(m.text));
      (void)err_.Flush();
    };
    return play;
  }

  Status ReplayOne(const std::string& clone, ReplayReport* report) {
    const auto place = OpenPlace(clone);
    if (!place.ok()) return place.status();
    const bool empty = (*place)->was_empty();
    const auto tree =
        replay::TargetTree::Open((*place)->Tree(), compiled_.header, target_);
    Result<replay::Prepared> prepared = Prepare(tree.get(), empty);
    if (!prepared.ok()) return prepared.status();
    report->prepared = *std::move(prepared);
    report->made_tree = options_.prepare.value_or(empty);
    report->left_out = tree->left_out();
    if (options_.prepare_only) return (*place)->HandOver();
    const double before_s = ProcessorSeconds();
    replay::Player player(compiled_.plan.get(), compiled_.header, tree.get(),
                          PlayHow());
    Status played;
    {
      const replay::Interruption::Watching watching(&*interruption_, &player);
      played = player.Run(&report->outcome);
    }
    report->processor_s = ProcessorSeconds() - before_s;
    report->left_out = tree->left_out();
    if (replay::Interruption::Happened()) return Interrupted();
    // What was done before it failed is there to be looked at.
    if (played.ok()) played = CompareEnd(tree->root(), empty, report);
    const Status handed_over = (*place)->HandOver();
    return played.ok() ? handed_over : played;
  }

  Status Interrupted() const {
    return Status::System(
        EINTR, options_.existing
                   ? "the replay ended before its time"
                   : "the replay ended before its time, and what it had made "
                     "is removed");
  }

  Status CompareEnd(int root, bool was_empty, ReplayReport* report) {
    const bool whole = !options_.until;
    if (!options_.verify_tree || (!whole && options_.expect.empty())) return {};
    const auto digest = replay::DigestTree(root, DigestHow());
    if (!digest.ok()) return digest.status();
    EndState& end = report->end;
    end.compared = true;
    end.digest = digest->hash;
    if (!options_.expect.empty()) {
      const UniqueFd fd(::open(options_.expect.c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd) return Status::System(errno, TerminalWord(options_.expect));
      const auto text = ReadText(fd.get(), kMaxDigestBytes, "--expect");
      if (!text.ok()) return text.status();
      const auto expected = replay::ParseDigest(*text);
      if (!expected.ok()) return expected.status().Prefixed(options_.expect);
      end.first = replay::CompareDigests(*expected, *digest, kMostDifferences,
                                         &end.differences);
      return {};
    }
    replay::DigestOptions how = DigestHow();
    how.recorded_bytes = options_.target.data == replay::DataMode::kRecorded;
    how.prepared = report->made_tree;
    auto compared =
        replay::CompareWithPlan(compiled_.plan.get(), *digest, how,
                                /*others=*/!was_empty, kMostDifferences);
    if (!compared.ok()) return compared.status();
    end.differences = compared->difference_count;
    end.first = std::move(compared->differences);
    end.made_up = compared->made_up_count;
    end.made_up_files = std::move(compared->made_up);
    end.not_compared = compared->not_compared;
    return {};
  }

  Status ReplayAll() {
    interruption_.emplace();
    std::vector<std::string> folders;  // in DIR; empty: itself
    if (options_.clones == 1) folders.emplace_back();
    for (uint32_t i = 1; options_.clones > 1 && i <= options_.clones; ++i) {
      folders.push_back("clone" + std::to_string(i));
    }
    std::vector<ReplayReport> reports(folders.size());
    for (ReplayReport& report : reports) {
      report.compiled = &compiled_;
      report.options = &options_;
    }
    std::vector<Status> statuses(folders.size());
    std::vector<std::thread> threads(folders.size());
    for (size_t i = 1; i < folders.size(); ++i) {
      const Status started = StartThread(
          "replay",
          [&, i] { statuses[i] = ReplayOne(folders[i], &reports[i]); },
          &threads[i]);
      if (!started.ok()) statuses[i] = started;
    }
    statuses[0] = ReplayOne(folders[0], &reports[0]);
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
    Status first;
    for (size_t i = 0; i < folders.size(); ++i) {
      if (i > 0) Merge(reports[i], &reports[0]);
      if (first.ok()) first = statuses[i];
    }
    // Refused before anything was done: there is nothing to tell.
    if (!first.ok() && (reports[0].outcome.operations() == 0 ||
                        replay::Interruption::Happened())) {
      return first;
    }
    if (options_.prepare_only) {
      out_.Append(std::to_string(reports[0].prepared.entries) +
                  " entries made, " +
                  std::to_string(reports[0].prepared.failed) + " failed\n");
      out_.Append(LeftOutText(reports[0]));
      for (const std::string& error : reports[0].prepared.errors) Say(error);
      if (reports[0].prepared.checked != 0) {
        out_.Append(std::to_string(reports[0].prepared.other_contents) +
                    " of " + std::to_string(reports[0].prepared.checked) +
                    " files hold something else than when recorded\n");
      }
    } else {
      out_.Append(options_.json ? ReportJson(reports[0])
                                : ReportText(reports[0]));
    }
    const bool good = options_.prepare_only
                          ? reports[0].prepared.failed == 0 &&
                                !reports[0].IsLeftOut() &&
                                reports[0].prepared.other_contents == 0
                          : reports[0].Good();
    if (!good) Raise(1);
    return first;
  }

  static void Merge(const ReplayReport& from, ReplayReport* to) {
    to->outcome.Add(from.outcome);
    to->prepared.entries += from.prepared.entries;
    to->prepared.failed += from.prepared.failed;
    to->prepared.checked += from.prepared.checked;
    to->prepared.other_contents += from.prepared.other_contents;
    to->made_tree |= from.made_tree;
    to->end.compared &= from.end.compared;
    to->end.made_up += from.end.made_up;
    to->end.made_up_files.insert(to->end.made_up_files.end(),
                                 from.end.made_up_files.begin(),
                                 from.end.made_up_files.end());
    to->end.not_compared += from.end.not_compared;
    to->end.differences += from.end.differences;
    to->end.first.insert(to->end.first.end(), from.end.first.begin(),
                         from.end.first.end());
    for (size_t i = 0; i < replay::kPrivilegeCount; ++i) {
      to->left_out[i] += from.left_out[i];
    }
    to->processor_s = std::max(to->processor_s, from.processor_s);
  }

  // One operation after the other; one step back is a new run that ends one
  // operation earlier: the tree is a function of the plan's begin.
  Status Step() {
    interruption_.emplace();
    Stepper stepper(out_);
    const auto place = OpenPlace({});
    if (!place.ok()) return place.status();
    while (true) {
      ReplayReport report;
      {
        const auto tree = replay::TargetTree::Open((*place)->Tree(),
                                                   compiled_.header, target_);
        Result<replay::Prepared> prepared =
            Prepare(tree.get(), (*place)->was_empty());
        if (!prepared.ok()) return prepared.status();
        replay::PlayOptions play = PlayHow();
        play.before = [&](const replay::Action& a) {
          return stepper.Before(a);
        };
        replay::Player player(compiled_.plan.get(), compiled_.header,
                              tree.get(), std::move(play));
        const replay::Interruption::Watching watching(&*interruption_, &player);
        const Status played = player.Run(&report.outcome);
        if (replay::Interruption::Happened()) return Interrupted();
        if (!played.ok()) return played;
      }
      for (const auto& mismatch : report.outcome.mismatches) {
        out_.Append("differs: " + TerminalText(mismatch.text) + "\n");
      }
      if (stepper.again_at() == 0) return (*place)->HandOver();
      if (Status s = (*place)->Clear(); !s.ok()) return s;
      stepper.Restart();
    }
  }

  const ReplayOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  replay::Compiled compiled_;
  replay::TargetOptions target_;
  std::mutex mutex_;
  std::optional<replay::Interruption> interruption_;
  int exit_status_ = 0;
};

}  // namespace

int Replay(const ReplayOptions& options, OutputBuffer& out, OutputBuffer& err) {
  return Run(options, out, err).Start();
}

}  // namespace tracefs
