// OpenClose of the Tracefs paper, section 4.6: threads that do nothing but open
// and close a file each, which makes a large trace of little input and output.
//
//   open_close DIR [--threads 10] [--pairs 300000]
//
// Prints one JSON object. Exit status: 0 done, 2 wrong usage, 3 the system
// refused something.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <boost/program_options.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace po = boost::program_options;

// Returns 0, or the errno of the first open that failed.
int OpenAndClose(const std::string& path, unsigned long pairs) {
  for (unsigned long i = 0; i < pairs; ++i) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    ::close(fd);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir;
  unsigned threads = 0;
  unsigned long pairs = 0;
  po::options_description options("Usage: open_close DIR [OPTION]...");
  options.add_options()                                                 //
      ("dir", po::value(&dir)->required(), "where the files are made")  //
      ("threads", po::value(&threads)->default_value(10), "1 to 1024")  //
      ("pairs", po::value(&pairs)->default_value(300000),
       "opens with their closes, of each thread")  //
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
      std::cout << options;
      return 0;
    }
    po::notify(given);
  } catch (const po::error& error) {
    std::cerr << "open_close: " << error.what() << " (see --help)\n";
    return 2;
  }
  if (threads == 0 || threads > 1024) {
    std::cerr << "open_close: --threads takes 1 to 1024\n";
    return 2;
  }

  std::atomic<int> error{0};
  std::vector<std::thread> running;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const int result =
          OpenAndClose(dir + "/open_close." + std::to_string(i), pairs);
      if (result != 0) error = result;
    });
  }
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  if (error != 0) {
    std::cerr << "open_close: " << dir << ": " << std::strerror(error) << "\n";
    return 3;
  }
  std::printf("{\"threads\":%u,\"pairs\":%lu,\"seconds\":%.6f}\n", threads,
              pairs, took.count());
  return 0;
}
