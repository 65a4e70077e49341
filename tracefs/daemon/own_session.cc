#include "tracefs/daemon/own_session.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr std::string_view kSessionNice = "-20";
// The kernel's PROC_CGROUP_INIT_INO: in any other namespace "/" may be a group.
constexpr ino_t kFirstCgroupNamespace = 0xEFFFFFFB;

std::string FirstLine(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// True if `word` is one of the words of `text`, which `separator` divides.
bool Has(std::string_view text, char separator, std::string_view word) {
  while (!text.empty()) {
    if (TakeUpTo(text, separator) == word) return true;
  }
  return false;
}

// Whether sessions, and not cgroups, share out the processors to this process.
bool SessionsCount() {
  if (FirstLine("/proc/sys/kernel/sched_autogroup_enabled") != "1") {
    return false;
  }
  struct stat st;
  if (::stat("/proc/self/ns/cgroup", &st) == 0 &&
      st.st_ino != kFirstCgroupNamespace) {
    return false;
  }
  // A line is "number:controllers:path"; version 2 names no controllers.
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  bool in_root = true;
  while (std::getline(in, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return false;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool at_root = line.substr(second + 1) == "/";
    if (Has(controllers, ',', "cpu")) return at_root;
    if (controllers.empty()) in_root = at_root;
  }
  return in_root ||
         !Has(FirstLine("/sys/fs/cgroup/cgroup.subtree_control"), ' ', "cpu");
}

bool MakeThreadsIdle() {
  const sched_param none{};
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string tid = task.path().filename();
    // A thread may end meanwhile.
    if (::sched_setscheduler(std::stoi(tid), SCHED_IDLE, &none) != 0 &&
        errno != ESRCH) {
      return false;
    }
  }
  return !error;
}

}  // namespace

bool PreferOwnSession() {
  if (::getsid(0) != ::getpid() || !SessionsCount()) return false;
  const UniqueFd autogroup(
      ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
  if (!autogroup) return false;
  return ::write(autogroup.get(), kSessionNice.data(), kSessionNice.size()) ==
             static_cast<ssize_t>(kSessionNice.size()) &&
         MakeThreadsIdle();
}

}  // namespace tracefs
