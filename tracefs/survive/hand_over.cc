#include "tracefs/survive/hand_over.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/survive/descriptors.h"
#include "tracefs/survive/keeper.h"

namespace tracefs::survive {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kTrial[] = "trial";
constexpr char kAnswer[] = "answer";
constexpr char kSpare[] = "spare";
constexpr char kAgreed = '+';

// setpriority(2), while nobody serves.
constexpr int kHurried = -20;
constexpr auto kMostTrial = seconds(20);
// Who waits for an answer waits a little longer.
constexpr auto kMostAsked = seconds(30);
// How long callers may have to wait where something hangs.
constexpr auto kMostDrained = seconds(5);

// Of the keeper, which its daemons know as a copy of it does.
int wakes_of_process = -1;

void Wake() {
  const uint64_t one = 1;
  static_cast<void>(!::write(wakes_of_process, &one, sizeof one));
}

// Waits while it is `word`; what it is then.
HandOverWord Await(const Area& area, const HandOverWord& word, seconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {
    const HandOverWord now = HandOverWord::Of(area);
    if (now.generation != word.generation || now.phase != word.phase ||
        std::chrono::steady_clock::now() >= end) {
      return now;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

void SetRefusal(Area& area, std::string_view why) {
  auto& place = area.header().refusal;
  place.fill('\0');
  std::copy_n(why.data(), std::min(why.size(), place.size() - 1), place.data());
}

// Whatever has become of it, another may be asked for.
void BeReady(Area& area) {
  for (;;) {
    const HandOverWord word = HandOverWord::Of(area);
    if (word.phase == Phase::kNone || word.Change(area, Phase::kNone)) return;
  }
}

// Another may have changed it.
Status Refusal(const Area& area) {
  const auto& place = area.header().refusal;
  std::string why(place.data(), ::strnlen(place.data(), place.size()));
  if (why.empty()) why = "the keeper does not say why";
  return Status::SystemSaid(ECANCELED, "no upgrade: " + why);
}

// Only waits, so that whoever watches this process sees the mount live on.
[[noreturn]] void StandIn(pid_t spare) {
  ::prctl(PR_SET_NAME, "tracefs-standin", 0, 0, 0);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD}) {
    ::sigaddset(&set, s);
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  int status = 3;
  for (;;) {
    for (;;) {
      int how = 0;
      const pid_t ended = ::waitpid(-1, &how, WNOHANG);
      if (ended < 0 && errno == ECHILD) ::_exit(status);
      if (ended <= 0) break;
      if (ended != spare) continue;
      status = WIFEXITED(how) ? WEXITSTATUS(how) : 3;
      spare = -1;
    }
    const timespec second = {1, 0};
    const int got = ::sigtimedwait(&set, nullptr, &second);
    if (got > 0 && got != SIGCHLD && spare > 0) ::kill(spare, got);
  }
}

// What is the keeper from now on.
[[noreturn]] void LeaveToSpare(Area& area, pid_t spare,
                               const std::string& why) {
  SetRefusal(area, why);
  const HandOverWord word = HandOverWord::Of(area);
  if (word.phase == Phase::kDrained) word.Change(area, Phase::kRefused);
  area.header().abdicated.store(::getpid());
  ::kill(spare, kLeavesToSpare);
  StandIn(spare);
}

}  // namespace

HandOverWord HandOverWord::Of(const Area& area) {
  const uint64_t word = area.header().hand_over.load();
  return {.generation = word >> 8, .phase = static_cast<Phase>(word & 255)};
}

bool HandOverWord::Change(Area& area, Phase to, uint64_t generations) const {
  uint64_t before = generation << 8 | static_cast<uint64_t>(phase);
  const uint64_t after =
      (generation + generations) << 8 | static_cast<uint64_t>(to);
  return area.header().hand_over.compare_exchange_strong(before, after);
}

Status AskForUpgrade(Area& area, const std::function<Status()>& drain,
                     const std::function<void()>& go_on) {
  HandOverWord word = HandOverWord::Of(area);
  SetRefusal(area, "");
  if (word.phase != Phase::kNone || !word.Change(area, Phase::kAsked)) {
    return Status::SystemSaid(EBUSY, "another upgrade is under way");
  }
  word.phase = Phase::kAsked;
  Wake();
  HandOverWord now = Await(area, word, kMostAsked);
  if (now.phase != Phase::kReady) {
    const bool answered = now.phase == Phase::kRefused;
    const Status why = Refusal(area);
    BeReady(area);
    return answered ? why
                    : Status::SystemSaid(
                          ETIMEDOUT, "no upgrade: the keeper does not answer");
  }
  const uint64_t begin = MonotonicNs();
  Status drained = drain();
  if (drained.ok()) {
    area.header().died_ns.store(begin);
    word = {.generation = now.generation, .phase = Phase::kDrained};
    if (!now.Change(area, Phase::kDrained)) drained = Refusal(area);
  }
  if (!drained.ok()) {
    BeReady(area);
    go_on();
    return drained;
  }
  Wake();
  now = Await(area, word, kMostDrained);
  while (now.generation == word.generation) {
    const Status why =
        now.phase == Phase::kRefused
            ? Refusal(area)
            : Status::SystemSaid(ETIMEDOUT,
                                 "no upgrade: the other program did not take "
                                 "over in time");
    if (now.Change(area, Phase::kNone)) {
      go_on();
      return why;
    }
    now = HandOverWord::Of(area);
  }
  // Another daemon is there.
  ::_exit(0);
}

HandOver::HandOver(Area& area, const ProgramToRun& program)
    : area_(area),
      program_(program),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  wakes_of_process = wakes_;
}

void HandOver::Refuse(const std::string& why) {
  SetRefusal(area_, why);
  HandOverWord::Of(area_).Change(area_, Phase::kRefused);
}

void HandOver::Disown() {
  trial_ = -1;
  static_cast<void>(answer_.Release());
}

void HandOver::Forget() {
  if (trial_ > 0) {
    ::kill(trial_, SIGKILL);
    ::waitpid(trial_, nullptr, 0);
    trial_ = -1;
  }
  answer_.Reset();
  is_deaf_ = false;
  HandOverWord::Of(area_).Change(area_, Phase::kNone);
}

void HandOver::Look(const std::function<void()>& run) {
  uint64_t count = 0;
  static_cast<void>(!::read(wakes(), &count, sizeof count));
  if (answer_) return HearTrial();
  switch (HandOverWord::Of(area_).phase) {
    case Phase::kAsked:
      return StartTrial();
    case Phase::kDrained:
      return run();
    case Phase::kNone:
    case Phase::kRefused:
    case Phase::kReady:
      break;
  }
}

// Whoever can change it could do anything as its user. The daemon can put
// another file in the place of any descriptor of a table that it shares: what
// is to be run is opened in another table.
Result<UniqueFd> HandOver::OpenProgram() const {
  const std::string what = "the program '" + program_.path + "'";
  UniqueFd file(::open(program_.path.c_str(), O_PATH | O_CLOEXEC));
  struct stat st;
  if (!file || ::fstat(file.get(), &st) != 0) {
    return Status::System(errno, what);
  }
  if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0) {
    return Status::Invalid(what + " is no program");
  }
  if ((st.st_uid != 0 && st.st_uid != ::geteuid()) ||
      (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Status::Invalid(what +
                           " can be changed by others; chown and chmod "
                           "go-w it");
  }
  return file;
}

void HandOver::LetThrough() const {
  std::vector<int> numbers = NumbersIn(area_);
  std::ranges::copy(program_.inheritance.Files(), std::back_inserter(numbers));
  for (const int fd : numbers) ::fcntl(fd, F_SETFD, 0);
}

void HandOver::Execute(const UniqueFd& program, const Inheritance& with) const {
  std::vector<char*> arguments;
  for (const std::string& word : program_.arguments) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const std::vector<std::string> variables = with.Variables();
  std::vector<char*> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    environment.push_back(*one);
  }
  for (const std::string& variable : variables) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  }
  environment.push_back(nullptr);
  ::execveat(program.get(), "", arguments.data(), environment.data(),
             AT_EMPTY_PATH);
}

