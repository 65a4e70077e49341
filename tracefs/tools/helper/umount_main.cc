// umount.fuse.tracefs: what umount(8) calls. Returns when the traces are
// complete.
#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/command/front.h"
#include "tracefs/control/client.h"
#include "tracefs/control/place.h"
#include "tracefs/tools/ctl/as_owner.h"
#include "tracefs/tools/ctl/unmount.h"
#include "tracefs/tools/helper/exit_status.h"
#include "tracefs/tools/helper/helper_line.h"
#include "tracefs/tools/helper/mains.h"
#include "tracefs/tools/helper/mount_table.h"

namespace tracefs {
namespace {

constexpr std::string_view kUmountHelper = "umount.fuse.tracefs";
// Less than the 90 s after which systemd would end us.
constexpr std::chrono::seconds kPatience{80};

void Say(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", kUmountHelper.data(), text.c_str());
}

std::chrono::seconds Patience() {
  const char* const text = std::getenv("TRACEFS_UMOUNT_PATIENCE");
  if (text == nullptr) return kPatience;
  const auto seconds = ParseUnsigned(text);
  return seconds && *seconds > 0 && *seconds <= 86400
             ? std::chrono::seconds(*seconds)
             : kPatience;
}

// The kernel's own unmount, which does not wait.
int Detach(const std::string& place, int flags) {
  if (::umount2(place.c_str(), flags | UMOUNT_NOFOLLOW) == 0) return 0;
  const int error = errno;
  if (error == EPERM) {
    // What fusermount3 has mounted it may take away.
    const char* const mode = (flags & MNT_DETACH) != 0 ? "-uz" : "-u";
    ::execl("/usr/bin/fusermount3", "fusermount3", mode, "--", place.c_str(),
            nullptr);
    ::execlp("fusermount3", "fusermount3", mode, "--", place.c_str(), nullptr);
  }
  Say(Status::System(error, "'" + place + "'").message());
  return kFailed;
}

int ReadOnlyInstead(const std::string& place) {
  const Status status = SetReadOnly(place, /*read_only=*/true);
  Say(status.ok() ? "'" + place + "' is in use, and read-only now"
                  : status.message());
  return status.ok() ? 0 : kFailed;
}

void AwaitEnd(const UniqueFd& daemon) {
  pollfd ended = {.fd = daemon.get(), .events = POLLIN, .revents = 0};
  const auto patience =
      std::chrono::duration_cast<std::chrono::milliseconds>(Patience());
  if (::poll(&ended, 1, static_cast<int>(patience.count())) <= 0) {
    Say("unmounted, but its traces are not complete yet");
  }
}

bool IsGone(const std::string& place, const MountIdentity& mount) {
  const auto there = UppermostAt(place);
  return !there || there->type != kMountType || MountPointsOf(mount).empty();
}

// With the rights of who mounted it.
int WaitForDaemon(const UmountHelperLine& line, const std::string& place,
                  const MountIdentity& mount) {
  UniqueFd daemon;
  if (Result<ControlClient> client = ControlClient::Connect(place, Patience());
      client.ok()) {
    daemon = client->ServerPidfd();
  }
  const Result<std::string> told =
      UnmountAndWait(place, Patience(), &Say, StopAtSignals());
  if (told.status().error() == EBUSY && ::umount2(place.c_str(), 0) == 0) {
    // A copy of the mount that its daemon does not know of, and the last one.
    if (daemon) AwaitEnd(daemon);
    return 0;
  }
  if (told.ok()) {
    const Result<std::string> text = UnmountText(*told);
    if (!text.ok()) {
      Say(text.status().message());
    } else if (!text->empty()) {
      std::fprintf(stderr, "%s: not all is in the traces: %s",
                   kUmountHelper.data(), text->c_str());
    }
    return 0;
  }
  Say(told.status().message());
  if (IsGone(place, mount)) return 0;  // what is missing was said
  if (told.status().error() == EBUSY) {
    return line.read_only_if_busy ? ReadOnlyInstead(place) : kFailed;
  }
  // A daemon that does not answer: the kernel can do without it.
  const int status = Detach(place, 0);
  if (status == 0) Say("unmounted without its daemon, which did not answer");
  return status;
}

int Wait(const UmountHelperLine& line, const std::string& place) {
  const Result<MountIdentity> mount = IdentifyMount(place);
  if (!mount.ok()) {
    Say(mount.status().message());
    return mount.status().code() == StatusCode::kInvalid ? kUsage : kFailed;
  }
  // It goes on elsewhere: there is no end to wait for.
  if (MountPointsOf(*mount).size() > 1) return Detach(place, 0);
  const auto wait = [&] { return WaitForDaemon(line, place, *mount); };
  if (!IsForeign(*mount)) return wait();
  // umount(8) names it, so root may; and needs no word from its daemon.
  const Result<int> status = AsOwner(*mount, wait, StopAtSignals());
  if (status.ok() && (*status == 0 || IsGone(place, *mount))) return *status;
  return Detach(place, 0);
}

int RunUmountHelper(const UmountHelperLine& line) {
  const std::string place = PlaceOf(line.mount_point);
  int status = 0;
  if (line.lazy || line.force) {
    status = Detach(
        place, (line.lazy ? MNT_DETACH : 0) | (line.force ? MNT_FORCE : 0));
  } else {
    status = Wait(line, place);
  }
  if (status == 0) ForgetHelper(place);
  if (status == 0 && line.verbose) {
    std::printf("%s: %s unmounted\n", kUmountHelper.data(), place.c_str());
  }
  return status;
}

}  // namespace

int UmountHelperMain(int argc, char** argv) {
  const Result<UmountHelperLine> line = ParseUmountHelper(argc, argv);
  if (!line.ok()) {
    Say(line.status().message());
    return kUsage;
  }
  return RunCommand({kUmountHelper, &UmountHelperHelp}, line, &RunUmountHelper);
}

}  // namespace tracefs
