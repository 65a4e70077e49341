#include "tracefs/process/caller_details.h"

#include <algorithm>
#include <chrono>

#include "tracefs/base/clock.h"
#include "tracefs/process/proc_reader.h"
#include "tracefs/process/proc_text.h"

namespace tracefs {
namespace {

// What changes without notice: control groups, titles.
constexpr uint64_t kLifeNs = 1'000'000'000;
constexpr size_t kMaxProcFile = 4096;

}  // namespace

Status CallerDetailsReader::Start(FindExe find_exe) {
  find_exe_ = std::move(find_exe);
  return worker_.Start("tracefs-details", [this] { Run(); });
}

void CallerDetailsReader::Stop() {
  if (!worker_.started()) return;
  {
    std::lock_guard lock(mu_);
    jobs_.clear();
  }
  worker_.Stop();
  std::lock_guard lock(mu_);
  entries_.clear();
}

std::shared_ptr<const KnownDetails> CallerDetailsReader::Of(
    const CallerInfo& caller, uint64_t version, uint64_t now_ns,
    uint64_t patience_ns) {
  const bool may_wait = patience_ns != 0;
  std::unique_lock lock(mu_);
  const auto known = [&]() -> const Entry* {
    const auto found = entries_.find(caller.serial);
    return found != entries_.end() && found->second.version == version
               ? &found->second
               : nullptr;
  };
  if (const Entry* entry = known();
      entry != nullptr && (now_ns < entry->expires_ns || !may_wait)) {
    return entry->details;
  }
  if (!may_wait || worker_.ending() || !worker_.started()) return nullptr;
  const auto same = [&](const Job& job) {
    return job.serial == caller.serial && job.version == version;
  };
  if (std::none_of(jobs_.begin(), jobs_.end(), same)) {
    if (jobs_.size() >= kMaxJobs) return nullptr;
    entries_.erase(caller.serial);
    jobs_.push_back({caller.serial, version, caller.pid});
    worker_.Wake();
  }
  // While it hangs over somebody, nobody waits for it.
  if (busy_since_ns_ != 0 && MonotonicNs() - busy_since_ns_ > kOfRequestNs) {
    return nullptr;
  }
  const Entry* entry = nullptr;
  done_.wait_for(lock, std::chrono::nanoseconds(patience_ns), [&] {
    return worker_.ending() || (entry = known()) != nullptr;
  });
  return entry != nullptr ? entry->details : nullptr;
}

std::shared_ptr<const KnownDetails> CallerDetailsReader::Kept(uint64_t serial) {
  std::lock_guard lock(mu_);
  const auto found = entries_.find(serial);
  return found == entries_.end() ? nullptr : found->second.details;
}

void CallerDetailsReader::Run() {
  std::unique_lock lock(mu_);
  while (!worker_.ending()) {
    if (jobs_.empty()) {
      lock.unlock();
      worker_.Wait();
      lock.lock();
      continue;
    }
    const Job job = jobs_.front();
    busy_since_ns_ = MonotonicNs();
    lock.unlock();
    auto details = std::make_shared<KnownDetails>(Read(job.pid));
    lock.lock();
    busy_since_ns_ = 0;
    // Whoever asks takes the version first: had the process become another
    // since, nobody would look for this.
    details->number = ++last_number_;
    if (entries_.size() >= kMaxEntries) entries_.clear();
    entries_[job.serial] = {job.version, MonotonicNs() + kLifeNs,
                            std::move(details)};
    if (!jobs_.empty()) jobs_.erase(jobs_.begin());
    done_.notify_all();
  }
}

KnownDetails CallerDetailsReader::Read(uint32_t pid) const {
  KnownDetails details;
  if (const auto text = ReadProcText(proc_, pid, "cgroup", kMaxProcFile)) {
    details.cgroup = CgroupOf(*text);
  }
  if (const auto text = ReadProcText(proc_, pid, "stat", kMaxProcFile)) {
    details.tty = TerminalOf(*text);
    details.start_time = ParseStartTime(*text).value_or(0);
  }
  if (const auto text = ReadProcText(proc_, pid, "cmdline", kMaxProcFile)) {
    details.cmdline = CommandLineOf(*text);
  }
  if (find_exe_) details.exe = find_exe_(pid);
  return details;
}

}  // namespace tracefs
