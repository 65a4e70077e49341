// A mount that outlives its daemon: where one daemon goes on after the other.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/base/version.h"
#include "tracefs/mount/mount_run.h"
#include "tracefs/survive/faults.h"
#include "tracefs/survive/keeper.h"
#include "tracefs/text/duration.h"

namespace tracefs {

// Under the numbers that they have had, which others know.
Status MountRun::OpenOwnProc() {
  Result<UniqueFd> proc = OpenProc();
  if (!proc.ok()) return proc.status();
  const UniqueFd files(
      ::openat(proc->get(), "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!files || ::dup3(proc->get(), proc_.get(), O_CLOEXEC) < 0 ||
      ::dup3(files.get(), proc_self_fd_.get(), O_CLOEXEC) < 0) {
    return Status::System(errno, "/proc/self/fd");
  }
  return Status::Ok();
}

void MountRun::KeepTraces() {
  pipeline_.RecordFirst();
  orders_ = std::make_unique<Orders>(*area_);
  orders_->Begin(&plans_);
}

// The blocks of the dead one are in the traces by now.
void MountRun::TellTraces() {
  area_->ForgetLeftBlocks();
  survive::Header& header = area_->header();
  const std::string doubts = std::to_string(header.doubts.load());
  const uint64_t upgrades = survive::HandOverWord::Of(*area_).generation;
  const std::string deaths = std::to_string(header.successions.load());
  if (header.upgrades_told.load() != upgrades) {
    pipeline_.Tell({.from_ns = MonotonicNs(),
                    .properties = {{"daemon.upgrade", std::string(kVersion)},
                                   {"daemon.doubts", doubts}}});
    return;
  }
  pipeline_.Tell({.from_ns = MonotonicNs(),
                  .properties = {{"daemon.succession", deaths},
                                 {"daemon.doubts", doubts}}});
}

Status MountRun::GoOnWithTraces() {
  survive::Header& header = area_->header();
  using survive::Tracing;
  if (header.tracing.load() == Tracing::kOff) {
    plans_.clear();
    return Status::Ok();
  }
  // That one was killed when it had ended some of them.
  std::set<uint32_t> ended;
  for (const TracerPlan& plan : plans_) {
    const survive::TraceRecord* const record = plan.parts.survives;
    if (record != nullptr &&
        record->states[record->turns.load() % 2].ended != 0) {
      ended.insert(plan.parts.id);
      ended_before_.push_back(StatsOfEnded(plan.parts));
    }
  }
  std::erase_if(plans_, [&](const TracerPlan& plan) {
    return ended.contains(
        plan.parts.kind == TracerKind::kRules ? plan.rules_of : plan.parts.id);
  });
  Result<std::vector<TracerPlan>> added = orders_->PlanAgain(names_);
  if (!added.ok()) return added.status();
  std::ranges::move(*added, std::back_inserter(plans_));
  if (Status s = tracers_->Add(std::move(plans_), nullptr); !s.ok()) return s;
  TellTraces();
  if (Status s = orders_->DoAgain(*tracers_, names_); !s.ok()) return s;
  tracers_->TellRulesBegin();
  if (header.tracing.load() == Tracing::kOn) return Status::Ok();
  const std::string crashes = std::to_string(header.crashes.load());
  pipeline_.Tell(
      {.from_ns = MonotonicNs(),
       .properties = {{"daemon.tracing", "off"}, {"daemon.crashes", crashes}}});
  tracers_->StopRules();
  static_cast<void>(pipeline_.Stop("crashes"));
  header.tracing.store(Tracing::kOff);
  return Status::Ok();
}

void MountRun::TellRefused(const std::string& request,
                           const std::string& file) {
  Notify(NoticeId::kRefused,
         "daemons crashed at the same request again and "
         "again, and it got EIO: " +
             request + " of " + file);
  pipeline_.Tell({.from_ns = MonotonicNs(),
                  .properties = {{"daemon.refused", request},
                                 {"daemon.refused_file", file}}});
}

Status MountRun::Survive() {
  if (!options_.survive) return Status::Ok();
  if (inherited_ == nullptr) {
    Result<std::unique_ptr<survive::Area>> area = survive::Area::Make();
    if (!area.ok()) return area.status();
    area_ = *std::move(area);
  }
  fs_->KeepIn(*area_);
  AwaitHelpers();
  const Result<uint32_t> before = survive::BecomeKeeper(
      *area_, {.goes_on_untraced = std::ranges::none_of(
                   plans_,
                   [](const TracerPlan& plan) {
                     return plan.parts.when_full == LossPolicy::kFail;
                   }),
               .told =
                   [this](const std::string& text) {
                     log_.SayNow(NoticeId::kFailed, "the mount ends: " + text);
                   },
               .program = OtherProgram(),
               .inheritance = inherited_});
  if (!before.ok()) return before.status();
  predecessors_ = *before;
  if (Status s = OpenOwnProc(); !s.ok()) return s;
  survive::NoteFaults();
  KeepHelpersIn(area_->header().helpers);
  session_->Survive(
      *fs_, predecessors_ != 0,
      [this](const std::string& request, const std::string& file) {
        TellRefused(request, file);
      });
  if (predecessors_ == 0) return Status::Ok();
  // Whatever becomes of this one, the outputs have a trace in them.
  begun_to_trace_->store(true);
  log_.GoOn();
  if (Status s = watchdog_->TakeOver(); !s.ok()) return s;
  return fs_->Restore();
}

void MountRun::LeaveToKeeper(const Status& why) {
  Notify(
      NoticeId::kFailed,
      "a daemon could not take the place of the one before: " + why.message());
  log_.Flush();
  area_->header().gave_up.store(1);
  ::_exit(ExitStatus(why));
}

void MountRun::LookAtKeeper() {
  const uint32_t keepers = area_->header().keepers.load();
  if (std::exchange(keepers_, keepers) != keepers) {
    Notify(NoticeId::kKeeperBack,
           "the process that would start another daemon was killed, and "
           "another is in its place (" +
               std::to_string(keepers) + " so far)");
  }
  if (survive::KeeperLives(*area_)) {
    keeper_lives_ = true;
    keeper_missed_ = false;
    return;
  }
  // The spare may be about to take its place.
  if (!keeper_lives_ || !std::exchange(keeper_missed_, true)) return;
  keeper_lives_ = false;
  Notify(NoticeId::kKeeperGone,
         "the process that would start another daemon is gone: the mount goes "
         "on, and ends with this daemon");
}

void MountRun::TellSuccession() {
  survive::Header& header = area_->header();
  const uint64_t gap = MonotonicNs() - header.died_ns.load();
  if (gap > header.longest_gap_ns.load()) header.longest_gap_ns.store(gap);
  const uint64_t upgrades = survive::HandOverWord::Of(*area_).generation;
  if (header.upgrades_told.exchange(static_cast<uint32_t>(upgrades)) !=
      upgrades) {
    Notify(NoticeId::kUpgraded,
           "another program serves it: Tracefs " + std::string(kVersion) +
               ", nobody had for " + DurationText(gap) + " (" +
               std::to_string(upgrades) + " so far)");
    return;
  }
  Notify(NoticeId::kSucceeded,
         "another daemon serves it: the one before was killed " +
             DurationText(gap) + " ago (" +
             std::to_string(header.successions.load()) + " so far)");
  if (header.tracing.load() == survive::Tracing::kOn) return;
  Notify(NoticeId::kUntraced,
         "daemons crash again and again (" +
             std::to_string(header.crashes.load()) +
             " times so far): the traces have ended, and the mount goes on "
             "without");
}

}  // namespace tracefs
