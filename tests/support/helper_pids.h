// Processes beside this one, by /proc.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace tracefs {

// The youngest living child of `parent` with that name; 0 if there is none.
// Older ones may be on their way to their end.
inline pid_t ChildNamed(pid_t parent, std::string_view name) {
  if (parent <= 0) return 0;
  const std::string number = std::to_string(parent);
  std::ifstream in("/proc/" + number + "/task/" + number + "/children");
  pid_t youngest = 0;
  // The kernel lists them in the order of their beginning.
  for (pid_t child = 0; in >> child;) {
    const std::string folder = "/proc/" + std::to_string(child);
    std::ifstream comm(folder + "/comm");
    std::ifstream stat(folder + "/stat");
    std::string own;
    std::string line;
    if (std::getline(comm, own) && own == name && std::getline(stat, line) &&
        line.find(") Z ") == line.npos) {
      youngest = child;
    }
  }
  return youngest;
}

// The same, once it is there and has taken its name.
inline pid_t AwaitChildNamed(pid_t parent, std::string_view name) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  for (;;) {
    const pid_t child = ChildNamed(parent, name);
    if (child != 0 || steady_clock::now() > end) return child;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// False if it is 0, which would be this process's group.
inline bool Kill(pid_t pid, int number = SIGKILL) {
  return pid > 0 && ::kill(pid, number) == 0;
}

}  // namespace tracefs
