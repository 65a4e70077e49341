// Programs that know their own names: each makes files named after the name
// that the kernel has for the thread at that moment (PR_GET_NAME), so that a
// trace can be compared with the kernel.
//
//   namer say DIR [NAME…]      says its name, then runs the next NAME beside it
//   namer rename DIR N         renames itself N times, and says each name
//   namer threads DIR N        eight threads do that at the same time
//   namer thread-exec DIR NAME a thread that is not the first runs NAME
//   namer vfork DIR N NAME…    N children by vfork(2) that run the names in
//   turn namer kill DIR N NAME      N children, each killed as soon as it has
//   run NAME namer fork-storm DIR N     N times a group of processes that fork,
//   and are
//                              killed meanwhile
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string g_folder;
std::string g_here;  // where this program lies

// Without a heap: also called by a child of vfork(2).
void Say() {
  char name[17] = "";
  char path[4300];
  ::prctl(PR_GET_NAME, name);
  std::snprintf(path, sizeof path, "%s/by-%s-%ld", g_folder.c_str(), name,
                static_cast<long>(::syscall(SYS_gettid)));
  const int fd = ::open(path, O_CREAT | O_WRONLY, 0600);
  if (fd < 0 || ::write(fd, name, std::strlen(name)) < 0) ::_exit(9);
  ::close(fd);
}

[[noreturn]] void Become(const char* const* names) {
  char path[4300];
  std::snprintf(path, sizeof path, "%s/%s", g_here.c_str(), names[0]);
  const char* argv[64] = {path, "say", g_folder.c_str()};
  for (int i = 1; i < 60 && names[i] != nullptr; ++i) argv[2 + i] = names[i];
  ::execv(path, const_cast<char* const*>(argv));
  ::_exit(8);
}

void RenameOften(int times) {
  for (int i = 0; i < times; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "r%d.%ld", i,
                  static_cast<long>(::syscall(SYS_gettid)));
    ::prctl(PR_SET_NAME, name);
    Say();
  }
}

void KillAfterExec(const char* name) {
  const char* const names[] = {name, nullptr};
  int ends[2];
  char byte;
  if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(7);
  const pid_t child = ::fork();
  if (child == 0) Become(names);
  ::close(ends[1]);
  // Closed in the middle of execve(2).
  while (::read(ends[0], &byte, 1) > 0) {
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

void RunByVfork(const char* const* names) {
  const pid_t child = ::vfork();
  if (child == 0) Become(names);
  ::waitpid(child, nullptr, 0);
}

void ForkStorm(int round) {
  const pid_t group = ::fork();
  if (group == 0) {
    ::setpgid(0, 0);
    for (;;) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      ::waitpid(child, nullptr, 0);
    }
  }
  ::setpgid(group, group);
  ::usleep(static_cast<useconds_t>(500 + round * 37 % 3000));
  ::kill(-group, SIGKILL);
  // Its children, too: they are ours now.
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  char self[4096];
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
  if (n <= 0) return 3;
  g_here.assign(self, static_cast<size_t>(n));
  g_here.resize(g_here.rfind('/'));
  const std::string what = argv[1];
  g_folder = argv[2];
  const int times = argc > 3 ? std::atoi(argv[3]) : 0;
  if (what == "say") {
    Say();
    if (argc > 3) Become(argv + 3);
  } else if (what == "rename") {
    RenameOften(times);
  } else if (what == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(RenameOften, times);
    for (std::thread& thread : threads) thread.join();
  } else if (what == "thread-exec" && argc > 3) {
    std::thread thread([&] { Become(argv + 3); });
    ::pause();
  } else if (what == "vfork" && argc > 4) {
    for (int i = 0; i < times; ++i) RunByVfork(argv + 4 + i % (argc - 4));
  } else if (what == "kill" && argc > 4) {
    for (int i = 0; i < times; ++i) KillAfterExec(argv[4]);
  } else if (what == "fork-storm") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < times; ++i) ForkStorm(i);
  } else {
    return 2;
  }
  return 0;
}
