#include "tracefs/mount/kernel_promises.h"

#include <string_view>

#include "tracefs/base/join.h"
#include "tracefs/base/kernel_version.h"

namespace tracefs {
namespace {

struct Promise {
  int major;
  int minor;
  std::string_view lacking;  // before that version
};

// In the order of versions. Features that can be tested are reported where they
// are tested; here are those that only the version tells, or that users are
// silently refused.
constexpr Promise kPromises[] = {
    {6, 1, "O_TMPFILE fails in the mount (EOPNOTSUPP)"},
    {6, 5,
     "a dead mount with when_full = fail keeps the next one from starting "
     "until root unmounts it"},
    {6, 6,
     "shared maps of recorded files fail (ENODEV), and files in the mount have "
     "no birth time"},
    {6, 7,
     "no Landlock domain: a daemon in somebody else's hand could look into the "
     "processes of ordinary users"},
    {6, 8,
     "the watchdog knows its mount by a number that the kernel may give to "
     "another one later"},
    {6, 9,
     "no passthrough: reads and writes that no tracer records go through the "
     "daemon, at several times the cost"},
    {6, 12,
     "a daemon in somebody else's hand could have signals sent "
     "(fcntl(F_SETOWN))"},
    {6, 14, "no FUSE over io_uring: requests cost about twice the time"},
    {6, 16,
     "in visibility auto and fast a tracer that comes later misses look-ups of "
     "names that the kernel keeps from before"},
};

}  // namespace

std::string KernelLacks(const std::string& release) {
  std::string text;
  for (const Promise& promise : kPromises) {
    if (IsKernelAtLeast(release, promise.major, promise.minor)) continue;
    AppendWord(promise.lacking, "; ", &text);
  }
  return text;
}

}  // namespace tracefs
