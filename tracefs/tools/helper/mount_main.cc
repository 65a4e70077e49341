// mount.fuse.tracefs: what mount(8) calls. Options of mount(8) keep its
// meaning, the rest is tracefs-mount's, which does the work. Statuses are
// mount(8)'s.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tracefs/base/choice.h"
#include "tracefs/base/join.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/command/front.h"
#include "tracefs/control/client.h"
#include "tracefs/control/place.h"
#include "tracefs/tools/helper/exit_status.h"
#include "tracefs/tools/helper/helper_line.h"
#include "tracefs/tools/helper/mains.h"
#include "tracefs/tools/helper/mount_table.h"

namespace tracefs {
namespace {

constexpr std::string_view kMountHelper = "mount.fuse.tracefs";

int Fail(int status, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", kMountHelper.data(), why.c_str());
  return status;
}

// The folder of this program.
std::string OwnFolder() {
  std::array<char, PATH_MAX> name;
  const ssize_t n = ::readlink("/proc/self/exe", name.data(), name.size());
  const std::string path(name.data(), n > 0 ? static_cast<size_t>(n) : 0);
  return path.substr(0, path.rfind('/'));
}

// A command of ours, as installed or as built.
std::string FindCommand(const std::string& name) {
  const std::string own = OwnFolder();
  for (const std::string& place : {own + '/' + name, own + "/../bin/" + name}) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return "/usr/bin/" + name;
}

// Runs it with our streams; its status as one of mount(8).
int RunCommandOf(const std::vector<std::string>& words) {
  const pid_t child = ::fork();
  if (child < 0) {
    return Fail(kSystemError, Status::System(errno, "fork").message());
  }
  if (child == 0) {
    std::vector<char*> argv;
    for (const std::string& word : words) {
      argv.push_back(const_cast<char*>(word.c_str()));
    }
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    std::fprintf(stderr, "%s: %s: %s\n", kMountHelper.data(), argv[0],
                 Status::System(errno, "cannot be run").message().c_str());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return Fail(signal == SIGINT || signal == SIGTERM ? kInterrupted : kFailed,
                words[0] + " was ended by signal " + std::to_string(signal));
  }
  switch (WEXITSTATUS(status)) {
    case 0:
      return 0;
    case 2:
      return kUsage;
    case 127:
      return kSystemError;
    default:
      return kFailed;
  }
}

std::string VisibilityOf(const std::string& mount_point) {
  using namespace std::chrono_literals;
  Result<ControlClient> client = ControlClient::Connect(mount_point, 20s);
  if (!client.ok()) return "";
  const Result<std::string> answer = client->Call(R"({"command":"explain"})");
  if (!answer.ok()) return "";
  const auto json = nlohmann::json::parse(*answer, nullptr, false);
  if (!json.is_object()) return "";
  const auto found = json.find("visibility");
  return found != json.end() && found->is_string() ? found->get<std::string>()
                                                   : "";
}

// The bits of the mount itself. What the list of mount(8) has not, it has taken
// away, if that list began with what is.
Status SetFlags(const MountHelperLine& line, const std::string& place) {
  constexpr Choice<uint64_t> kRows[] = {
      {"nosuid", MOUNT_ATTR_NOSUID},
      {"nodev", MOUNT_ATTR_NODEV},
      {"noexec", MOUNT_ATTR_NOEXEC},
      {"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW}};
  mount_attr wanted{};
  for (const auto& row : kRows) {
    if (std::find(line.flags.begin(), line.flags.end(), row.word) !=
        line.flags.end()) {
      wanted.attr_set |= row.value;
    } else if (line.complete) {
      wanted.attr_clr |= row.value;
    }
  }
  if ((wanted.attr_set | wanted.attr_clr) == 0) return Status::Ok();
  if (::syscall(SYS_mount_setattr, AT_FDCWD, place.c_str(), 0, &wanted,
                sizeof wanted) != 0) {
    return Status::System(errno, "'" + place + "'");
  }
  return Status::Ok();
}

// What a running mount cannot change.
Status CheckRemount(const MountHelperLine& line, const std::string& place) {
  for (size_t i = 0; i < line.own.size(); ++i) {
    const std::string& word = line.own[i];
    if (word == "--visibility") {
      const std::string is = VisibilityOf(place);
      if (is == line.visibility) {
        ++i;
        continue;
      }
      return Status::Invalid("visibility=" + line.visibility +
                             ": the mount has " +
                             (is.empty() ? "another" : is) +
                             ", which only a new mount can change");
    }
    if (word.starts_with("--")) {
      return Status::Invalid(word.substr(2) +
                             "= is read when the mount is made; unmount it "
                             "first");
    }
  }
  static constexpr std::array<std::string_view, 8> kKept = {
      "default_permissions", "allow_other", "noatime", "nodiratime",
      "strictatime",         "nosuid",      "nodev",   "noexec"};
  for (const std::string& option : line.for_fuse) {
    if (line.complete || option == "nosymfollow" ||
        std::find(kKept.begin(), kKept.end(), option) != kKept.end()) {
      continue;
    }
    return Status::Invalid("the option " + option +
                           " cannot be changed while it is mounted");
  }
  return Status::Ok();
}

int Remount(const MountHelperLine& line) {
  const std::string place = PlaceOf(line.mount_point);
  const auto there = UppermostAt(place);
  if (!there || there->type != kMountType) {
    return Fail(kFailed, "'" + place + "' is no mount of tracefs");
  }
  if (Status s = CheckRemount(line, place); !s.ok()) {
    return Fail(kUsage, s.message());
  }
  if (line.fake) return 0;
  if (!line.config.empty()) {
    const int status = RunCommandOf(
        {FindCommand("tracefs-ctl"), place, "reload", line.config});
    if (status != 0) return status;
  }
  if (Status s = SetFlags(line, place); !s.ok()) {
    return Fail(kFailed, s.message());
  }
  if (line.read_only) {
    const bool is =
        (',' + there->options + ',').find(",ro,") != std::string::npos;
    if (is != *line.read_only) {
      if (Status s = SetReadOnly(place, *line.read_only); !s.ok()) {
        return Fail(kFailed, s.message());
      }
    }
  }
  return 0;
}

// Nothing is mounted; whatever would fail for certain does.
int Check(const MountHelperLine& line) {
  struct stat st;
  if (::stat(line.source.c_str(), &st) != 0) {
    return Fail(
        kFailed,
        Status::System(errno, "source '" + line.source + "'").message());
  }
  if (::stat(line.mount_point.c_str(), &st) != 0) {
    return Fail(kFailed,
                Status::System(errno, "mount point '" + line.mount_point + "'")
                    .message());
  }
  if (line.config.empty()) return 0;
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (null) ::dup2(null.get(), STDOUT_FILENO);
  return RunCommandOf({FindCommand("tracefs-mount"), "--check", line.config});
}

int Mount(const MountHelperLine& line) {
  const std::string place = PlaceOf(line.mount_point);
  const std::string source = PlaceOf(line.source);
  const auto there = UppermostAt(place);
  // mount(8) hands a source over with its links resolved, or as it stands.
  if (there && there->type == kMountType &&
      (there->source == source || there->source == line.source ||
       source == place)) {
    return Fail(kFailed, "'" + line.source + "' is mounted at '" + place +
                             "' already; mount -o remount changes it");
  }
  if (line.fake) return Check(line);
  std::vector<std::string> words = {FindCommand("tracefs-mount")};
  if (!line.config.empty())
    words.insert(words.end(), {"--config", line.config});
  words.insert(words.end(), line.own.begin(), line.own.end());
  const std::string list = JoinWords(line.for_fuse, ",");
  if (!list.empty()) words.insert(words.end(), {"-o", list});
  words.insert(words.end(), {"--", line.source, line.mount_point});
  const int status = RunCommandOf(words);
  if (status == 0) {
    ForgetHelper(place);  // of one that was killed here
    NoteHelper(source, place);
  }
  return status;
}

int RunMountHelper(const MountHelperLine& line) {
  // mount(8) hands neither on; a shell's own default ends in the directory we
  // stand in.
  ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", /*overwrite=*/0);
  const int status = line.remount ? Remount(line) : Mount(line);
  if (status != 0 && line.nofail) {
    return Fail(0, "not mounted, and nofail says that this is no failure");
  }
  return status;
}

}  // namespace

int MountHelperMain(int argc, char** argv) {
  const Result<MountHelperLine> line = ParseMountHelper(argc, argv);
  if (!line.ok()) {
    // Wrong is wrong, nofail or not: it would never be mounted.
    return Fail(kUsage, line.status().message());
  }
  return RunCommand({kMountHelper, &MountHelperHelp}, line, &RunMountHelper);
}

}  // namespace tracefs
