// proc_pid_stat(5), proc_pid_fd(5), proc_pid_syscall(5), execve(2).
#include "tracefs/process/task_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <string_view>

#include "tracefs/base/file_io.h"
#include "tracefs/base/gone_mark.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/process/proc_reader.h"
#include "tracefs/process/proc_text.h"

namespace tracefs {
namespace {

// Longer lists are cut. The kernel takes 6 MiB at most, with stacks of the
// usual size.
constexpr uint64_t kMaxListBytes = uint64_t{6} << 20;

std::string Place(uint32_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + '/' + std::string(file);
}

// Empty if it cannot be read.
std::string TextOf(uint32_t pid, const char* name) {
  constexpr size_t kMaxFact = 8192;
  const UniqueFd fd(::open(Place(pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  Result<std::string> text = ReadText(fd.get(), kMaxFact, name);
  return text.ok() ? *std::move(text) : std::string();
}

// Likewise.
std::string ReadLink(const std::string& path) {
  std::string text(PATH_MAX, '\0');
  const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
  text.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return text;
}

// Whether the file behind the link has that name, as far as the kernel knows
// without asking: the file system may be one that waits for the task.
bool HasName(const std::string& link, const std::string& name) {
  struct statx file;
  if (::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC,
              STATX_INO | STATX_NLINK, &file) != 0 ||
      file.stx_nlink == 0) {
    return false;
  }
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  const UniqueFd named(static_cast<int>(
      ::syscall(SYS_openat2, AT_FDCWD, name.c_str(), &how, sizeof how)));
  struct statx there;
  return named &&
         ::statx(named.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
                 &there) == 0 &&
         there.stx_ino == file.stx_ino &&
         there.stx_dev_major == file.stx_dev_major &&
         there.stx_dev_minor == file.stx_dev_minor;
}

// The path of a link that the kernel marks where the file is gone; but a name
// may end like the mark.
std::string ReadFileLink(const std::string& path) {
  std::string text = ReadLink(path);
  if (text.ends_with(kGoneMark) && !HasName(path, text)) {
    text.resize(text.size() - kGoneMark.size());
  }
  return text;
}

template <typename Number>
bool TakeNumber(std::string_view* text, Number* number, int base = 10) {
  while (!text->empty() && text->front() == ' ') text->remove_prefix(1);
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *number, base);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

// As much of the task's memory as there is, from `from` up to `to`.
std::string ReadMemory(uint32_t pid, uint64_t from, uint64_t to) {
  if (from == 0 || to <= from) return {};
  std::string bytes(std::min(to - from, kMaxListBytes), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const iovec ours = {bytes.data() + size, bytes.size() - size};
    const iovec theirs = {reinterpret_cast<void*>(from + size), ours.iov_len};
    const ssize_t n =
        ::process_vm_readv(static_cast<pid_t>(pid), &ours, 1, &theirs, 1, 0);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

void ReadMemoryOfProgram(const TaskStat& stat, bool environment,
                         TaskFacts* facts) {
  const uint32_t pid = facts->process.pid;
  facts->argv = ReadMemory(pid, stat.arg_start, stat.arg_end);
  facts->incomplete |= facts->argv.size() != stat.arg_end - stat.arg_start ||
                       stat.arg_start == 0;
  if (environment) {
    facts->environ = ReadMemory(pid, stat.env_start, stat.env_end);
    facts->incomplete |= facts->environ.size() != stat.env_end - stat.env_start;
  }
  // The name comes after the environment, at the end of the stack; what
  // follows it ends the mapping and cannot be read.
  if (stat.env_end != 0) {
    std::string name = ReadMemory(pid, stat.env_end, stat.env_end + PATH_MAX);
    if (name.empty()) {
      const uint64_t page = 4096;
      name = ReadMemory(pid, stat.env_end, (stat.env_end | (page - 1)) + 1);
    }
    facts->program = name.substr(0, name.find('\0'));
  }
}

}  // namespace

std::optional<TaskStat> ParseTaskStat(std::string_view text) {
  // The name may hold anything, blanks and brackets included.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return {};
  TaskStat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  if (text.size() < 3) return {};
  text.remove_prefix(3);  // " S ", field 3
  for (int field = 4; field <= 51; ++field) {
    // Some are signed; of none of those the value is needed.
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') text.remove_prefix(1);
    uint64_t value = 0;
    if (!TakeNumber(&text, &value)) return {};
    switch (field) {
      case 4:
        stat.ppid = static_cast<uint32_t>(value);
        break;
      case 22:
        stat.start_ticks = value;
        break;
      case 26:
        stat.memory.code = value;
        break;
      case 28:
        stat.memory.stack = value;
        break;
      case 39:
        stat.cpu = static_cast<uint32_t>(value);
        break;
      case 48:
        stat.arg_start = value;
        break;
      case 49:
        stat.arg_end = value;
        break;
      case 50:
        stat.env_start = value;
        break;
      case 51:
        stat.env_end = value;
        break;
      default:
        break;
    }
  }
  return stat;
}

std::optional<TaskStat> ReadTaskStat(uint32_t pid) {
  return ParseTaskStat(TextOf(pid, "stat"));
}

std::optional<TaskOwner> ReadTaskOwner(uint32_t tid) {
  constexpr std::string_view kTracer = "\nTracerPid:\t";
  const std::string status = TextOf(tid, "status");
  CallerInfo info;
  if (!ParseStatus(status, &info)) return {};
  TaskOwner owner = {.pid = info.pid, .ppid = info.ppid};
  // No name can hold a line end here.
  if (const size_t at = status.find(kTracer); at != status.npos) {
    std::string_view number(status);
    number.remove_prefix(at + kTracer.size());
    TakeNumber(&number, &owner.tracer);
  }
  return owner;
}

std::vector<uint32_t> ReadChildren(uint32_t pid, uint32_t tid) {
  const std::string name = "task/" + std::to_string(tid) + "/children";
  const std::string text = TextOf(pid, name.c_str());
  std::vector<uint32_t> children;
  uint32_t child = 0;
  for (std::string_view rest = text; TakeNumber(&rest, &child);) {
    children.push_back(child);
  }
  return children;
}

TaskFacts ReadTaskFacts(uint32_t pid, bool environment) {
  TaskFacts facts;
  facts.process.pid = pid;
  const std::optional<TaskStat> stat = ReadTaskStat(pid);
  if (!stat) {
    facts.incomplete = true;
    return facts;
  }
  facts.process.start_ticks = stat->start_ticks;
  facts.ppid = stat->ppid;
  facts.cpu = stat->cpu;
  facts.comm = stat->comm;
  facts.memory = stat->memory;
  facts.exe = ReadFileLink(Place(pid, "exe"));
  facts.cwd = ReadFileLink(Place(pid, "cwd"));
  facts.incomplete = facts.exe.empty() || facts.cwd.empty();
  facts.cgroup = CgroupOf(TextOf(pid, "cgroup")).value_or("");
  facts.ns_pid = InnerPidOf(TextOf(pid, "status"));
  ReadMemoryOfProgram(*stat, environment, &facts);
  return facts;
}

void TaskFacts::PutInto(ProcessRecord* record) const {
  record->process = process;
  record->ppid = ppid;
  record->ns_pid = ns_pid;
  record->cpu = cpu;
  record->comm = comm;
  record->exe = exe;
  record->cwd = cwd;
  record->cgroup = cgroup;
  record->argv = argv;
  record->environ = environ;
  record->program = program;
  record->incomplete = incomplete;
}

bool ReadPipes(uint32_t pid, std::vector<PipeEnd>* pipes) {
  constexpr std::string_view kPipe = "pipe:[";
  const std::string folder = Place(pid, "fd");
  DIR* const dir = ::opendir(folder.c_str());
  if (dir == nullptr) return false;
  bool all = true;
  while (const dirent* entry = ::readdir(dir)) {
    std::string_view name = entry->d_name;
    PipeEnd pipe;
    if (!TakeNumber(&name, &pipe.fd) || !name.empty()) continue;
    std::array<char, 64> link;
    const ssize_t n =
        ::readlinkat(::dirfd(dir), entry->d_name, link.data(), link.size());
    if (n <= 0) continue;
    std::string_view text(link.data(), static_cast<size_t>(n));
    if (!text.starts_with(kPipe)) continue;
    text.remove_prefix(kPipe.size());
    struct stat st;
    if (!TakeNumber(&text, &pipe.inode) ||
        ::fstatat(::dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    // The link has the permissions that the descriptor was opened with.
    const bool reads = (st.st_mode & S_IRUSR) != 0;
    const bool writes = (st.st_mode & S_IWUSR) != 0;
    pipe.access = reads && writes ? PipeEnd::kReadWrite
                  : writes        ? PipeEnd::kWrite
                                  : PipeEnd::kRead;
    if (pipes->size() == ProcessRecord::kMaxPipes) {
      all = false;
      break;
    }
    pipes->push_back(pipe);
  }
  ::closedir(dir);
  std::sort(pipes->begin(), pipes->end(),
            [](const PipeEnd& a, const PipeEnd& b) { return a.fd < b.fd; });
  return all;
}

std::optional<uint64_t> ReadCloneFlags(uint32_t tid, bool* running) {
  const std::string text = TextOf(tid, "syscall");
  if (running != nullptr) *running = text.starts_with("running");
  std::string_view rest = text;
  long number = -1;
  if (!TakeNumber(&rest, &number)) return {};
#ifdef SYS_fork
  if (number == SYS_fork) return 0;
#endif
#ifdef SYS_vfork
  if (number == SYS_vfork) return CLONE_VM | CLONE_VFORK;
#endif
  if (number != SYS_clone && number != SYS_clone3) return {};
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.starts_with("0x")) rest.remove_prefix(2);
  uint64_t value = 0;
  if (!TakeNumber(&rest, &value, 16)) return {};
  // The lowest byte of clone's is a signal; clone3 takes a structure, which
  // begins with the flags.
  if (number == SYS_clone) return value & ~uint64_t{CSIGNAL} & 0xffffffff;
  const std::string flags = ReadMemory(tid, value, value + sizeof value);
  if (flags.size() != sizeof value) return {};
  std::copy(flags.begin(), flags.end(), reinterpret_cast<char*>(&value));
  return value;
}

}  // namespace tracefs
