// What can be read of a process that waits for us (proc_reader.h).
#include "tracefs/process/proc_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "tracefs/process/proc_text.h"

namespace tracefs {
namespace {

// More than the longest stat (52 numbers and a name), and than what is wanted
// of a status, its head.
constexpr size_t kReadBytes = 2048;

// "<prefix><tid><middle><tid><suffix>" without a heap allocation.
class PathText {
 public:
  PathText& Add(std::string_view text) {
    const size_t n = std::min(text.size(), bytes_.size() - 1 - size_);
    std::memcpy(bytes_.data() + size_, text.data(), n);
    size_ += n;
    return *this;
  }
  PathText& Add(uint32_t number) {
    char digits[12];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return Add({digits, static_cast<size_t>(end - digits)});
  }
  const char* c_str() {
    bytes_[size_] = '\0';
    return bytes_.data();
  }

 private:
  std::array<char, 64> bytes_;
  size_t size_ = 0;
};

// What one read of the file gives; empty if it cannot be read.
std::string_view ReadAt(int dir, const char* path,
                        std::array<char, kReadBytes>& buffer) {
  const UniqueFd fd(::openat(dir, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  ssize_t n;
  do {
    n = ::read(fd.get(), buffer.data(), buffer.size());
  } while (n < 0 && errno == EINTR);
  return n > 0 ? std::string_view(buffer.data(), static_cast<size_t>(n))
               : std::string_view();
}

// Takes a number and the spaces before it.
template <typename T>
bool TakeNumber(std::string_view& text, T* value) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

uint32_t NotNegative(int32_t id) {
  return id > 0 ? static_cast<uint32_t>(id) : 0;
}

std::optional<uint32_t> NumberOf(std::string_view text, std::string_view key) {
  std::optional<std::string_view> line = LineOf(text, key);
  uint32_t number;
  if (!line || !TakeNumber(*line, &number)) return std::nullopt;
  return number;
}

// Undoes linux/lib/string_helpers.c, string_escape_mem(): "\n", "\\", "\ooo".
void SetComm(std::string_view escaped, CallerInfo* info) {
  const auto octal = [&](size_t i) {
    return i < escaped.size() && escaped[i] >= '0' && escaped[i] <= '7';
  };
  info->comm_bytes.fill('\0');
  size_t size = 0;
  for (size_t i = 0; i < escaped.size() && size < info->comm_bytes.size();
       ++i) {
    char c = escaped[i];
    if (c == '\\' && i + 1 < escaped.size()) {
      if (octal(i + 1) && octal(i + 2) && octal(i + 3)) {
        c = static_cast<char>((escaped[i + 1] - '0') * 64 +
                              (escaped[i + 2] - '0') * 8 +
                              (escaped[i + 3] - '0'));
        i += 3;
      } else {
        c = escaped[++i] == 'n' ? '\n' : escaped[i];
      }
    }
    info->comm_bytes[size++] = c;
  }
  info->comm_size = static_cast<uint8_t>(size);
}

// linux/magic.h of Linux 6.9 and later.
constexpr long kPidFsMagic = 0x50494446;

}  // namespace

bool ParseStatus(std::string_view text, CallerInfo* info) {
  constexpr std::string_view kName = "Name:\t";
  if (!text.starts_with(kName)) return false;
  const size_t end = text.find('\n');
  if (end == text.npos) return false;
  const std::string_view name = text.substr(kName.size(), end - kName.size());
  text.remove_prefix(end);  // no name can pretend to be a line below it
  const std::optional<uint32_t> pid = NumberOf(text, "\nTgid:\t");
  const std::optional<uint32_t> ppid = NumberOf(text, "\nPPid:\t");
  if (!pid || !ppid) return false;
  SetComm(name, info);
  info->pid = *pid;
  info->ppid = *ppid;
  return true;
}

std::optional<uint64_t> ParseStartTime(std::string_view text) {
  // Nothing after the name can hold a ')', whatever the name holds. Then come
  // " S", field 3, and fields 4 to 21; starttime is field 22.
  const size_t close = text.rfind(')');
  if (close == text.npos) return std::nullopt;
  text.remove_prefix(close + 1);
  for (int field = 3; field <= 21; ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
  uint64_t start_time;
  if (!TakeNumber(text, &start_time)) return std::nullopt;
  return start_time;
}

Result<ProcReader> ProcReader::Open(const char* path) {
  UniqueFd proc(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc) return Status::System(errno, std::string("open ") + path);
  char self[16];
  const ssize_t n = ::readlinkat(proc.get(), "self", self, sizeof self);
  uint32_t pid = 0;
  if (n > 0) std::from_chars(self, self + n, pid);
  if (pid != static_cast<uint32_t>(::getpid())) {
    return Status::System(
        ESRCH, std::string(path) +
                   " does not show this pid namespace; mount a proc of it");
  }
  const UniqueFd own(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  struct statfs fs;
  const bool has_process_numbers =
      own && ::fstatfs(own.get(), &fs) == 0 && fs.f_type == kPidFsMagic;
  return ProcReader(std::move(proc), has_process_numbers);
}

uint64_t ProcReader::ProcessNumber(uint32_t pid) const {
  if (!has_process_numbers_) return 0;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  struct stat st;
  if (!process || ::fstat(process.get(), &st) != 0) return 0;
  return st.st_ino;
}

bool ProcReader::Read(uint32_t tid, bool may_be_in_exec,
                      ProcessReading* reading) const {
  if (tid == 0) return false;
  CallerInfo& caller = reading->caller;
  const uint32_t known_pid = caller.pid;
  uint64_t start_time = caller.start_time;
  const uint64_t known_number = reading->process_number;

  std::array<char, kReadBytes> buffer;
  PathText status;
  status.Add(tid).Add("/status");
  if (!ParseStatus(ReadAt(proc_.get(), status.c_str(), buffer), &caller)) {
    return false;
  }
  caller.tid = tid;
  // Status has these too, but behind a list of groups that may be long.
  caller.pgid = NotNegative(::getpgid(static_cast<pid_t>(tid)));
  caller.sid = NotNegative(::getsid(static_cast<pid_t>(tid)));
  reading->process_number = ProcessNumber(caller.pid);

  // Without numbers a process in execve is taken for the one last seen under
  // its pid; at any other time the truth is one read away.
  const bool known = known_pid == caller.pid && start_time != 0 &&
                     reading->process_number == known_number &&
                     (has_process_numbers_ || may_be_in_exec);
  if (!known) {
    start_time = 0;
    if (!may_be_in_exec) {
      // Not /proc/PID/stat: that sums up all threads of the process.
      PathText stat;
      stat.Add(caller.pid).Add("/task/").Add(caller.pid).Add("/stat");
      start_time =
          ParseStartTime(ReadAt(proc_.get(), stat.c_str(), buffer)).value_or(0);
    }
  }
  caller.start_time = start_time;
  return true;
}

}  // namespace tracefs
