// Opening tracepoints (tracepoints.h). perf_event_open(2),
// linux/Documentation/trace/events.rst.
#include "tracefs/daemon/tracepoints.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "tracefs/base/file_io.h"
#include "tracefs/base/join.h"
#include "tracefs/base/pid_namespace.h"

namespace tracefs {
namespace {

constexpr std::string_view kCallEvents[] = {"raw_syscalls/sys_enter",
                                            "signal/signal_deliver"};
constexpr std::string_view kProcessEvents[] = {
    "task/task_newtask", "sched/sched_process_fork", "sched/sched_process_exec",
    "sched/sched_process_exit", "task/task_rename"};

constexpr size_t kMaxFormatBytes = 16384;

// Calls that programs make often, and that touch no file whatever they are
// asked: the fewer there are in a ring, the further back it reaches.
constexpr long kOtherCalls[] = {
#ifdef SYS_futex
    SYS_futex,
#endif
#ifdef SYS_brk
    SYS_brk,
#endif
#ifdef SYS_mprotect
    SYS_mprotect,
#endif
#ifdef SYS_rt_sigaction
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
#endif
#ifdef SYS_sched_yield
    SYS_sched_yield,
#endif
#ifdef SYS_nanosleep
    SYS_nanosleep,
#endif
#ifdef SYS_clock_nanosleep
    SYS_clock_nanosleep,
#endif
#ifdef SYS_clock_gettime
    SYS_clock_gettime,
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait
    SYS_epoll_pwait,
#endif
#ifdef SYS_recvfrom
    SYS_recvfrom,
#endif
#ifdef SYS_wait4
    SYS_wait4,
#endif
#ifdef SYS_getpid
    SYS_getpid,
    SYS_gettid,
#endif
#ifdef SYS_io_getevents
    SYS_io_getevents,
#endif
};

// Of the stack that execve(2) makes: a random gap of up to 8 KiB, the pointers,
// and some KiB of arguments.
constexpr uint32_t kExecStackBytes = 16384;

// The mask for sample_regs_user; 0 on architectures we have none for.
constexpr uint64_t kStackPointerBit =
#if defined(__x86_64__)
    uint64_t{1} << 7;  // PERF_REG_X86_SP
#elif defined(__aarch64__)
    uint64_t{1} << 31;  // PERF_REG_ARM64_SP
#else
    0;
#endif

// Each takes a comparison in the kernel, for threads of numbers near theirs.
constexpr size_t kMaxThreadsLeftOut = 64;

std::string NextStep(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "tracepoints take root (CAP_PERFMON), outside of containers";
    case ENODEV:
    case ENOENT:
      return "this kernel has no tracepoints: it takes CONFIG_FTRACE and "
             "CONFIG_FTRACE_SYSCALLS";
    default:
      return "see /proc/sys/kernel/perf_event_paranoid and perf_event_open(2)";
  }
}

Status Failed(int error, const std::string& what) {
  return Status::System(error, what + ": " + NextStep(error));
}

// The kernel's tracefs, in a mount that is nowhere: the way to another one may
// lead through the file system whose daemon asks.
Result<UniqueFd> OpenEvents() {
  const UniqueFd context(::fsopen("tracefs", FSOPEN_CLOEXEC));
  if (!context || ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr,
                             nullptr, 0) != 0) {
    return Failed(errno, "the kernel's tracefs");
  }
  const UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC,
                                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                     MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY));
  if (!mount) return Failed(errno, "the kernel's tracefs");
  UniqueFd events(
      ::openat(mount.get(), "events", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!events) return Failed(errno, "the kernel's tracefs");
  return events;
}

