// Runs scenarios twice and compares (runner.h).
#include "tests/mount/transparency/runner.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace tracefs::transparency {
namespace {

constexpr int kTimeoutMs = 120'000;

// The ids of a user namespace: as many, from here on.
constexpr uid_t kMapped = 165536;
constexpr uid_t kMappedCount = 65536;

struct User {
  const char* name;
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> groups;
  bool of_namespace = false;  // uid and gid are root's of a user namespace
};

const std::vector<User>& Users() {
  static const std::vector<User> kUsers = {
      {"root", 0, 0, {0}},
      {"nobody", 65534, 65534, {}},
      {"member", 61001, 61001, {61001, kExtraGroup}},
      {"mapped root", kMapped, kMapped, {}, true},
  };
  return kUsers;
}

// Makes this process root of a user namespace of its own.
bool EnterNamespace() {
  int unshared[2];
  if (::pipe2(unshared, O_CLOEXEC) != 0) return false;
  const std::string process = "/proc/" + std::to_string(::getpid());
  const std::string map =
      "0 " + std::to_string(kMapped) + " " + std::to_string(kMappedCount);
  // Whoever is in it can map only himself.
  const pid_t helper = ::fork();
  char byte = 0;
  if (helper == 0) {
    bool ok = ::read(unshared[0], &byte, 1) == 1;
    for (const char* file : {"/uid_map", "/gid_map"}) {
      const int fd = ::open((process + file).c_str(), O_WRONLY | O_CLOEXEC);
      ok = ok && ::write(fd, map.data(), map.size()) ==
                     static_cast<ssize_t>(map.size());
      ::close(fd);
    }
    ::_exit(ok ? 0 : 1);
  }
  if (::unshare(CLONE_NEWUSER) != 0 || ::write(unshared[1], &byte, 1) != 1) {
    return false;
  }
  int status = 0;
  ::waitpid(helper, &status, 0);
  for (const int fd : unshared) ::close(fd);
  return status == 0;
}

bool Become(const User& user) {
  if (user.of_namespace && !EnterNamespace()) return false;
  const uid_t uid = user.of_namespace ? 0 : user.uid;
  const gid_t gid = user.of_namespace ? 0 : user.gid;
  return ::setgroups(user.groups.size(), user.groups.data()) == 0 &&
         ::setresgid(gid, gid, gid) == 0 && ::setresuid(uid, uid, uid) == 0;
}

[[noreturn]] void RunInChild(const Scenario& scenario, const User& user,
                             const std::string& dir, int log_fd) {
  ::setsid();
  ::umask(022);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(SIGPIPE, SIG_IGN);
  Run run(log_fd, "");
  if (::chdir(dir.c_str()) != 0) {
    run.Ret("chdir to the scenario's directory", -1);
    ::_exit(98);
  }
  if (scenario.prepare != nullptr) scenario.prepare(run);
  ::umask(022);
  if (!Become(user)) {
    run.Ret("become the user", -1);
    ::_exit(98);
  }
  // A change of user hides /proc/self from the user himself.
  ::prctl(PR_SET_DUMPABLE, 1);
  scenario.body(run);
  ::_exit(0);
}

// The log of one run; its last line says how the process ended.
std::string RunOnce(const Scenario& scenario, const User& user,
                    const std::string& dir) {
  const int log_fd = ::memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (log_fd < 0) return "memfd_create failed\n";
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) RunInChild(scenario, user, dir, log_fd);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd ended = {pidfd, POLLIN, 0};
  std::string end;
  if (::poll(&ended, 1, kTimeoutMs) != 1) {
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
    end = "HUNG\n";
    // A process that even SIGKILL does not end is left, not waited for.
    ::poll(&ended, 1, 5'000);
  }
  int status = 0;
  const bool reaped = ::waitpid(child, &status, WNOHANG) == child;
  ::kill(-child, SIGKILL);  // whoever it left behind
  ::close(pidfd);
  if (!reaped) {
    end += "not to be killed\n";
  } else if (WIFSIGNALED(status)) {
    end += "killed by signal " + std::to_string(WTERMSIG(status)) + "\n";
  } else {
    end += "exit status " + std::to_string(WEXITSTATUS(status)) + "\n";
  }

  std::string log;
  char buffer[65536];
  ssize_t n;
  for (off_t at = 0; (n = ::pread(log_fd, buffer, sizeof buffer, at)) > 0;
       at += n) {
    log.append(buffer, static_cast<size_t>(n));
  }
  ::close(log_fd);
  return log + end;
}

// The first place where two texts differ, with a little before it.
std::string FirstDifference(const std::string& left_name,
                            const std::string& left,
                            const std::string& right_name,
                            const std::string& right) {
  std::istringstream a(left), b(right);
  std::string line_a, line_b, before;
  for (;;) {
    const bool has_a = static_cast<bool>(std::getline(a, line_a));
    const bool has_b = static_cast<bool>(std::getline(b, line_b));
    if (!has_a && !has_b) return "";
    if (has_a != has_b || line_a != line_b) break;
    before = line_a;
    line_a.clear();
    line_b.clear();
  }
  std::string text;
  if (!before.empty()) text += "    after    " + before + "\n";
  text += "    " + left_name + line_a + "\n";
  text += "    " + right_name + line_b + "\n";
  return text;
}

void RemoveTree(const std::string& path) {
  // In this process, for there are thousands; paths that are too long for one
  // call are left to rm.
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (!failed) return;
  // Immutable and append-only files are made removable by their scenarios.
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("rm", "rm", "-rf", "--", path.c_str(), nullptr);
    ::_exit(127);
  }
  ::waitpid(child, nullptr, 0);
}