void HandOver::StartTrial() {
  if (!program_.obstacle.empty()) return Refuse(program_.obstacle);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Refuse(Status::System(errno, "a pipe").message());
  }
  UniqueFd reads(ends[0]);
  const UniqueFd writes(ends[1]);
  trial_ = ::fork();
  if (trial_ < 0) return Refuse(Status::System(errno, "a process").message());
  if (trial_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    const auto end = [&writes](const std::string& why) {
      static_cast<void>(!::write(writes.get(), why.data(), why.size()));
      ::_exit(3);
    };
    const Result<UniqueFd> program = OpenProgram();
    if (!program.ok()) end(program.status().message());
    Inheritance with = program_.inheritance;
    with.SetNumber(kTrial, 1);
    static_cast<void>(with.SetFile(kAnswer, writes.get()));
    LetThrough();
    ::fcntl(writes.get(), F_SETFD, 0);
    Execute(*program, with);
    end("the program '" + program_.path +
        "' cannot be run: " + std::strerror(errno));
  }
  answer_ = std::move(reads);
  ::fcntl(answer_.get(), F_SETFL, O_NONBLOCK);
  const auto most = std::chrono::nanoseconds(kMostTrial).count();
  trial_until_ns_ = MonotonicNs() + static_cast<uint64_t>(most);
}

