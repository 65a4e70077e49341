#include "tracefs/recv/retention.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

#include "tracefs/base/folder.h"
#include "tracefs/recv/sender_shares.h"

namespace tracefs {
namespace {

constexpr auto kInterval = std::chrono::seconds(30);
// A full disk asks again and again.
constexpr auto kLeast = std::chrono::seconds(1);

// Which files go, one sender's oldest after another's.
class Removal {
 public:
  // `all`: oldest first.
  Removal(const std::vector<KeptTrace>& all,
          const std::function<bool(const std::string&)>& held) {
    for (const KeptTrace& trace : all) {
      const std::string sender = SenderOf(trace.name);
      shares_.Add(sender, trace.bytes);
      if (!held(trace.name)) removable_[sender].push_back(&trace);
    }
  }

  uint64_t bytes() const { return shares_.total(); }
  uint64_t taken_bytes() const { return taken_bytes_; }
  std::vector<KeptTrace> chosen() { return std::move(chosen_); }

  // If it is not in use. Of each sender from the oldest on.
  void Take(const KeptTrace& trace) {
    const std::string sender = SenderOf(trace.name);
    const auto found = removable_.find(sender);
    if (found != removable_.end() && found->second.front() == &trace) {
      TakeOldest(sender);
    }
  }

  // False if all that this sender has is in use.
  bool TakeOldest(const std::string& sender) {
    const auto found = removable_.find(sender);
    if (found == removable_.end()) return false;
    const KeptTrace& trace = *found->second.front();
    found->second.pop_front();
    if (found->second.empty()) removable_.erase(found);
    shares_.Take(sender, trace.bytes);
    taken_bytes_ += trace.bytes;
    chosen_.push_back(trace);
    return true;
  }

  void HoldEachTo(uint64_t limit) {
    for (const std::string& sender : Payers()) {
      // Senders that cannot be told apart have no share.
      if (sender.empty()) continue;
      while (shares_.Of(sender) > limit && TakeOldest(sender)) {
      }
    }
  }

  // The sender with the most data pays first, and none pays for what others are
  // still sending: each keeps at least its share.
  void HoldAllTo(uint64_t target) {
    std::set<std::pair<uint64_t, std::string>> proven;
    std::set<std::pair<uint64_t, std::string>> addresses;
    for (const std::string& sender : Payers()) {
      (IsProvenSender(sender) ? proven : addresses)
          .emplace(shares_.Of(sender), sender);
    }
    const SenderShares before = shares_;
    const auto pays = [&](const auto& senders) {
      return !senders.empty() &&
             senders.rbegin()->first >
                 before.Share(target, senders.rbegin()->second);
    };
    while (shares_.total() > target) {
      const bool one = pays(proven);
      const bool many = pays(addresses) && shares_.of_addresses() >
                                               before.ShareOfAddresses(target);
      if (!one && !many) return;
      const bool from_addresses =
          many && (!one || shares_.of_addresses() > proven.rbegin()->first);
      auto& senders = from_addresses ? addresses : proven;
      const std::string sender = std::prev(senders.end())->second;
      senders.erase(std::prev(senders.end()));
      TakeOldest(sender);
      if (removable_.contains(sender)) {
        senders.emplace(shares_.Of(sender), sender);
      }
    }
  }

 private:
  std::vector<std::string> Payers() const {
    std::vector<std::string> all;
    for (const auto& [sender, traces] : removable_) all.push_back(sender);
    return all;
  }

  SenderShares shares_;
  std::map<std::string, std::deque<const KeptTrace*>> removable_;
  uint64_t taken_bytes_ = 0;
  std::vector<KeptTrace> chosen_;
};

}  // namespace

Result<std::vector<KeptTrace>> ListTraces(int directory) {
  const Result<std::vector<std::string>> names = NamesInFolder(directory);
  if (!names.ok()) {
    return Status::System(names.status().error(), "directory of traces");
  }
  std::vector<KeptTrace> all;
  for (const std::string& name : *names) {
    struct stat st;
    if (name[0] == '.' || name.find(".trace") == name.npos ||
        ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode)) {
      continue;
    }
    all.push_back({.name = name,
                   .bytes = static_cast<uint64_t>(st.st_blocks) * 512,
                   .written_s = st.st_mtim.tv_sec,
                   .size = static_cast<uint64_t>(st.st_size)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.written_s, a.name) < std::tie(b.written_s, b.name);
  });
  return all;
}

std::vector<KeptTrace> ChooseToRemove(
    const std::vector<KeptTrace>& all, const RetentionRules& rules,
    int64_t now_s, uint64_t free, uint64_t total,
    const std::function<bool(const std::string&)>& held) {
  Removal removal(all, held);
  for (const KeptTrace& trace : all) {
    const bool old =
        rules.max_age_s != 0 && now_s > trace.written_s &&
        static_cast<uint64_t>(now_s - trace.written_s) > rules.max_age_s;
    if (old) removal.Take(trace);
  }
  if (rules.max_sender_bytes != 0) removal.HoldEachTo(rules.max_sender_bytes);
  const uint64_t want_free =
      std::max(rules.min_free_bytes,
               static_cast<uint64_t>(static_cast<double>(total) / 100.0 *
                                     rules.min_free_percent));
  const uint64_t now_free = free + removal.taken_bytes();
  const uint64_t bytes = removal.bytes();
  uint64_t target = want_free > now_free
                        ? bytes - std::min(bytes, want_free - now_free)
                        : bytes;
  if (rules.max_bytes != 0) target = std::min(target, rules.max_bytes);
  removal.HoldAllTo(target);
  return removal.chosen();
}

Retention::Retention(int directory, RetentionRules rules,
                     std::function<void(const KeptTrace&)> removed,
                     std::function<void(const std::vector<KeptTrace>&)> listed)
    : directory_(directory),
      rules_(rules),
      removed_(std::move(removed)),
      listed_(std::move(listed)) {}

Status Retention::Start() {
  if (!rules_.any()) return Status::Ok();
  return worker_.Start("tracefs-keep", [this] { Loop(); });
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

void Retention::Loop() {
  while (!worker_.ending()) {
    Look();
    if (worker_.Pause(kLeast)) worker_.WaitFor(kInterval);
  }
}

void Retention::Look() {
  struct statvfs disk;
  const Result<std::vector<KeptTrace>> all = ListTraces(directory_);
  if (!all.ok() || ::fstatvfs(directory_, &disk) != 0) return;
  if (listed_) listed_(*all);
  const auto held = [this](const std::string& name) {
    // A part cut off from a trace belongs to no sender.
    const std::lock_guard lock(mu_);
    return name == TraceNameOf(name) && held_.contains(name);
  };
  const std::vector<KeptTrace> chosen = ChooseToRemove(
      *all, rules_, ::time(nullptr), uint64_t{disk.f_bavail} * disk.f_frsize,
      uint64_t{disk.f_blocks} * disk.f_frsize, held);
  for (const KeptTrace& trace : chosen) {
    if (worker_.ending()) return;
    {
      // It cannot come into use between the check and its removal.
      const std::lock_guard lock(mu_);
      if (held_.contains(trace.name) ||
          ::unlinkat(directory_, trace.name.c_str(), 0) != 0) {
        continue;
      }
    }
    removed_(trace);
  }
}

}  // namespace tracefs
