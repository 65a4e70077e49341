// What this machine takes for the steps that a FUSE request is made of, so that
// figures of two machines can be told apart.
//
//   host_costs [--count 20000]
//
// Prints one JSON object, medians in ns: "system call" (getppid), "stat" (of
// /), "pipe, one processor" and "pipe, two processors" (a byte there and back
// between two processes that are pinned), "wake-up" (from writing an eventfd to
// the sleeper's first instruction on another processor).
// Exit status: 0 done, 2 wrong usage, 3 the system refused something.
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

namespace po = boost::program_options;

int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

[[noreturn]] void Refused(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int64_t Median(std::vector<int64_t>& values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Batches, since one call is hardly longer than a reading of the clock.
int64_t OfCall(int count, const std::function<void()>& call) {
  constexpr int kBatch = 100;
  std::vector<int64_t> ns;
  for (int i = 0; i < std::max(1, count / kBatch); ++i) {
    const int64_t begin = NowNs();
    for (int n = 0; n < kBatch; ++n) call();
    ns.push_back((NowNs() - begin) / kBatch);
  }
  return Median(ns);
}

// The processors that this process may use.
std::vector<int> Processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) Refused("affinity");
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  }
  return found;
}

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) Refused("affinity");
}

// A byte to a child on `theirs` and back. Runs in a child of its own, so that
// nobody else stays pinned.
int64_t OfPipe(int count, int ours, int theirs) {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) Refused("pipe");
  const pid_t child = ::fork();
  if (child < 0) Refused("fork");
  if (child == 0) {
    ::close(there[1]);
    ::close(back[0]);
    PinTo(theirs);
    char byte;
    while (::read(there[0], &byte, 1) == 1 && ::write(back[1], &byte, 1) == 1) {
    }
    ::_exit(0);
  }
  ::close(there[0]);
  ::close(back[1]);
  std::vector<int64_t> ns;
  std::thread([&] {
    PinTo(ours);
    char byte = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t begin = NowNs();
      if (::write(there[1], &byte, 1) != 1 || ::read(back[0], &byte, 1) != 1) {
        break;
      }
      ns.push_back(NowNs() - begin);
    }
  }).join();
  ::close(there[1]);
  ::close(back[0]);
  ::waitpid(child, nullptr, 0);
  if (ns.empty()) Refused("pipe");
  return Median(ns);
}

int64_t OfWakeUp(int count, int ours, int theirs) {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) Refused("eventfd");
  std::atomic<int64_t> written{0};
  std::atomic<bool> asleep{false};
  std::vector<int64_t> ns;
  std::thread sleeper([&] {
    PinTo(theirs);
    uint64_t value;
    for (int i = 0; i < count; ++i) {
      asleep = true;
      if (::read(fd, &value, sizeof value) != sizeof value) return;
      ns.push_back(NowNs() - written);
    }
  });
  std::thread([&] {
    PinTo(ours);
    const uint64_t one = 1;
    for (int i = 0; i < count; ++i) {
      while (!asleep.exchange(false)) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      written = NowNs();
      if (::write(fd, &one, sizeof one) != sizeof one) return;
    }
  }).join();
  sleeper.join();
  ::close(fd);
  if (ns.empty()) Refused("eventfd");
  return Median(ns);
}

void Print(const char* name, int64_t ns, bool first = false) {
  std::printf("%s\"%s\":%lld", first ? "{" : ",", name,
              static_cast<long long>(ns));
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  po::options_description options("Usage: host_costs [OPTION]...");
  options.add_options()("count", po::value(&count)->default_value(20000),
                        "100 to 1000000")("help,h", "print this and exit");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, options), given);
    if (given.count("help") != 0) {
      std::cout << options;
      return 0;
    }
    po::notify(given);
  } catch (const po::error& error) {
    std::cerr << "host_costs: " << error.what() << " (see --help)\n";
    return 2;
  }
  if (count < 100 || count > 1000000) {
    std::cerr << "host_costs: --count takes 100 to 1000000\n";
    return 2;
  }
  try {
    const std::vector<int> cpus = Processors();
    Print("system call", OfCall(count, [] { ::getppid(); }), true);
    Print("stat", OfCall(count, [] {
            struct stat s;
            ::stat("/", &s);
          }));
    Print("pipe, one processor", OfPipe(count, cpus.front(), cpus.front()));
    if (cpus.size() > 1) {
      Print("pipe, two processors", OfPipe(count, cpus[0], cpus[1]));
      Print("wake-up", OfWakeUp(count / 10, cpus[0], cpus[1]));
    }
    std::printf("}\n");
  } catch (const std::system_error& error) {
    std::cerr << "host_costs: " << error.what() << "\n";
    return 3;
  }
  return 0;
}