const Deviation* FindDeviation(const char* scenario) {
  for (const Deviation& deviation : Deviations()) {
    if (std::strcmp(deviation.scenario, scenario) == 0) return &deviation;
  }
  return nullptr;
}

void MakeDirectory(const std::string& path, const User& user) {
  if (::mkdir(path.c_str(), 0755) != 0 ||
      ::chown(path.c_str(), user.uid, user.gid) != 0) {
    std::perror(path.c_str());
    std::exit(3);
  }
}

}  // namespace

std::vector<const Scenario*> AllScenarios() {
  std::vector<const Scenario*> all;
  for (const auto table :
       {OpenScenarios(), IoScenarios(), SpaceScenarios(), NameScenarios(),
        AttributeScenarios(), PermissionScenarios(), XattrScenarios(),
        SpecialScenarios(), DirectoryScenarios(), LockScenarios(),
        FreshScenarios(), MemoryScenarios(), MiscScenarios()}) {
    for (const Scenario& scenario : table) all.push_back(&scenario);
  }
  return all;
}

Report RunTransparency(const RunnerOptions& options) {
  Report report;
  const std::string base = "/transparency." + std::to_string(::getpid());
  const std::string backing = options.backing + base;
  if (::mkdir(backing.c_str(), 0755) != 0) {
    report.differences.push_back(
        {"-", "-", "    mkdir " + backing + ": " + std::strerror(errno)});
    return report;
  }
  int number = 0;
  for (const Scenario* scenario : AllScenarios()) {
    if (std::string(scenario->name).find(options.filter) == std::string::npos) {
      continue;
    }
    std::string all_differences;
    bool deviates = false;
    const Deviation* deviation =
        options.expect_deviations ? FindDeviation(scenario->name) : nullptr;
    bool ran = false;
    for (const User& user : Users()) {
      if (options.user && *options.user != user.uid) continue;
      if (scenario->who == kRootOnly && user.uid != 0) continue;
      if (scenario->who == kUsersOnly && user.uid == 0) continue;
      ran = true;
      ++report.runs;
      const std::string name = "/" + std::to_string(++number);
      const std::string direct = backing + name + ".direct";
      const std::string stacked = backing + name + ".mount";
      const std::string seen = options.mount + base + name + ".mount";
      MakeDirectory(direct, user);
      MakeDirectory(stacked, user);

      const std::string direct_log = RunOnce(*scenario, user, direct);
      const std::string mount_log = RunOnce(*scenario, user, seen);
      std::string difference =
          FirstDifference("directly ", direct_log, "mounted  ", mount_log);
      if (direct_log.find("become the user") != std::string::npos) {
        difference = "    " + direct_log;  // nothing was tried at all
      }
      if (difference.empty()) {
        difference =
            FirstDifference("left directly ", DumpTree(direct, false),
                            "left mounted  ", DumpTree(stacked, false));
      }
      if (difference.empty()) {
        const std::string through = DumpTree(seen, true);
        difference =
            FirstDifference("tree behind the mount ", DumpTree(stacked, true),
                            "seen through it       ", through);
      }
      if (!difference.empty()) {
        if (deviation != nullptr) {
          deviates = true;
        } else {
          report.differences.push_back({scenario->name, user.name, difference});
        }
      }
      if (!options.keep) {
        RemoveTree(direct);
        RemoveTree(stacked);
      }
    }
    if (deviation != nullptr && ran) {
      if (deviates) {
        ++report.deviations;
      } else if (deviation->always && options.expect_all_deviations &&
                 !options.user) {
        report.differences.push_back(
            {scenario->name, "all",
             std::string("    does not deviate, though it is said to: ") +
                 deviation->reason + "\n"});
      }
    }
  }
  if (!options.keep) RemoveTree(backing);
  return report;
}

}  // namespace tracefs::transparency