void HandOver::HearTrial() {
  std::array<char, 1024> text;
  const ssize_t n = ::read(answer_.get(), text.data(), text.size());
  const bool late = MonotonicNs() >= trial_until_ns_;
  if (n < 0 && (errno == EAGAIN || errno == EINTR) && !late) return;
  std::string why(text.data(), static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n <= 0) ::kill(trial_, SIGKILL);
  answer_.Reset();
  ::waitpid(trial_, nullptr, 0);
  trial_ = -1;
  if (n > 0 && why[0] == kAgreed) {
    HandOverWord::Of(area_).Change(area_, Phase::kReady);
    return;
  }
  if (why.empty()) {
    why = late ? "the program did not say in time whether it can take over"
               : "the program ended without a word on whether it can take over";
  }
  Refuse(why);
}

Status HandOver::Run(pid_t spare, pid_t daemon) {
  if (const auto there = OpenProgram(); !there.ok()) return there.status();
  if (spare <= 0) {
    return Status::SystemSaid(
        EAGAIN, "no process is there that would go on if it could not");
  }
  // As execve(2) does. From here on this process does not see what daemons
  // open: it is their keeper no more.
  if (::unshare(CLONE_FILES) != 0) {
    return Status::System(errno, "a table of descriptors");
  }
  const Result<UniqueFd> program = OpenProgram();
  if (!program.ok()) LeaveToSpare(area_, spare, program.status().message());
  Inheritance with = program_.inheritance;
  with.SetNumber(kSpare, static_cast<uint64_t>(spare));
  if (daemon > 0) with.SetNumber("daemon", static_cast<uint64_t>(daemon));
  LetThrough();
  // Callers wait.
  const int priority = ::getpriority(PRIO_PROCESS, 0);
  with.Set("priority", std::to_string(priority));
  ::setpriority(PRIO_PROCESS, 0, kHurried);
  Execute(*program, with);
  const Status why = Status::System(errno, "'" + program_.path + "'");
  ::setpriority(PRIO_PROCESS, 0, priority);
  LeaveToSpare(area_, spare, why.message());
}

void StopHurrying(const Inheritance& inheritance) {
  const std::string text = inheritance.Text("priority");
  int priority = 0;
  std::from_chars(text.data(), text.data() + text.size(), priority);
  ::setpriority(PRIO_PROCESS, 0, priority);
}

bool IsTrial(const Inheritance& inheritance) { return inheritance.Has(kTrial); }

void Agree(const Inheritance& inheritance) {
  const Result<int> answer = inheritance.File(kAnswer);
  if (!answer.ok()) ::_exit(3);
  static_cast<void>(!::write(*answer, &kAgreed, 1));
  ::_exit(0);
}

void Decline(const Inheritance& inheritance, Area* area,
             const std::string& why) {
  if (IsTrial(inheritance)) {
    const Result<int> answer = inheritance.File(kAnswer);
    if (answer.ok()) {
      static_cast<void>(!::write(*answer, why.data(), why.size()));
    }
    ::_exit(3);
  }
  const auto spare = static_cast<pid_t>(inheritance.Number(kSpare));
  // It sees that this ends, too.
  if (area == nullptr || spare <= 0) ::_exit(3);
  StopHurrying(inheritance);
  LeaveToSpare(*area, spare, why);
}

}  // namespace tracefs::survive
