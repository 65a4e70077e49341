#include "tracefs/daemon/thread_policy.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"normal", "nice", "idle"};
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

// False if one of them cannot be made so.
bool ApplyToAllThreads(ThreadPolicy policy) {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string tid = task.path().filename();
    const int refused = ApplyToThread(policy, std::stoi(tid));
    // A thread may end meanwhile.
    if (refused != 0 && refused != ESRCH) return false;
  }
  return !error;
}

}  // namespace

const char* PolicyName(ThreadPolicy policy) {
  return kNames[static_cast<size_t>(policy)].data();
}

std::optional<ThreadPolicy> PolicyOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ThreadPolicy>(i);
  }
  return std::nullopt;
}

int ApplyToThread(ThreadPolicy policy, int tid) {
  const sched_param none{};
  const int nice = policy == ThreadPolicy::kNice ? kUrgentNice : 0;
  const int scheduler =
      policy == ThreadPolicy::kIdle ? SCHED_IDLE : SCHED_OTHER;
  if (::sched_setscheduler(tid, scheduler, &none) != 0) return errno;
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice) == 0 ? 0
                                                                        : errno;
}

OwnSession::OwnSession() {
  if (::getsid(0) != ::getpid()) {
    obstacle_ = "the daemon runs in the session of a shell";
  } else if (!SessionsCount()) {
    obstacle_ = "processors are not shared out by session here";
  } else {
    autogroup_.Reset(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
    if (!autogroup_) obstacle_ = "the kernel has no autogroups";
  }
}

int OwnSession::Stand(Standing standing) const {
  if (!autogroup_) return 0;
  constexpr std::array<std::string_view, 3> kNice = {"0", "-20", "7"};
  const std::string_view nice = kNice[static_cast<size_t>(standing)];
  return ::write(autogroup_.get(), nice.data(), nice.size()) ==
                 static_cast<ssize_t>(nice.size())
             ? 0
             : errno;
}

bool ApplyToProcess(ThreadPolicy policy, const OwnSession& session) {
  const bool idle = policy == ThreadPolicy::kIdle;
  if (idle && !session.obstacle().empty()) return false;
  if (session.Stand(StandingOf(policy)) != 0) return false;
  if (ApplyToAllThreads(idle ? policy : ThreadPolicy::kNormal)) return true;
  ApplyToAllThreads(ThreadPolicy::kNormal);
  session.Stand(Standing::kLikeOthers);
  return false;
}

}  // namespace tracefs
