#include "tracefs/recv/retention.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <tuple>
#include <utility>

#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

constexpr auto kInterval = std::chrono::seconds(30);
// A full disk asks again and again.
constexpr auto kLeast = std::chrono::seconds(1);

}  // namespace

std::string SenderOf(const std::string& name) {
  if (name.starts_with("host=")) return name.substr(0, name.find('/'));
  if (!name.starts_with("cn-") && !name.starts_with("uid-")) return "";
  // SENDER.SERIAL.trace and what was cut off from it; a sender has dots, too.
  const size_t end = name.find(".trace");
  if (end == name.npos) return "";
  const size_t serial = name.rfind('.', end - 1);
  return serial == name.npos ? "" : name.substr(0, serial);
}

Result<std::vector<KeptTrace>> ListTraces(int directory) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (list == nullptr) return Status::System(errno, "directory of traces");
  std::vector<KeptTrace> all;
  while (const dirent* entry = ::readdir(list)) {
    const std::string name = entry->d_name;
    struct stat st;
    if (name[0] == '.' || name.find(".trace") == name.npos ||
        ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode)) {
      continue;
    }
    all.push_back({.name = name,
                   .bytes = static_cast<uint64_t>(st.st_blocks) * 512,
                   .written_s = st.st_mtim.tv_sec});
  }
  ::closedir(list);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.written_s, a.name) < std::tie(b.written_s, b.name);
  });
  return all;
}

std::vector<KeptTrace> ChooseToRemove(
    const std::vector<KeptTrace>& all, const RetentionRules& rules,
    int64_t now_s, uint64_t free, uint64_t total,
    const std::function<bool(const std::string&)>& held) {
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> of_sender;
  for (const KeptTrace& trace : all) {
    bytes += trace.bytes;
    of_sender[SenderOf(trace.name)] += trace.bytes;
  }
  const uint64_t want_free =
      std::max(rules.min_free_bytes,
               static_cast<uint64_t>(static_cast<double>(total) / 100.0 *
                                     rules.min_free_percent));
  std::vector<KeptTrace> chosen;
  for (const KeptTrace& trace : all) {
    const std::string sender = SenderOf(trace.name);
    const bool old =
        rules.max_age_s != 0 && now_s > trace.written_s &&
        static_cast<uint64_t>(now_s - trace.written_s) > rules.max_age_s;
    const bool much = rules.max_bytes != 0 && bytes > rules.max_bytes;
    // Of those whom nobody can tell apart there is no share.
    const bool too_much_of_one = rules.max_sender_bytes != 0 &&
                                 !sender.empty() &&
                                 of_sender[sender] > rules.max_sender_bytes;
    if (!old && !much && !too_much_of_one && free >= want_free) continue;
    if (held(trace.name)) continue;
    chosen.push_back(trace);
    bytes -= trace.bytes;
    of_sender[sender] -= trace.bytes;
    free += trace.bytes;
  }
  return chosen;
}

Retention::Retention(int directory, RetentionRules rules,
                     std::function<void(const KeptTrace&)> removed)
    : directory_(directory), rules_(rules), removed_(std::move(removed)) {}

Retention::~Retention() {
  {
    const std::lock_guard lock(mu_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Retention::Start() {
  if (rules_.any()) {
    thread_ = StartThread("tracefs-keep", [this] { Loop(); });
  }
}

void Retention::Hold(const std::string& name) {
  const std::lock_guard lock(mu_);
  ++held_[name];
}

void Retention::Release(const std::string& name) {
  const std::lock_guard lock(mu_);
  if (const auto found = held_.find(name);
      found != held_.end() && --found->second == 0) {
    held_.erase(found);
  }
}

void Retention::Hurry() {
  {
    const std::lock_guard lock(mu_);
    hurry_ = true;
  }
  wake_.notify_all();
}

void Retention::Loop() {
  std::unique_lock lock(mu_);
  while (!ending_) {
    hurry_ = false;
    lock.unlock();
    Look();
    lock.lock();
    wake_.wait_for(lock, kLeast, [this] { return ending_; });
    wake_.wait_for(lock, kInterval, [this] { return ending_ || hurry_; });
  }
}

void Retention::Look() {
  struct statvfs disk;
  const Result<std::vector<KeptTrace>> all = ListTraces(directory_);
  if (!all.ok() || ::fstatvfs(directory_, &disk) != 0) return;
  const auto held = [this](const std::string& name) {
    // What was cut off from a trace is nobody's.
    const std::string trace =
        name.substr(0, std::min(name.size(), name.find(".trace") + 6));
    const std::lock_guard lock(mu_);
    return name == trace && held_.contains(trace);
  };
  const std::vector<KeptTrace> chosen = ChooseToRemove(
      *all, rules_, ::time(nullptr), uint64_t{disk.f_bavail} * disk.f_frsize,
      uint64_t{disk.f_blocks} * disk.f_frsize, held);
  for (const KeptTrace& trace : chosen) {
    {
      // Nobody begins to use it between the look and the end of it.
      const std::lock_guard lock(mu_);
      if (ending_) return;
      if (held_.contains(trace.name) ||
          ::unlinkat(directory_, trace.name.c_str(), 0) != 0) {
        continue;
      }
    }
    removed_(trace);
  }
}

}  // namespace tracefs
