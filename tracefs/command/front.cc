#include "tracefs/command/front.h"

#include <signal.h>
#include <unistd.h>

#include "tracefs/base/file_io.h"
#include "tracefs/base/version.h"
#include "tracefs/command/caret.h"

namespace tracefs {
namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

std::string VersionLine(std::string_view name, std::string_view more) {
  std::string line(name);
  ((line += ' ') += kVersion) += more;
  return line += '\n';
}

int Finish(std::string_view name, const Status& status) {
  if (!status.ok()) {
    const std::string line = std::string(name) + ": " + status.message() +
                             '\n' + CaretOnTerminal(status.message());
    // There is nobody to tell if this fails.
    static_cast<void>(WriteAll(STDERR_FILENO, AsBytes(line), {}));
  }
  return ExitStatus(status);
}

int FinishWith(std::string_view name, std::string_view text) {
  return Finish(name,
                WriteAll(STDOUT_FILENO, AsBytes(text), "standard output"));
}

void SetSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
}

const std::atomic<bool>& StopAtSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction was = {};
  if (::sigaction(SIGHUP, nullptr, &was) == 0 && was.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
  return g_stop;
}

}  // namespace tracefs
