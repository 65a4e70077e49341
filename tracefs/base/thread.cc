#include "tracefs/base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

namespace tracefs {

Status StartThread(const char* name, std::function<void()> run,
                   std::thread* thread) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    *thread = std::thread([name, run = std::move(run)] {
      ::pthread_setname_np(::pthread_self(), name);
      run();
    });
  } catch (const std::system_error& e) {
    status = Status::System(e.code().value(),
                            "starting the thread '" + std::string(name) + "'");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace tracefs
