// Starting, ending and cleaning up mounts for tests (mount_fixture.h).
#include "tests/support/mount_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr char kDefaultConfig[] =
    "{\n"
    "  { }\n"
    "  { stream = { STR_ALL } }\n"
    "  { file = \"%TRACE%\" }\n"
    "}\n";
constexpr int kStartTimeoutMs = 120'000;
constexpr int kStopTimeoutMs = 120'000;

void SleepMs(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

std::string ErrorText(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Waits for a child; false after `timeout_ms`.
bool WaitForExit(pid_t pid, int timeout_ms, int* status) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended = {pidfd.get(), POLLIN, 0};
  if (::poll(&ended, 1, timeout_ms) != 1) return false;
  return ::waitpid(pid, status, 0) == pid;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<char*> Pointers(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child with both outputs in the file `output_fd`.
pid_t Spawn(std::vector<std::string> arguments, int output_fd,
            bool ends_with_us) {
  std::vector<char*> argv = Pointers(arguments);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (ends_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(126);
  }
  ::dup2(output_fd, STDOUT_FILENO);
  ::dup2(output_fd, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// mountinfo(5) writes spaces and the like as \040.
std::string Unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(
          std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string MountType(const std::string& path) {
  std::string topmost;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point, word, type;
    words >> id >> parent >> device >> root >> point;
    if (Unescaped(point) != path) continue;
    // Optional fields, then a hyphen, then the type.
    while (words >> word && word != "-") {
    }
    words >> type;
    topmost = type;
  }
  return topmost;
}

namespace {
bool IsFuseMounted(const std::string& path) {
  return MountType(path).starts_with("fuse");
}
}  // namespace

CommandResult RunCommand(const std::vector<std::string>& arguments,
                         int timeout_s) {
  CommandResult result;
  const UniqueFd output(
      static_cast<int>(::syscall(SYS_memfd_create, "output", 0)));
  const pid_t child = Spawn(arguments, output.get(), true);
  int status = 0;
  if (!WaitForExit(child, timeout_s * 1000, &status)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    result.output = "(killed after its time)\n";
  }
  result.status = ExitCode(status);
  char buffer[65536];
  ssize_t n;
  for (off_t at = 0; (n = ::pread(output.get(), buffer, sizeof buffer, at)) > 0;
       at += n) {
    result.output.append(buffer, static_cast<size_t>(n));
  }
  return result;
}

// --- ScratchDir --------------------------------------------------------------

namespace {

// What a file in a loop device is made; null: no loop device.
const char* LoopType(ScratchDir::Kind kind) {
  switch (kind) {
    case ScratchDir::kExt4:
      return "ext4";
    case ScratchDir::kXfs:
      return "xfs";
    case ScratchDir::kBtrfs:
      return "btrfs";
    default:
      return nullptr;
  }
}

}  // namespace

ScratchDir::ScratchDir(Kind kind) {
  const char* base = std::getenv("TMPDIR");
  std::string name =
      std::string(base != nullptr ? base : "/tmp") + "/tracefs_test.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    error_ = ErrorText("mkdtemp " + name);
    return;
  }
  // Without "..", links and double slashes, as mountinfo will show it.
  made_ = path_ = std::filesystem::canonical(name).string();
  ::chmod(path_.c_str(), 0755);
  if (const char* type = LoopType(kind)) {
    MakeInLoop(type);
    return;
  }
  if (kind == kDisk || !MountOver("tmpfs", path_, "size=512m,mode=755")) return;
  if (kind == kOverlay) {
    for (const char* layer : {"lower", "upper", "work", "merged"}) {
      ::mkdir((made_ + "/" + layer).c_str(), 0755);
    }
    path_ = made_ + "/merged";
    MountOver("overlay", path_,
              "lowerdir=" + made_ + "/lower,upperdir=" + made_ +
                  "/upper,workdir=" + made_ + "/work");
  }
}

void ScratchDir::MakeInLoop(const std::string& type) {
  const std::string image = made_ + "/image";
  const std::string where = made_ + "/root";
  ::mkdir(where.c_str(), 0755);
  constexpr off_t kSize = off_t{400} << 20;  // mkfs.xfs takes no less than 300M
  const UniqueFd fd(::open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || ::ftruncate(fd.get(), kSize) != 0) {
    error_ = ErrorText(image);
    path_.clear();
    return;
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"mkfs." + type, "-q", image},
        {"mount", "-t", type, "-o", "loop", image, where}}) {
    const CommandResult result = RunCommand(command);
    if (result.status != 0) {
      error_ = command[0] + ": " + result.output;
      path_.clear();
      return;
    }
  }
  path_ = where;
  ::chmod(path_.c_str(), 0755);
  mounted_.push_back(where);
}

bool ScratchDir::MountOver(const char* type, const std::string& where,
                           const std::string& options) {
  if (::mount("tracefs_test", where.c_str(), type, 0, options.c_str()) == 0) {
    mounted_.push_back(where);
    return true;
  }
  error_ = ErrorText(std::string("mount ") + type);
  path_.clear();
  return false;
}

std::optional<std::string> ScratchDir::skip_reason(Kind kind) {
  if (kind == kDisk || kind == kTmpfs) return std::nullopt;
  const char* loop = LoopType(kind);
  const std::string type = loop != nullptr ? loop : "overlay";
  std::ifstream types("/proc/filesystems");
  bool known = false;
  for (std::string word; types >> word;) known |= word == type;
  if (!known) return "no " + type + " here";
  if (loop == nullptr) return std::nullopt;
  if (::access("/dev/loop-control", F_OK) != 0) return "no loop devices here";
  if (RunCommand({"mkfs." + type, "-V"}).status == 127) {
    return "mkfs." + type + " is not installed";
  }
  return std::nullopt;
}

ScratchDir::~ScratchDir() {
  if (made_.empty()) return;
  for (auto where = mounted_.rbegin(); where != mounted_.rend(); ++where) {
    ::umount2(where->c_str(), MNT_DETACH);
  }
  std::error_code ignored;
  std::filesystem::remove_all(made_, ignored);
}

// --- TracefsMount ------------------------------------------------------------

std::optional<std::string> TracefsMount::skip_reason() {
  const UniqueFd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!fuse) return ErrorText("no mounts here: /dev/fuse");
  return std::nullopt;
}

Status TracefsMount::Start(const MountFixtureOptions& options) {
  scratch_.emplace();
  backing_scratch_.emplace(options.backing);
  for (const ScratchDir* dir : {&*scratch_, &*backing_scratch_}) {
    if (dir->path().empty()) return Status::System(EIO, dir->error());
  }
  backing_ = backing_scratch_->path();
  trace_ = scratch_->path() + "/test.trace";
  mount_ = options.over_itself ? backing_ : scratch_->path() + "/mnt";
  if (!options.over_itself && ::mkdir(mount_.c_str(), 0755) != 0) {
    return Status::System(errno, "mkdir " + mount_);
  }

  std::string config = options.config.empty() ? kDefaultConfig : options.config;
  constexpr std::string_view kTrace = "%TRACE%";
  for (size_t at; (at = config.find(kTrace)) != std::string::npos;) {
    config.replace(at, kTrace.size(), trace_);
  }
  const std::string config_path = scratch_->path() + "/test.conf";
  std::ofstream(config_path) << config;

  std::vector<std::string> arguments;
  if (options.max_descriptors > 0) {
    const std::string limit = std::to_string(options.max_descriptors);
    arguments = {"prlimit", "--nofile=" + limit + ":" + limit};
  }
  arguments.insert(arguments.end(),
                   {TRACEFS_MOUNT_BINARY, backing_, mount_, "--config",
                    config_path, "--visibility", options.visibility,
                    "--transport", options.transport, "--foreground"});
  arguments.insert(arguments.end(), options.arguments.begin(),
                   options.arguments.end());
  const std::string log_path = scratch_->path() + "/daemon.log";
  const UniqueFd log(
      ::open(log_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  daemon_ = Spawn(arguments, log.get(), true);

  for (int waited = 0; waited < kStartTimeoutMs; waited += 10) {
    if (IsFuseMounted(mount_)) {
      mounted_ = true;
      // The first request is answered: it is really there.
      struct stat st;
      if (::stat(mount_.c_str(), &st) == 0) return Status::Ok();
      return Status::System(
          errno, "stat of the new mount; daemon said: " + ReadAll(log_path));
    }
    int status = 0;
    if (::waitpid(daemon_, &status, WNOHANG) == daemon_) {
      daemon_ = 0;
      return Status::System(EIO, "tracefs-mount ended with status " +
                                     std::to_string(ExitCode(status)) + ": " +
                                     ReadAll(log_path));
    }
    SleepMs(10);
  }
  return Status::System(ETIMEDOUT, "tracefs-mount does not mount");
}

std::string TracefsMount::Stop() {
  std::string wrong;
  if (mounted_) {
    // Released files are told asynchronously: EBUSY may pass.
    int result = -1;
    for (int i = 0; i < 1'500; ++i) {
      result = ::umount2(mount_.c_str(), UMOUNT_NOFOLLOW);
      if (result == 0 || errno != EBUSY) break;
      SleepMs(20);
    }
    if (result != 0) {
      wrong += ErrorText("umount " + mount_) + "\n";
      LazyUnmount();
    }
    mounted_ = false;
  }
  if (daemon_ > 0) {
    int status = 0;
    if (!WaitForExit(daemon_, kStopTimeoutMs, &status)) {
      wrong += "the daemon does not end after umount\n";
      ::kill(daemon_, SIGKILL);
      ::waitpid(daemon_, &status, 0);
    } else if (ExitCode(status) != 0) {
      wrong += "the daemon ended with status " +
               std::to_string(ExitCode(status)) + "\n";
    }
    if (!wrong.empty()) wrong += ReadAll(scratch_->path() + "/daemon.log");
    daemon_ = 0;
  }
  if (!mount_.empty() && IsFuseMounted(mount_)) {
    wrong += "a mount is left at " + mount_ + "\n";
    LazyUnmount();
  }
  return wrong;
}

void TracefsMount::KillDaemon() {
  if (daemon_ > 0) {
    ::kill(daemon_, SIGKILL);
    ::waitpid(daemon_, nullptr, 0);
    daemon_ = 0;
  }
  LazyUnmount();
}

void TracefsMount::LazyUnmount() {
  if (IsFuseMounted(mount_)) {
    ::umount2(mount_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  }
  mounted_ = false;
}

TracefsMount::~TracefsMount() {
  if (mounted_ || daemon_ > 0) KillDaemon();
}

}  // namespace tracefs
