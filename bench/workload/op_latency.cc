// Times single system calls on files in a directory, one kind after the other:
// percentiles of each, so that a mount can be compared with the directory below
// it operation by operation.
//
//   op_latency DIR [--op NAME]... [--count 2000]
//
// Prints one JSON object: {"stat":{"count":…,"p50":…,"p90":…,"p99":…,"p999":…,
// "max":…,"mean":…}, …}, times in ns, those of two clock readings included.
// Exit status: 0 done, 2 wrong usage, 3 the system refused something.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr size_t kIoBytes = 4096;
constexpr int kEntries = 32;  // of the directory that is listed

// What all operations work on. Each returns false with errno set.
struct Place {
  std::string dir;
  std::string file;  // exists, 1 MiB
  int fd = -1;       // of `file`, open for reading and writing
  char data[kIoBytes] = {};

  std::string Name(int i) const { return dir + "/n" + std::to_string(i); }
};

bool Prepare(Place& place) {
  if (::mkdir(place.dir.c_str(), 0700) != 0 && errno != EEXIST) return false;
  place.file = place.dir + "/file";
  place.fd = ::open(place.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (place.fd < 0) return false;
  for (int i = 0; i < 256; ++i) {
    if (::pwrite(place.fd, place.data, kIoBytes, i * kIoBytes) !=
        ssize_t{kIoBytes}) {
      return false;
    }
  }
  const std::string list = place.dir + "/list";
  if (::mkdir(list.c_str(), 0700) != 0 && errno != EEXIST) return false;
  for (int i = 0; i < kEntries; ++i) {
    const int fd = ::open((list + "/e" + std::to_string(i)).c_str(),
                          O_CREAT | O_RDWR, 0600);
    if (fd < 0) return false;
    ::close(fd);
  }
  return true;
}

bool ListEntries(const std::string& path) {
  DIR* list = ::opendir(path.c_str());
  if (list == nullptr) return false;
  errno = 0;
  while (::readdir(list) != nullptr) {
  }
  const bool good = errno == 0;
  ::closedir(list);
  return good;
}

// In this order: what a later one needs, an earlier one made. `i` counts up.
using Operation = std::function<bool(Place&, int i)>;
const std::vector<std::pair<std::string, Operation>>& Operations() {
  static const auto at = [](int i) { return off_t{i % 256} * kIoBytes; };
  static const std::vector<std::pair<std::string, Operation>> operations = {
      {"stat",
       [](Place& p, int) {
         struct stat s;
         return ::stat(p.file.c_str(), &s) == 0;
       }},
      {"stat-missing",
       [](Place& p, int) {
         struct stat s;
         return ::stat((p.dir + "/missing").c_str(), &s) != 0 &&
                errno == ENOENT;
       }},
      {"open-close",
       [](Place& p, int) {
         const int fd = ::open(p.file.c_str(), O_RDONLY | O_CLOEXEC);
         return fd >= 0 && ::close(fd) == 0;
       }},
      {"read-4k",
       [](Place& p, int i) {
         return ::pread(p.fd, p.data, kIoBytes, at(i)) == ssize_t{kIoBytes};
       }},
      {"write-4k",
       [](Place& p, int i) {
         return ::pwrite(p.fd, p.data, kIoBytes, at(i)) == ssize_t{kIoBytes};
       }},
      {"fsync", [](Place& p, int) { return ::fsync(p.fd) == 0; }},
      {"readdir", [](Place& p, int) { return ListEntries(p.dir + "/list"); }},
      {"getxattr",
       [](Place& p, int) {
         return ::getxattr(p.file.c_str(), "user.none", nullptr, 0) < 0 &&
                (errno == ENODATA || errno == ENOTSUP);
       }},
      {"chmod",
       [](Place& p, int i) {
         return ::chmod(p.file.c_str(), i % 2 == 0 ? 0600 : 0640) == 0;
       }},
      {"create",
       [](Place& p, int i) {
         const int fd = ::open(p.Name(i).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
         return fd >= 0 && ::close(fd) == 0;
       }},
      {"rename",
       [](Place& p, int i) {
         return ::rename(p.Name(i).c_str(), (p.Name(i) + "r").c_str()) == 0;
       }},
      {"unlink",
       [](Place& p, int i) {
         return ::unlink((p.Name(i) + "r").c_str()) == 0;
       }},
      {"mkdir",
       [](Place& p, int i) {
         return ::mkdir((p.Name(i) + "d").c_str(), 0700) == 0;
       }},
      {"rmdir",
       [](Place& p, int i) { return ::rmdir((p.Name(i) + "d").c_str()) == 0; }},
  };
  return operations;
}

void Print(const std::string& name, std::vector<int64_t>& ns, bool first) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double share) {
    const auto last = static_cast<double>(ns.size() - 1);
    return static_cast<long>(ns[static_cast<size_t>(share * last)]);
  };
  const auto sum = std::accumulate(ns.begin(), ns.end(), int64_t{0});
  std::printf(
      "%s\"%s\":{\"count\":%zu,\"p50\":%ld,\"p90\":%ld,\"p99\":%ld,"
      "\"p999\":%ld,\"max\":%ld,\"mean\":%ld}",
      first ? "" : ",", name.c_str(), ns.size(), at(0.5), at(0.9), at(0.99),
      at(0.999), at(1),
      static_cast<long>(sum / static_cast<int64_t>(ns.size())));
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir;
  int count = 0;
  std::vector<std::string> only;
  po::options_description options("Usage: op_latency DIR [OPTION]...");
  options.add_options()                                                  //
      ("dir", po::value(&dir)->required(), "a folder is made in it")     //
      ("count", po::value(&count)->default_value(2000), "1 to 1000000")  //
      ("op", po::value(&only),
       "only this one; may be given several times; "
       "rename and unlink need create and rename before them")  //
      ("help,h", "print this and exit");
  po::positional_options_description positional;
  positional.add("dir", 1);
  try {
    po::variables_map given;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(positional)
                  .run(),
              given);
    if (given.count("help") != 0) {
      std::cout << options << "Operations:";
      for (const auto& [name, run] : Operations()) std::cout << ' ' << name;
      std::cout << "\n";
      return 0;
    }
    po::notify(given);
  } catch (const po::error& error) {
    std::cerr << "op_latency: " << error.what() << " (see --help)\n";
    return 2;
  }
  if (count < 1 || count > 1000000) {
    std::cerr << "op_latency: --count takes 1 to 1000000\n";
    return 2;
  }
  for (const std::string& name : only) {
    const auto& known = Operations();
    if (std::none_of(known.begin(), known.end(),
                     [&](const auto& o) { return o.first == name; })) {
      std::cerr << "op_latency: no operation '" << name << "'\n";
      return 2;
    }
  }

  Place place;
  place.dir = dir + "/op_latency";
  if (!Prepare(place)) {
    std::cerr << "op_latency: " << place.dir << ": " << std::strerror(errno)
              << "\n";
    return 3;
  }
  std::printf("{");
  bool first = true;
  for (const auto& [name, run] : Operations()) {
    if (!only.empty() &&
        std::find(only.begin(), only.end(), name) == only.end()) {
      continue;
    }
    std::vector<int64_t> ns(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      if (!run(place, i)) {
        std::fprintf(stderr, "op_latency: %s: %s\n", name.c_str(),
                     std::strerror(errno));
        return 3;
      }
      ns[static_cast<size_t>(i)] = (Clock::now() - begin).count();
    }
    Print(name, ns, first);
    first = false;
  }
  std::printf("}\n");
  return 0;
}
