// HandOver: another program takes the place of this one, keeper and daemon,
// without an end of the mount (`tracefs-ctl MNT upgrade`).
//
// The daemon asks for it. The keeper runs the program in a child on trial: it
// is given what the real one would get, and says whether it could go on from
// there; the state it sees in a copy. Only then the daemon is drained: it takes
// no more requests, which wait in the kernel. The keeper becomes the other
// program (execve(2)), the process that a service manager knows, and so has all
// descriptors. When that one has all that it needs, and a spare, the daemon and
// the old spare are ended, and its own daemon goes on as after a death. From
// this moment, and from one word on (Phase), there is no way back.
//
// If it cannot, or dies before, the spare is the keeper again, and the daemon
// goes on. What becomes of the other program then, only waits: a service
// manager would end the mount with it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/survive/area.h"
#include "tracefs/survive/inheritance.h"

namespace tracefs::survive {

// Where it stands. The daemon asks, is ready to be taken over from, or gives
// up; the keeper answers.
enum class Phase : uint8_t {
  kNone,
  kAsked,    // by the daemon
  kRefused,  // by the keeper, or a program that could not; why: in the area
  kReady,    // the trial has gone well
  kDrained,  // the daemon serves nobody
};

// The word in Header::hand_over.
struct HandOverWord {
  uint64_t generation = 0;  // programs that have taken over
  Phase phase = Phase::kNone;

  static HandOverWord Of(const Area& area);
  // False: it is another by now.
  bool Change(Area& area, Phase to, uint64_t generations = 0) const;
};

// What the keeper would run.
struct ProgramToRun {
  std::string path = {};                    // absolute
  std::vector<std::string> arguments = {};  // all, with the first
  Inheritance inheritance = {};
  // Why there can be no upgrade of this mount; empty: there can.
  std::string obstacle = {};
};

// In a daemon: asks for it and waits. Returns only if there is no other
// program, and says why. `drain` stops serving, or says why that cannot be;
// `go_on` serves again. One thread at a time.
Status AskForUpgrade(Area& area, const std::function<Status()>& drain,
                     const std::function<void()>& go_on);

// Tells the spare that the keeper has ended, or leaves its place.
inline constexpr int kLeavesToSpare = SIGUSR1;

// In the keeper.
class HandOver {
 public:
  // Both outlive this.
  HandOver(Area& area, const ProgramToRun& program);

  // What a daemon has asked for is heard here; -1: it cannot be.
  int wakes() const { return is_deaf_ ? -1 : wakes_; }
  // What a trial says, while one runs; else -1.
  int trial() const { return answer_.get(); }

  // Does what there is to do. `run`: becomes the other program by calling it,
  // once, which does not return where it can.
  void Look(const std::function<void()>& run);
  // A daemon has died: what it had asked for is over.
  void Forget();
  // Runs the program in place of this process; returns why it cannot. If it
  // fails too late for that, the mount is left to the spare.
  Status Run(pid_t spare, pid_t daemon);
  // In a copy of the keeper, whose trial it is not.
  void Disown();
  // Until the next daemon.
  void HearNothing() { is_deaf_ = true; }
  // There is no other program, and why.
  void Refuse(const std::string& why);

 private:
  void StartTrial();
  void HearTrial();
  // For execve: what is handed over is not closed.
  void LetThrough() const;
  void Execute(const UniqueFd& program, const Inheritance& with) const;
  Result<UniqueFd> OpenProgram() const;

  Area& area_;
  const ProgramToRun& program_;
  const int wakes_;
  bool is_deaf_ = false;
  pid_t trial_ = -1;
  UniqueFd answer_;
  uint64_t trial_until_ns_ = 0;
};

// --- In the program that was run.

// It has run before others until now.
void StopHurrying(const Inheritance& inheritance);

// This process is only to say whether it could.
bool IsTrial(const Inheritance& inheritance);
// It could: ends the trial.
[[noreturn]] void Agree(const Inheritance& inheritance);
// It cannot, and why: ends the trial, or leaves the mount to the spare, and
// waits until that has ended. `area` may be null.
[[noreturn]] void Decline(const Inheritance& inheritance, Area* area,
                          const std::string& why);

}  // namespace tracefs::survive
