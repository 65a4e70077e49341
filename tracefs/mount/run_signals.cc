#include "tracefs/mount/run_signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "tracefs/process/ptrace_companion.h"

namespace tracefs {
namespace {

// For the signal handlers.
volatile pid_t g_command = 0;  // 0: there is none
volatile sig_atomic_t g_told_to_end = 0;
volatile sig_atomic_t g_told_to_stop = 0;

constexpr std::array kEnding = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
// It stops when the command does, not before.
constexpr std::array kIgnored = {SIGTTIN, SIGTTOU, SIGPIPE};

// Faults of this process itself are not among them.
std::vector<int> PassedOn() {
  std::vector<int> signals(kEnding.begin(), kEnding.end());
  signals.insert(signals.end(),
                 {SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM, SIGIO, SIGPROF,
                  SIGVTALRM, SIGXCPU, SIGSTKFLT, SIGPWR});
  for (int s = SIGRTMIN; s <= SIGRTMAX; ++s) signals.push_back(s);
  return signals;
}

void PassOn(int signal, siginfo_t* info, void*) {
  if (g_command <= 0) {
    for (const int ending : kEnding) {
      if (signal == ending) g_told_to_end = 1;
    }
  } else if (info->si_code <= 0) {
    // From the terminal they reach the command anyway.
    ::kill(g_command, signal);
  }
}

// Ctrl-Z, which reaches the command, too.
void NoteStop(int, siginfo_t* info, void*) {
  if (info->si_code > 0) g_told_to_stop = 1;
}

void Catch(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) == 0 &&
      action.sa_handler == SIG_IGN) {
    return;  // as under nohup(1)
  }
  action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

// Of those that end, as far as they are caught.
template <typename Change>
void ChangeEnding(Change&& change) {
  for (const int signal : kEnding) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 &&
        action.sa_sigaction == &PassOn) {
      change(action);
      ::sigaction(signal, &action, nullptr);
    }
  }
}

}  // namespace

void LeaveSignalsTo(pid_t command) {
  g_command = command;
  for (const int signal : PassedOn()) Catch(signal, &PassOn);
  Catch(SIGTSTP, &NoteStop);
  for (const int signal : kIgnored) ::signal(signal, SIG_IGN);
}

// A SIGSTOP by itself is not: who sent it may be what is followed here, and
// would never come to resume it.
bool StopsBoth(int signal) {
  if (signal != SIGSTOP) return PtraceCompanion::Stops(signal);
  return g_told_to_stop != 0;  // ls(1) catches the one and sends the other
}

void StopAsTold() {
  g_told_to_stop = 0;
  ::kill(::getpid(), SIGSTOP);
}

void CommandHasEnded() {
  g_command = 0;  // the number may be another's soon
  ChangeEnding(
      [](struct sigaction& action) { action.sa_flags &= ~SA_RESTART; });
}

bool ToldToEnd() { return g_told_to_end != 0; }

void LeaveSignalsToKernel() {
  ChangeEnding([](struct sigaction& action) {
    action = {};
    action.sa_handler = SIG_DFL;
  });
}

}  // namespace tracefs