Result<std::string> ReadFormat(int events, const std::string& event) {
  const UniqueFd file(
      ::openat(events, (event + "/format").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Failed(errno, "tracepoint " + event);
  return ReadText(file.get(), kMaxFormatBytes, event);
}

std::optional<uint64_t> NumberAfter(std::string_view text,
                                    std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// As the kernel's filters count them: in the initial namespace.
std::vector<pid_t> ThreadsOf(pid_t daemon) {
  std::vector<pid_t> threads;
  if (!InInitialPidNamespace()) return threads;
  std::error_code error;
  const std::string place = "/proc/" + std::to_string(daemon) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
    const std::string name = entry.path().filename();
    pid_t tid = 0;
    std::from_chars(name.data(), name.data() + name.size(), tid);
    if (tid > 0) threads.push_back(tid);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

perf_event_attr AttributesOf(TracepointUse use, const std::string& event,
                             uint64_t number) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = number;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  // The clock of operations.
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  if (use == TracepointUse::kCalls) {
    // Numbers of 32-bit calls are others: the registers say whether it is one.
    attr.sample_type |= PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = 1;
    attr.write_backward = 1;
  } else {
    attr.sample_id_all = 1;
    attr.watermark = 1;
    attr.wakeup_watermark = 1;
    // Where the arguments are.
    if (event == "sched/sched_process_exec" && kStackPointerBit != 0) {
      attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
      attr.sample_regs_user = kStackPointerBit;
      attr.sample_stack_user = kExecStackBytes;
    }
  }
  return attr;
}

}  // namespace

std::string LayoutLine(const std::string& event, const std::string& format) {
  const std::optional<uint64_t> id = NumberAfter(format, "\nID:");
  if (!id) return {};
  std::string line = event + ' ' + std::to_string(*id);
  std::istringstream in(format);
  for (std::string row; std::getline(in, row);) {
    // "	field:__data_loc char[] filename;	offset:8;	size:4;
    // signed:0;"
    const size_t field = row.find("field:");
    if (field == row.npos) continue;
    const size_t end = row.find(';', field);
    const std::optional<uint64_t> offset = NumberAfter(row, "offset:");
    const std::optional<uint64_t> size = NumberAfter(row, "size:");
    if (end == row.npos || !offset || !size) continue;
    std::string name = row.substr(field, end - field);
    name.erase(0, name.find_last_of(" :") + 1);
    name.erase(std::min(name.find('['), name.size()));
    if (name.empty() || name.starts_with("common_")) continue;
    line += ' ' + name + ':' + std::to_string(*offset) + ':' +
            std::to_string(*size);
  }
  return line;
}

std::string CallFilter(const std::vector<pid_t>& without_threads) {
  std::string filter;
  const auto add = [&filter](const std::string& condition) {
    AppendWord(condition, " && ", &filter);
  };
  // First, as most calls that come while a mount is busy are its daemon's own.
  // Its threads have numbers that lie together: who is elsewhere is asked
  // twice.
  const size_t left_out = std::min(without_threads.size(), kMaxThreadsLeftOut);
  if (left_out > 0) {
    const auto [least, most] = std::minmax_element(
        without_threads.begin(), without_threads.begin() + left_out);
    std::string none_of_them;
    for (size_t i = 0; i < left_out; ++i) {
      if (i > 0) none_of_them += " && ";
      none_of_them += "common_pid != " + std::to_string(without_threads[i]);
    }
    add("(common_pid < " + std::to_string(*least) + " || common_pid > " +
        std::to_string(*most) + " || (" + none_of_them + "))");
  }
  std::vector<long> calls(std::begin(kOtherCalls), std::end(kOtherCalls));
  std::sort(calls.begin(), calls.end());
  for (size_t i = 0; i < calls.size();) {
    size_t next = i + 1;
    while (next < calls.size() && calls[next] == calls[next - 1] + 1) ++next;
    const std::string first = std::to_string(calls[i]);
    const std::string last = std::to_string(calls[next - 1]);
    if (next - i < 3) {
      for (; i < next; ++i) add("id != " + std::to_string(calls[i]));
    } else {
      add("(id < " + first + " || id > " + last + ")");
    }
    i = next;
  }
  return filter;
}

Result<OpenTracepoints> OpenTracepointsOn(TracepointUse use, int processor,
                                          pid_t daemon) {
  const Result<UniqueFd> events = OpenEvents();
  if (!events.ok()) return events.status();
  OpenTracepoints opened;
  const auto open = [&](std::string_view name) -> Status {
    const std::string event(name);
    const Result<std::string> format = ReadFormat(events->get(), event);
    if (!format.ok()) return format.status();
    const std::string line = LayoutLine(event, *format);
    const std::optional<uint64_t> id = NumberAfter(*format, "\nID:");
    if (line.empty() || !id) {
      return Status::SystemSaid(
          EPROTO, "tracepoint " + event + " has a format that is not known");
    }
    perf_event_attr attr = AttributesOf(use, event, *id);
    UniqueFd fd(
        static_cast<int>(::syscall(SYS_perf_event_open, &attr,
                                   /*pid=*/-1, processor,
                                   /*group_fd=*/-1, PERF_FLAG_FD_CLOEXEC)));
    if (!fd) return Failed(errno, "tracepoint " + event);
    if (event == "raw_syscalls/sys_enter" &&
        ::ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER,
                CallFilter(ThreadsOf(daemon)).c_str()) != 0) {
      return Failed(errno, "the filter of " + event);
    }
    opened.layout += line + '\n';
    opened.files.push_back(std::move(fd));
    return Status::Ok();
  };
  if (use == TracepointUse::kCalls) {
    for (const std::string_view name : kCallEvents) {
      if (Status s = open(name); !s.ok()) return s;
    }
  } else {
    for (const std::string_view name : kProcessEvents) {
      if (Status s = open(name); !s.ok()) return s;
    }
  }
  return opened;
}

}  // namespace tracefs
