#include "filters/input/habits.h"

#include <array>

#include "tracefs/base/spelling.h"

namespace tracefs {
namespace {

struct Habit {
  std::string_view theirs;
  std::string_view ours;
};

// Commands and system calls.
constexpr std::array kOps = {
    Habit{"stat", "getattr"},       Habit{"lstat", "getattr"},
    Habit{"fstat", "getattr"},      Habit{"newfstatat", "getattr"},
    Habit{"chmod", "setattr"},      Habit{"fchmod", "setattr"},
    Habit{"chown", "setattr"},      Habit{"truncate", "setattr"},
    Habit{"ftruncate", "setattr"},  Habit{"utime", "setattr"},
    Habit{"utimensat", "setattr"},  Habit{"touch", "setattr"},
    Habit{"delete", "unlink"},      Habit{"remove", "unlink"},
    Habit{"rm", "unlink"},          Habit{"unlinkat", "unlink"},
    Habit{"mv", "rename"},          Habit{"move", "rename"},
    Habit{"renameat2", "rename"},   Habit{"openat", "open"},
    Habit{"pread", "read"},         Habit{"pread64", "read"},
    Habit{"readv", "read"},         Habit{"pwrite", "write"},
    Habit{"pwrite64", "write"},     Habit{"writev", "write"},
    Habit{"ls", "readdir"},         Habit{"getdents", "readdir"},
    Habit{"getdents64", "readdir"}, Habit{"fdatasync", "fsync"},
    Habit{"sync", "fsync"},         Habit{"seek", "lseek"},
    Habit{"fcntl", "setlk"},        Habit{"lock", "setlk"},
    Habit{"mkfifo", "mknod"},       Habit{"creat", "create"},
};

constexpr std::array kPredicates = {
    Habit{"cmd", "cname"},     Habit{"command", "cname"},
    Habit{"process", "cname"}, Habit{"program", "cexe"},
    Habit{"user", "cuid"},     Habit{"group", "cgid"},
    Habit{"thread", "ctid"},   Habit{"parent", "cppid"},
    Habit{"args", "cargs"},    Habit{"cmdline", "cargs"},
    Habit{"operation", "op"},  Habit{"event", "op"},
    Habit{"file", "path"},     Habit{"filename", "name"},
    Habit{"dir", "path"},      Habit{"directory", "path"},
    Habit{"error", "errno"},   Habit{"err", "errno"},
    Habit{"ret", "result"},    Habit{"retval", "result"},
    Habit{"dur", "latency"},   Habit{"duration", "latency"},
    Habit{"bytes", "length"},  Habit{"count", "length"},
    Habit{"pos", "offset"},    Habit{"owner", "fuid"},
    Habit{"extension", "ext"}, Habit{"suffix", "ext"},
    Habit{"valid", "sets"},    Habit{"changes", "sets"},
};

template <size_t kSize>
std::string Find(std::string_view word, const std::array<Habit, kSize>& habits,
                 std::span<const std::string_view> known) {
  for (const Habit& habit : habits) {
    if (SameButForCase(habit.theirs, word)) {
      return "; did you mean '" + std::string(habit.ours) + "'?";
    }
  }
  return DidYouMean(word, known);
}

}  // namespace

std::string DidYouMeanOp(std::string_view word,
                         std::span<const std::string_view> known) {
  return Find(word, kOps, known);
}

std::string DidYouMeanPredicate(std::string_view word,
                                std::span<const std::string_view> known) {
  return Find(word, kPredicates, known);
}

}  // namespace tracefs
