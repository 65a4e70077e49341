#include "tracefs/survive/faults.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace tracefs::survive {
namespace {

constexpr std::array kFaults = {SIGSEGV, SIGBUS,  SIGILL,
                                SIGFPE,  SIGABRT, SIGTRAP};

std::array<struct sigaction, kFaults.size()> before;

// Only what may be called in a handler of signals.
void OnFault(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  if (Area* const area = Area::OfProcess()) {
    // Somebody else's kill(2) may come to any thread.
    const bool own = info->si_code > 0 ||
                     (info->si_code == SI_TKILL && info->si_pid == ::getpid());
    const WorkSlot* const slot = Area::HadByThread();
    uint32_t faulted = Header::kSomeFault;
    // One past all: a thread that serves nothing.
    if (own) {
      faulted = (slot != nullptr ? area->NumberOf(*slot)
                                 : static_cast<uint32_t>(Area::kSlots)) +
                1;
    }
    uint32_t none = 0;
    area->header().faulted.compare_exchange_strong(none, faulted);
  }
  for (size_t i = 0; i < kFaults.size(); ++i) {
    if (kFaults[i] == signal) ::sigaction(signal, &before[i], nullptr);
  }
  // Comes when this returns; one of the processor's own comes again anyway.
  ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
  errno = error;
}

}  // namespace

void NoteFaults() {
  struct sigaction action {};
  action.sa_sigaction = &OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  for (size_t i = 0; i < kFaults.size(); ++i) {
    ::sigaction(kFaults[i], &action, &before[i]);
  }
}

}  // namespace tracefs::survive
