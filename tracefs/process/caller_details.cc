#include "tracefs/process/caller_details.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/thread.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr uint64_t kPatienceNs = 20'000'000;
// What changes without notice: control groups, titles.
constexpr uint64_t kLifeNs = 1'000'000'000;
constexpr size_t kMaxText = 4096;

std::optional<std::string> ReadOf(int proc, uint32_t pid, const char* name) {
  const std::string path = std::to_string(pid) + '/' + name;
  const UniqueFd fd(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  Result<std::string> text = ReadText(fd.get(), kMaxText, name);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

}  // namespace

std::optional<std::string> CgroupOf(std::string_view text) {
  std::optional<std::string> unified;
  std::optional<std::string> other;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second =
        first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos || second + 1 >= line.size()) continue;
    const std::string_view path = line.substr(second + 1);
    if (line.substr(0, first) == "0" && second == first + 1) {
      unified = std::string(path);
    } else if (!other || (*other == "/" && path != "/")) {
      other = std::string(path);
    }
  }
  if (unified && (*unified != "/" || !other || *other == "/")) return unified;
  return other;
}

std::optional<std::string> TerminalOf(std::string_view stat) {
  // Behind the name come state, ppid, pgrp, session, tty_nr.
  const size_t close = stat.rfind(')');
  if (close == stat.npos) return std::nullopt;
  stat.remove_prefix(close + 1);
  for (int field = 0; field < 4; ++field) {
    stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
    stat.remove_prefix(std::min(stat.find(' '), stat.size()));
  }
  stat.remove_prefix(std::min(stat.find_first_not_of(' '), stat.size()));
  int number = 0;
  const auto [end, error] =
      std::from_chars(stat.data(), stat.data() + stat.size(), number);
  if (error != std::errc()) return std::nullopt;
  if (number == 0) return "none";
  // proc_pid_stat(5): the minor number is in bits 31 to 20 and 7 to 0.
  const auto bits = static_cast<uint32_t>(number);
  const uint32_t major_number = bits >> 8 & 0xfff;
  const uint32_t minor_number = (bits >> 12 & 0xfff00) | (bits & 0xff);
  // linux/Documentation/admin-guide/devices.txt
  if (major_number >= 136 && major_number <= 143) {
    return "pts/" + std::to_string((major_number - 136) * 256 + minor_number);
  }
  if (major_number == 4 && minor_number < 64) {
    return "tty" + std::to_string(minor_number);
  }
  if (major_number == 4 && minor_number < 256) {
    return "ttyS" + std::to_string(minor_number - 64);
  }
  if (major_number == 5 && minor_number == 1) return "console";
  return std::to_string(major_number) + ':' + std::to_string(minor_number);
}

std::string CommandLineOf(std::string_view arguments) {
  while (arguments.ends_with('\0')) arguments.remove_suffix(1);
  std::string line(arguments);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

void CallerDetailsReader::Start(FindExe find_exe) {
  find_exe_ = std::move(find_exe);
  stop_ = false;
  thread_ = StartThread("tracefs-details", [this] { Run(); });
}

void CallerDetailsReader::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    jobs_.clear();
  }
  work_.notify_all();
  thread_.join();
  std::lock_guard lock(mu_);
  entries_.clear();
}

std::shared_ptr<const CallerDetails> CallerDetailsReader::Of(
    const CallerInfo& caller, uint64_t version, uint64_t now_ns,
    bool may_wait) {
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
  if (!may_wait || stop_ || !thread_.joinable()) return nullptr;
  const auto same = [&](const Job& job) {
    return job.serial == caller.serial && job.version == version;
  };
  if (std::none_of(jobs_.begin(), jobs_.end(), same)) {
    if (jobs_.size() >= kMaxJobs) return nullptr;
    entries_.erase(caller.serial);
    jobs_.push_back({caller.serial, version, caller.pid});
    work_.notify_one();
  }
  // While it hangs over somebody, nobody waits for it.
  if (busy_since_ns_ != 0 && MonotonicNs() - busy_since_ns_ > kPatienceNs) {
    return nullptr;
  }
  const Entry* entry = nullptr;
  done_.wait_for(lock, std::chrono::nanoseconds(kPatienceNs),
                 [&] { return stop_ || (entry = known()) != nullptr; });
  return entry != nullptr ? entry->details : nullptr;
}

void CallerDetailsReader::Run() {
  std::unique_lock lock(mu_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const Job job = jobs_.front();
    busy_since_ns_ = MonotonicNs();
    lock.unlock();
    auto details = std::make_shared<CallerDetails>(Read(job.pid));
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

CallerDetails CallerDetailsReader::Read(uint32_t pid) const {
  CallerDetails details;
  if (const auto text = ReadOf(proc_, pid, "cgroup")) {
    details.cgroup = CgroupOf(*text);
  }
  if (const auto text = ReadOf(proc_, pid, "stat")) {
    details.tty = TerminalOf(*text);
  }
  if (const auto text = ReadOf(proc_, pid, "cmdline")) {
    details.cmdline = CommandLineOf(*text);
  }
  if (find_exe_) details.exe = find_exe_(pid);
  return details;
}

}  // namespace tracefs
