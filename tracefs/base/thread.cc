#include "tracefs/base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace tracefs {

std::thread StartThread(const char* name, std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([name, run = std::move(run)] {
    ::pthread_setname_np(::pthread_self(), name);
    run();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tracefs
