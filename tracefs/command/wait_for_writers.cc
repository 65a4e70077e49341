#include "tracefs/command/wait_for_writers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <optional>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/writer_lock.h"
#include "tracefs/reader/trace_files.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

// Asking again costs a few system calls for each file.
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 20'000'000};

bool IsWritten(const std::string& path) {
  struct stat st;
  const bool input = path == "-";
  if ((input ? ::fstat(STDIN_FILENO, &st) : ::stat(path.c_str(), &st)) != 0 ||
      (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))) {
    return false;
  }
  if (input) return WriterLives(STDIN_FILENO);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return fd && WriterLives(fd.get());
}

// A rotated trace goes on in a file that was not in its folder before.
std::optional<std::string> FirstWritten(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::vector<std::string> files;
    if (!AddFiles(name, &files).ok()) continue;  // told when it is read
    for (const std::string& file : files) {
      if (IsWritten(file)) return file;
    }
  }
  return std::nullopt;
}

}  // namespace

bool WaitForWriters(const std::vector<std::string>& names,
                    const std::function<void(const std::string&)>& tell,
                    const std::atomic<bool>* stop) {
  bool told = false;
  while (const std::optional<std::string> file = FirstWritten(names)) {
    if (stop != nullptr && stop->load()) return false;
    if (!told) {
      tell(TerminalWord(*file) +
           " is still being written: waiting for its writer to end");
    }
    told = true;
    ::nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace tracefs
