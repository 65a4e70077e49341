// Many callers at once in a directory, each with names of its own: how many of
// them does a store serve at a time?
//
//   callers DIR prepare|lookup|create|read [--callers 16] [--each 60]
//
// `prepare` makes DIR/cN/fM for the other three: `lookup` asks for each file's
// attributes, `create` makes and closes DIR/cN/nM and removes it again, `read`
// reads 4 KiB of each file. All callers begin together.
// Prints {"seconds":…,"operations":…}.
// Exit status: 0 done, 2 wrong usage, 3 an operation failed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <boost/program_options.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace po = boost::program_options;

constexpr size_t kBytes = 4096;

std::string FolderOf(const std::string& dir, int caller) {
  return dir + "/c" + std::to_string(caller);
}

bool Make(const std::string& path, bool with_data) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const std::string data(with_data ? kBytes : 0, 'x');
  const bool good = ::write(fd, data.data(), data.size()) ==
                    static_cast<ssize_t>(data.size());
  return ::close(fd) == 0 && good;
}

// One operation of a caller in its folder; false with errno set.
using Operation = std::function<bool(const std::string& folder, int i)>;
const std::map<std::string, Operation>& Operations() {
  static const std::map<std::string, Operation> operations = {
      {"lookup",
       [](const std::string& folder, int i) {
         struct stat s;
         return ::stat((folder + "/f" + std::to_string(i)).c_str(), &s) == 0;
       }},
      {"create",
       [](const std::string& folder, int i) {
         const std::string path = folder + "/n" + std::to_string(i);
         return Make(path, false) && ::unlink(path.c_str()) == 0;
       }},
      {"read",
       [](const std::string& folder, int i) {
         const std::string path = folder + "/f" + std::to_string(i);
         const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
         if (fd < 0) return false;
         char data[kBytes];
         const bool good = ::read(fd, data, sizeof data) == ssize_t{kBytes};
         return ::close(fd) == 0 && good;
       }},
  };
  return operations;
}

bool Prepare(const std::string& dir, int callers, int each) {
  for (int c = 0; c < callers; ++c) {
    const std::string folder = FolderOf(dir, c);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
    for (int i = 0; i < each; ++i) {
      if (!Make(folder + "/f" + std::to_string(i), true)) return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir;
  std::string what;
  int callers = 0;
  int each = 0;
  po::options_description options(
      "Usage: callers DIR prepare|lookup|create|read [OPTION]...");
  options.add_options()                                                   //
      ("dir", po::value(&dir)->required(), "")                            //
      ("what", po::value(&what)->required(), "")                          //
      ("callers", po::value(&callers)->default_value(16), "1 to 1024")    //
      ("each", po::value(&each)->default_value(60), "names of a caller")  //
      ("help,h", "print this and exit");
  po::positional_options_description positional;
  positional.add("dir", 1).add("what", 1);
  try {
    po::variables_map given;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(positional)
                  .run(),
              given);
    if (given.count("help") != 0) {
      std::cout << options;
      return 0;
    }
    po::notify(given);
  } catch (const po::error& error) {
    std::cerr << "callers: " << error.what() << " (see --help)\n";
    return 2;
  }
  const auto found = Operations().find(what);
  if (callers < 1 || callers > 1024 || each < 1 || each > 1000000 ||
      (what != "prepare" && found == Operations().end())) {
    std::cerr << "callers: wrong operation or number (see --help)\n";
    return 2;
  }
  if (what == "prepare") {
    if (Prepare(dir, callers, each)) return 0;
    std::cerr << "callers: " << dir << ": " << std::strerror(errno) << "\n";
    return 3;
  }

  std::atomic<int> error{0};
  std::barrier start(callers + 1);
  std::vector<std::thread> threads;
  for (int c = 0; c < callers; ++c) {
    threads.emplace_back([&, folder = FolderOf(dir, c)] {
      start.arrive_and_wait();
      for (int i = 0; i < each && error == 0; ++i) {
        if (!found->second(folder, i)) error = errno;
      }
    });
  }
  start.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  if (error != 0) {
    std::cerr << "callers: " << what << ": " << std::strerror(error) << "\n";
    return 3;
  }
  std::printf("{\"seconds\":%.6f,\"operations\":%d}\n", seconds.count(),
              callers * each);
  return 0;
}
