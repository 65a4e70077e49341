#include "tracefs/command/paged_output.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/file_io.h"

namespace tracefs {
namespace {

constexpr char kDefault[] =
    "if command -v less >/dev/null; then exec less; "
    "elif command -v more >/dev/null; then exec more; else exec cat; fi";
constexpr char kSecureDefault[] =
    "if command -v less >/dev/null; then exec less; else exec cat; fi";
// Ends by itself if all fits on the screen, shows colours, leaves it there.
constexpr char kLess[] = "LESS=FRX";

std::string_view Environment(const char* name) {
  const char* const value = ::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// less runs no commands then, also not those of its own variables.
constexpr char kLessSecure[] = "LESSSECURE=1";

// Whether the environment may be that of somebody with other rights: sudo(8)
// and pkexec(1) say who asked for it, doas(1) says it by name.
bool IsOfSomebodyElse() {
  if (::getauxval(AT_SECURE) != 0 || ::getuid() != ::geteuid()) return true;
  const std::string self = std::to_string(::getuid());
  for (const char* const name : {"SUDO_UID", "PKEXEC_UID"}) {
    if (::getenv(name) != nullptr && Environment(name) != self) return true;
  }
  return ::getenv("DOAS_USER") != nullptr;
}

std::vector<char*> EnvironmentOfPager() {
  std::vector<char*> variables;
  const bool secure = IsOfSomebodyElse();
  constexpr std::string_view kLessSecureName = "LESSSECURE=";
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (secure && std::string_view(*at).starts_with(kLessSecureName)) continue;
    variables.push_back(*at);
  }
  if (::getenv("LESS") == nullptr) {
    variables.push_back(const_cast<char*>(kLess));
  }
  if (secure) variables.push_back(const_cast<char*>(kLessSecure));
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

void AddPagerOptions(CommandOptions* options) {
  options->push_back({.name = "pager",
                      .value = "COMMAND",
                      .help = "on a terminal: show the output with it; "
                              "default: $TRACEFS_PAGER, $PAGER, less",
                      .excludes = "no-pager"});
  options->push_back({"no-pager", "", "write to the terminal itself"});
}

PagerWish ReadPagerOptions(const CommandLine& given) {
  return {.never = given.Has("no-pager"), .command = given.Text("pager")};
}

std::string PagerCommand(const PagerWish& wish) {
  if (wish.never) return {};
  std::string command = wish.command;
  if (command.empty()) {
    const std::string_view terminal = Environment("TERM");
    if (terminal.empty() || terminal == "dumb") return {};
    if (IsOfSomebodyElse()) return kSecureDefault;
    // Set to nothing, they say that none is wanted.
    for (const char* const name : {"TRACEFS_PAGER", "PAGER"}) {
      if (::getenv(name) == nullptr) continue;
      command = Environment(name);
      return command == "cat" ? std::string() : command;
    }
    return kDefault;
  }
  return command == "cat" ? std::string() : command;
}

PagedOutput::~PagedOutput() {
  static_cast<void>(Flush());  // who wanted to know has asked before
  if (pager_ < 0) return;
  // The pager sees the end when nobody can write any more.
  ::dup2(output_.get(), STDOUT_FILENO);
  if (errors_) ::dup2(errors_.get(), STDERR_FILENO);
  while (::waitpid(pager_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status PagedOutput::Emit(std::string_view text) {
  if (!begun_) Begin();
  return WriteAll(STDOUT_FILENO, AsBytes(text), "cannot write the output");
}

size_t TerminalColumns() {
  winsize window{};
  if (::isatty(STDOUT_FILENO) != 1 ||
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) {
    return 0;
  }
  return window.ws_col;
}

void PagedOutput::Begin() {
  begun_ = true;
  if (::isatty(STDOUT_FILENO) != 1) return;
  const std::string command = PagerCommand(wish_);
  if (!command.empty()) Start(command);
}

// What cannot be had is done without: the terminal is there.
void PagedOutput::Start(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  UniqueFd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  UniqueFd errors;
  if (::isatty(STDERR_FILENO) == 1) {
    errors = UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  }
  if (!output) return;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  if (::posix_spawn_file_actions_init(&files) != 0) return;
  if (::posix_spawnattr_init(&how) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return;
  }
  ::posix_spawn_file_actions_adddup2(&files, from.get(), STDIN_FILENO);
  // What we ignore it shall not.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::sigaddset(&signals, SIGXFSZ);
  ::sigaddset(&signals, SIGINT);
  ::posix_spawnattr_setsigdefault(&how, &signals);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
  const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
  // Before there is a pager: what is typed from then on is for it.
  struct sigaction ignored = {};
  ignored.sa_handler = SIG_IGN;
  struct sigaction before = {};
  ::sigaction(SIGINT, &ignored, &before);
  const int failed = ::posix_spawn(&pager_, "/bin/sh", &files, &how,
                                   const_cast<char* const*>(words),
                                   EnvironmentOfPager().data());
  ::posix_spawnattr_destroy(&how);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    pager_ = -1;
    ::sigaction(SIGINT, &before, nullptr);
    return;
  }
  ::dup2(to.get(), STDOUT_FILENO);
  if (errors) ::dup2(to.get(), STDERR_FILENO);
  output_ = std::move(output);
  errors_ = std::move(errors);
}

}  // namespace tracefs
