// A mount that outlives its daemon: where one daemon goes on after the other.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tracefs/base/clock.h"
#include "tracefs/mount/mount_run.h"
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
  for (size_t i = 0; i < plans_.size(); ++i) {
    plans_[i].parts.survives = &area_->header().traces[i];
  }
}

// The blocks of the dead one are in the traces by now.
void MountRun::TellTraces() {
  area_->ForgetLeftBlocks();
  survive::Header& header = area_->header();
  const std::string number = std::to_string(predecessors_);
  const std::string doubts = std::to_string(header.doubts.load());
  pipeline_.Tell({.from_ns = MonotonicNs(),
                  .properties = {{"daemon.succession", number},
                                 {"daemon.doubts", doubts}}});
}

Status MountRun::Survive() {
  if (!options_.survive) return Status::Ok();
  Result<std::unique_ptr<survive::Area>> area = survive::Area::Make();
  if (!area.ok()) return area.status();
  area_ = *std::move(area);
  fs_->KeepIn(*area_);
  const Result<uint32_t> before =
      survive::BecomeKeeper(*area_, [this](const std::string& text) {
        log_.SayNow(NoticeId::kFailed, "the mount ends: " + text);
      });
  if (!before.ok()) return before.status();
  predecessors_ = *before;
  if (Status s = OpenOwnProc(); !s.ok()) return s;
  session_->Survive(*fs_, predecessors_ != 0);
  if (predecessors_ == 0) return Status::Ok();
  log_.GoOn();
  if (Status s = watchdog_->TakeOver(); !s.ok()) return s;
  return fs_->Restore();
}

void MountRun::LeaveToKeeper(const Status& why) {
  Notify(
      NoticeId::kFailed,
      "a daemon could not take the place of the one before: " + why.message());
  log_.Flush();
  ::_exit(ExitStatus(why));
}

void MountRun::LookAtKeeper() {
  if (!keeper_lives_ || survive::KeeperLives()) return;
  keeper_lives_ = false;
  Notify(NoticeId::kKeeperGone,
         "the process that would start another daemon is gone: the mount goes "
         "on, and ends with this daemon");
}

void MountRun::TellSuccession() {
  survive::Header& header = area_->header();
  const uint64_t gap = MonotonicNs() - header.died_ns.load();
  if (gap > header.longest_gap_ns.load()) header.longest_gap_ns.store(gap);
  Notify(NoticeId::kSucceeded,
         "another daemon serves it: the one before was killed " +
             DurationText(gap) + " ago (" + std::to_string(predecessors_) +
             " so far)");
}

}  // namespace tracefs
