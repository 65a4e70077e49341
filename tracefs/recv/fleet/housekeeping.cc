#include "tracefs/recv/fleet/housekeeping.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <set>
#include <tuple>

#include "tracefs/base/notice.h"
#include "tracefs/recv/fleet/day_files.h"
#include "tracefs/recv/fleet/places.h"

namespace tracefs {
namespace {

constexpr char kGone[] = ".gone-";
constexpr auto kInterval = std::chrono::minutes(5);
constexpr auto kLeast = std::chrono::seconds(1);
// A day that was written to so recently is not complete.
constexpr int64_t kIdleS = 3600;

UniqueFd OpenFolder(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(),
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// One receiver keeps house at a time. Goes with its process.
UniqueFd TryKeepersLock(int root) {
  UniqueFd lock(::openat(root, ".keeper.lock",
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Reset();
  return lock;
}

}  // namespace

std::vector<KeptTrace> ListDays(int root) {
  std::vector<KeptTrace> all;
  for (const std::string& host : NamesIn(root, kHostPrefix)) {
    const UniqueFd folder = OpenFolder(root, host);
    if (!folder) continue;
    for (const std::string& date : NamesIn(folder.get(), kDayPrefix)) {
      const UniqueFd day = OpenFolder(folder.get(), date);
      if (!day) continue;
      KeptTrace one{.name = host + '/' + date};
      for (const std::string& name : NamesIn(day.get(), "")) {
        struct stat st;
        if (::fstatat(day.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
          continue;
        }
        one.bytes += static_cast<uint64_t>(st.st_blocks) * 512;
        one.written_s = std::max<int64_t>(one.written_s, st.st_mtim.tv_sec);
      }
      all.push_back(std::move(one));
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.written_s, a.name) < std::tie(b.written_s, b.name);
  });
  return all;
}

Status RemoveDay(int root, const std::string& name) {
  const size_t slash = name.find('/');
  const Result<HostFolder> folder = HostFolder::Open(
      root, name.substr(kHostPrefix.size(), slash - kHostPrefix.size()));
  if (!folder.ok()) return folder.status();
  const HostFolder::Lock lock(*folder);
  if (!lock.status().ok()) return lock.status();
  const std::string date = name.substr(slash + 1);
  if (Status s = KeepHeads(*folder, date); !s.ok()) return s;
  // At once for those who read it.
  const std::string gone = kGone + date;
  RemoveFolder(folder->fd(), gone);
  if (::renameat(folder->fd(), date.c_str(), folder->fd(), gone.c_str()) != 0) {
    return Status::System(errno, "removing '" + name + "'");
  }
  RemoveFolder(folder->fd(), gone);
  return Status::Ok();
}

Housekeeping::Housekeeping(int root, HousekeepingOptions options,
                           FleetState& state)
    : root_(root),
      options_(std::move(options)),
      state_(state),
      merger_(root, options_.merge) {}

Status Housekeeping::Start() {
  if (options_.merge.every_s == 0 && !options_.rules.any()) return Status::Ok();
  return worker_.Start("tracefs-keep", [this] { Loop(); });
}

void Housekeeping::Loop() {
  const std::chrono::seconds interval =
      options_.merge.every_s == 0
          ? kInterval
          : std::clamp<std::chrono::seconds>(
                std::chrono::seconds(options_.merge.every_s) / 4, kLeast,
                kInterval);
  while (!worker_.ending()) {
    Turn(::time(nullptr));
    if (worker_.Pause(kLeast)) worker_.WaitFor(interval);
  }
}

void Housekeeping::Turn(int64_t now_s) {
  const UniqueFd lock = TryKeepersLock(root_);
  if (!lock) return;
  if (options_.merge.every_s != 0) Merge(now_s);
  if (options_.rules.any()) Remove(now_s);
}

void Housekeeping::Merge(int64_t now_s) {
  for (const std::string& host : NamesIn(root_, kHostPrefix)) {
    if (worker_.ending()) return;
    MergeCounts counts;
    const Status status =
        merger_.MergeHost(host.substr(kHostPrefix.size()), now_s, &counts);
    state_.merged += counts.merged;
    if (!status.ok()) {
      ++state_.keep_failures;
      Notify(NoticeId::kOutputFailed, "merging tables: " + status.message());
      return;  // a full disk is that for all
    }
  }
}

void Housekeeping::Remove(int64_t now_s) {
  for (const std::string& host : NamesIn(root_, kHostPrefix)) {
    const UniqueFd folder = OpenFolder(root_, host);
    // Left by a process that was killed.
    for (const std::string& name : NamesIn(folder.get(), kGone)) {
      RemoveFolder(folder.get(), name);
    }
  }
  struct statvfs disk;
  if (::fstatvfs(root_, &disk) != 0) return;
  const std::vector<KeptTrace> all = ListDays(root_);
  std::set<std::string> held;
  for (const KeptTrace& day : all) {
    if (day.written_s + kIdleS > now_s) held.insert(day.name);
  }
  const std::vector<KeptTrace> chosen = ChooseToRemove(
      all, options_.rules, now_s, uint64_t{disk.f_bavail} * disk.f_frsize,
      uint64_t{disk.f_blocks} * disk.f_frsize,
      [&](const std::string& name) { return held.contains(name); });
  for (const KeptTrace& day : chosen) {
    if (worker_.ending()) return;
    if (Status s = RemoveDay(root_, day.name); !s.ok()) {
      ++state_.keep_failures;
      Notify(NoticeId::kOutputFailed, s.message());
      continue;
    }
    ++state_.removed;
    state_.removed_bytes += day.bytes;
    Notify(NoticeId::kTraceRemoved,
           "removed '" + day.name + "' (" + std::to_string(day.bytes) +
               " bytes): older than is to be kept, or there was no room for "
               "it");
  }
}

}  // namespace tracefs
