#include "tests/mount/control/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace tracefs::testing {
namespace {

std::string TemporaryFile() {
  char name[] = "/tmp/tracefs-command-XXXXXX";
  const int fd = ::mkstemp(name);
  if (fd >= 0) ::close(fd);
  return name;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Command::Command(const std::vector<std::string>& arguments,
                 const Options& options)
    : out_path_(TemporaryFile()), err_path_(TemporaryFile()) {
  std::vector<std::string> words = arguments;
  if (words[0].find('/') == std::string::npos) {
    const char* bin = ::getenv("TRACEFS_BIN");
    words[0] = std::string(bin != nullptr ? bin : "build/release/bin") + '/' +
               words[0];
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDONLY);
  const int out = ::open(out_path_.c_str(), O_WRONLY | O_TRUNC);
  const int err = ::open(err_path_.c_str(), O_WRONLY | O_TRUNC);
  if (::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0 ||
      (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ||
      (options.uid != 0 &&
       ::setresuid(options.uid, options.uid, options.uid) != 0)) {
    ::_exit(126);
  }
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

Command::~Command() {
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::kill(pid_, SIGCONT);
    ::waitpid(pid_, nullptr, 0);
  }
  ::unlink(out_path_.c_str());
  ::unlink(err_path_.c_str());
}

bool Command::running() {
  if (reaped_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  reaped_ = true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

int Command::Wait(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (running()) {
    if (std::chrono::steady_clock::now() > end) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status_;
}

void Command::Signal(int number) const { ::kill(pid_, number); }

std::string Command::out() const { return Contents(out_path_); }
std::string Command::err() const { return Contents(err_path_); }

Outcome RunCommand(const std::vector<std::string>& arguments,
                   const Command::Options& options) {
  Command command(arguments, options);
  Outcome outcome;
  outcome.status = command.Wait();
  outcome.out = command.out();
  outcome.err = command.err();
  return outcome;
}

}  // namespace tracefs::testing
