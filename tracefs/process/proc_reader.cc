// The safe part of /proc (proc_reader.h).
#include "tracefs/process/proc_reader.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

namespace tracefs {
namespace {

// More than the longest stat (52 numbers and a name) and the head of status.
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

}  // namespace

bool ParseStat(std::string_view text, CallerInfo* info) {
  // Nothing after the name can hold a ')', whatever the name holds.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return false;
  const std::string_view comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  // " S ppid pgrp session"; then fields 7 to 21; starttime is field 22.
  if (rest.size() < 3 || rest[0] != ' ') return false;
  rest.remove_prefix(2);
  int32_t ppid, pgid, sid;
  if (!TakeNumber(rest, &ppid) || !TakeNumber(rest, &pgid) ||
      !TakeNumber(rest, &sid)) {
    return false;
  }
  for (int field = 7; field <= 21; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  uint64_t start_time;
  if (!TakeNumber(rest, &start_time)) return false;

  info->ppid = NotNegative(ppid);
  info->pgid = NotNegative(pgid);
  info->sid = NotNegative(sid);
  info->start_time = start_time;
  const size_t size = std::min(comm.size(), info->comm_bytes.size());
  info->comm_bytes.fill('\0');
  std::memcpy(info->comm_bytes.data(), comm.data(), size);
  info->comm_size = static_cast<uint8_t>(size);
  return true;
}

std::optional<uint32_t> ParseTgid(std::string_view text) {
  // The name comes first; in this file it is escaped and stays on its line.
  constexpr std::string_view kKey = "\nTgid:\t";
  const size_t at = text.find(kKey);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + kKey.size());
  uint32_t tgid;
  if (!TakeNumber(text, &tgid)) return std::nullopt;
  return tgid;
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
  return ProcReader(std::move(proc));
}

bool ProcReader::ReadStat(uint32_t tid, CallerInfo* info) const {
  // Not /proc/TID/stat: that sums up all threads of the process.
  PathText path;
  path.Add(tid).Add("/task/").Add(tid).Add("/stat");
  std::array<char, kReadBytes> buffer;
  return ParseStat(ReadAt(proc_.get(), path.c_str(), buffer), info);
}

std::optional<uint32_t> ProcReader::ThreadGroupOf(uint32_t tid) const {
  // Most callers are the first thread of their process, and only of those
  // pidfd_open makes a descriptor: a third of the cost of the status file.
  const UniqueFd leader(static_cast<int>(::syscall(SYS_pidfd_open, tid, 0)));
  if (leader) return tid;
  PathText path;
  path.Add(tid).Add("/status");
  std::array<char, kReadBytes> buffer;
  return ParseTgid(ReadAt(proc_.get(), path.c_str(), buffer));
}

bool ProcReader::Read(uint32_t tid, CallerInfo* info) const {
  if (tid == 0 || !ReadStat(tid, info)) return false;
  const std::optional<uint32_t> pid = ThreadGroupOf(tid);
  if (!pid) return false;
  info->tid = tid;
  info->pid = *pid;
  if (*pid != tid) {
    CallerInfo leader;
    if (ReadStat(*pid, &leader)) info->start_time = leader.start_time;
  }
  return true;
}

}  // namespace tracefs
