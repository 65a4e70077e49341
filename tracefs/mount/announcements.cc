#include "tracefs/mount/announcements.h"

#include <iostream>

#include "tracefs/base/join.h"
#include "tracefs/base/mount_path.h"
#include "tracefs/base/notice.h"
#include "tracefs/daemon/user_mount.h"
#include "tracefs/tracers/loss_watch.h"

namespace tracefs {

std::string TellWhatIsLost(const MountOptions& options) {
  const std::vector<std::string> lost = LostWithoutRoot(options.fuse_options);
  if (lost.empty()) return "";
  std::cerr << "tracefs-mount: mounted without root's privileges:\n";
  for (const std::string& one : lost) std::cerr << "  - " << one << '\n';
  return JoinWords(lost, "; ");
}

void TellWhereTheShellStands(const std::string& here,
                             const std::string& mount_point) {
  if (!IsAtOrBelow(here, mount_point)) return;
  std::cerr << "tracefs-mount: the directory you stand in is the one below the "
               "mount: what is done there is not traced until cd \"$PWD\"\n";
}

std::string TellEnd(const char* reason, const std::vector<TracerStats>& last) {
  std::string text = std::string("has ended (") + reason + ")";
  std::string losses;
  for (const TracerStats& tracer : last) {
    if (tracer.kind != TracerKind::kConfig) continue;
    const std::string lost = LossText(tracer);
    text += "; " + TracerText(tracer) + ": " + std::to_string(tracer.written) +
            " written" + (lost.empty() ? "" : ", " + lost);
    if (!lost.empty()) {
      Notify(NoticeId::kLost, TracerText(tracer) + " has ended with " + lost);
      AppendWord(TracerText(tracer) + ": " + lost, "; ", &losses);
    }
  }
  Notify(NoticeId::kEnded, text);
  return losses;
}

}  // namespace tracefs
