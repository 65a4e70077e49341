#include "tracefs/export/strace_held.h"

#include <utility>

namespace tracefs {
namespace {

bool IsBelow(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.size() > 1;
  return path.size() > folder.size() && path.starts_with(folder) &&
         path[folder.size()] == '/';
}

}  // namespace

void HeldLines::Add(std::string_view line) {
  if (lines_.empty()) {
    out_.Append(line);
  } else {
    Push({.text = std::string(line), .path = {}});
  }
}

void HeldLines::HoldStat(std::string_view line, uint64_t tid,
                         std::string_view path) {
  stats_[tid] = Push({.text = std::string(line),
                      .path = std::string(path),
                      .state = State::kWaits});
}

void HeldLines::HoldClose(std::string_view line, uint64_t pid) {
  closes_[pid].push_back(Push({.text = std::string(line),
                               .path = {},
                               .state = State::kWaits,
                               .is_close = true}));
}

void HeldLines::ThreadAsks(uint64_t tid, bool opens, std::string_view path,
                           std::string_view path2) {
  const auto found = stats_.find(tid);
  if (found == stats_.end()) return;
  const uint64_t number = found->second;
  stats_.erase(found);
  if (number < first_) return;
  const std::string& looked_at = lines_[number - first_].path;
  const bool on_the_way = IsBelow(path, looked_at) ||
                          IsBelow(path2, looked_at) ||
                          (opens && path == looked_at);
  Settle(number, on_the_way ? State::kLeftOut : State::kReady);
}

void HeldLines::ProcessCalls(uint64_t pid) { SettleCloses(pid, State::kReady); }

void HeldLines::ProcessChanges(uint64_t pid) {
  SettleCloses(pid, State::kLeftOut);
}

void HeldLines::Finish() {
  while (!lines_.empty()) WriteFront();
}

uint64_t HeldLines::Push(Line line) {
  const uint64_t number = first_ + lines_.size();
  bytes_ += SizeOf(line);
  lines_.push_back(std::move(line));
  if (bytes_ > kMostBytes) Forget();
  return number;
}

// Makes room, and forgets who waited for lines that are written.
void HeldLines::Forget() {
  while (bytes_ > kMostBytes / 2) WriteFront();
  const auto written = [this](uint64_t number) { return number < first_; };
  std::erase_if(stats_, [&](const auto& s) { return written(s.second); });
  for (auto of_one = closes_.begin(); of_one != closes_.end();) {
    std::erase_if(of_one->second, written);
    of_one = of_one->second.empty() ? closes_.erase(of_one) : ++of_one;
  }
}

void HeldLines::Settle(uint64_t number, State state) {
  if (number < first_) return;  // there was no room for it any more
  lines_[number - first_].state = state;
  WriteReady();
}

void HeldLines::SettleCloses(uint64_t pid, State state) {
  const auto found = closes_.find(pid);
  if (found == closes_.end()) return;
  const std::vector<uint64_t> numbers = std::move(found->second);
  closes_.erase(found);
  for (const uint64_t number : numbers) Settle(number, state);
}

void HeldLines::WriteFront() {
  const Line& line = lines_.front();
  if (line.state == State::kLeftOut ||
      (line.state == State::kWaits && line.is_close)) {
    ++left_out_;
  } else {
    out_.Append(line.text);
  }
  bytes_ -= SizeOf(line);
  lines_.pop_front();
  ++first_;
}

void HeldLines::WriteReady() {
  while (!lines_.empty() && lines_.front().state != State::kWaits) {
    WriteFront();
  }
}

}  // namespace tracefs
