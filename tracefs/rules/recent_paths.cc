#include "tracefs/rules/recent_paths.h"

#include <algorithm>

namespace tracefs {

std::optional<uint64_t> RecentPaths::Entry::Get(Field field) const {
  const auto* const found = std::find(kNumbers.begin(), kNumbers.end(), field);
  if (found == kNumbers.end()) return std::nullopt;
  return numbers[static_cast<size_t>(found - kNumbers.begin())];
}

template <typename Use>
void RecentPaths::ForEachNewestFirst(Use use) const {
  for (size_t i = 1; i <= entries_.size(); ++i) {
    // While it grows, the next one comes behind the last.
    if (!use(entries_[(next_ + kKept - i) % kKept])) return;
  }
}

void RecentPaths::Note(const Event& event, std::string_view path) {
  if (path.empty()) return;
  if (path.size() > kMaxPath) path.remove_prefix(path.size() - kMaxPath);
  if (!entries_.empty()) {
    // Reads and writes of one file come in their thousands.
    const Entry& last = entries_[(next_ + kKept - 1) % kKept];
    if (last.path == path && event.Has(Field::kPid) &&
        last.pid() == event.Get(Field::kPid)) {
      return;
    }
  }
  if (entries_.size() < kKept) entries_.emplace_back();
  Entry& entry = entries_[next_];
  next_ = (next_ + 1) % kKept;
  entry.path.assign(path);
  entry.comm.assign(event.caller == nullptr ? std::string_view()
                                            : event.caller->comm());
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    entry.numbers[i].reset();
    if (event.Has(kNumbers[i])) entry.numbers[i] = event.Get(kNumbers[i]);
  }
}

std::vector<std::string> RecentPaths::Newest(
    size_t most, const std::function<bool(const Entry&)>& mine) const {
  std::vector<std::string> paths;
  ForEachNewestFirst([&](const Entry& entry) {
    if (mine(entry) &&
        std::find(paths.begin(), paths.end(), entry.path) == paths.end()) {
      paths.push_back(entry.path);
    }
    return paths.size() < most;
  });
  return paths;
}

std::unordered_map<uint32_t, uint32_t> RecentPaths::Parents() const {
  std::unordered_map<uint32_t, uint32_t> parents;
  ForEachNewestFirst([&](const Entry& entry) {
    if (const auto parent = entry.Get(Field::kPpid);
        parent && entry.pid() != 0) {
      parents.emplace(entry.pid(), static_cast<uint32_t>(*parent));
    }
    return true;
  });
  return parents;
}

}  // namespace tracefs
