#include "tracefs/screen/activity.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tracefs::screen {

void ActivityCounts::Add(const ActivityCounts& other) {
  TimedSums::Add(other);
  second += other.second;
  durations.Add(other.durations);
}

size_t ActivityTable::Hash::operator()(const ActivityKey& key) const {
  size_t hash = std::hash<std::string_view>()(key.path);
  const auto mix = [&hash](uint64_t more) {
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  mix(Index(key.op) | uint64_t{key.error} << 8 | uint64_t{key.source} << 40);
  mix(key.pid | uint64_t{key.uid} << 32);
  mix(key.ppid | uint64_t{key.other} << 40);
  mix(std::hash<std::string_view>()(key.comm));
  return hash;
}

ActivityCounts& ActivityTable::At(const ActivityKey& key) {
  const auto found = places_.find(key);
  if (found != places_.end()) return cells_[found->second].second;
  if (cells_.size() >= kMaxCells && !key.other) Shrink();
  places_.emplace(key, cells_.size());
  return cells_.emplace_back(key, ActivityCounts()).second;
}

void ActivityTable::Shrink() {
  std::vector<uint64_t> counts;
  counts.reserve(cells_.size());
  for (const auto& [key, value] : cells_) counts.push_back(value.count);
  const auto middle =
      counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  const uint64_t limit = *middle;
  // Of those with the count of the middle just as many go as must.
  size_t excess = cells_.size() / 2;
  Cells kept;
  Cells rest;
  for (auto& cell : cells_) {
    if (!cell.first.other && (cell.second.count > limit || excess == 0)) {
      kept.push_back(std::move(cell));
      continue;
    }
    if (!cell.first.other) --excess;
    rest.push_back(std::move(cell));
  }
  cells_ = std::move(kept);
  Reindex();
  for (auto& [key, sum] : rest) Fold(std::move(key), sum);
}

// Where files are not told apart any more, operations and processes still are;
// without a file, nothing is.
void ActivityTable::Fold(ActivityKey key, const ActivityCounts& counts) {
  if (key.path.empty()) {
    const uint32_t source = key.source;
    key = ActivityKey();
    key.source = source;
    key.other = true;
  }
  key.path.clear();
  const auto [place, is_new] = places_.try_emplace(key, cells_.size());
  if (is_new) cells_.emplace_back(std::move(key), ActivityCounts());
  cells_[place->second].second.Add(counts);
}

void ActivityTable::Reindex() {
  places_.clear();
  for (size_t i = 0; i < cells_.size(); ++i) {
    places_.emplace(cells_[i].first, i);
  }
}

void ActivityTable::Add(const ActivityTable& other) {
  for (const auto& [key, counts] : other.cells_) At(key).Add(counts);
}

void ActivityTable::Drop(uint32_t source) {
  std::erase_if(cells_,
                [&](const auto& cell) { return cell.first.source == source; });
  Reindex();
}

void ActivityTable::Clear() {
  cells_.clear();
  places_.clear();
}

void Activity::EndInterval(uint32_t source, uint64_t ns) {
  if (shown_ns_.size() <= source) {
    shown_ns_.resize(source + 1);
    all_ns_.resize(source + 1);
  }
  shown_ns_[source] = ns;
  all_ns_[source] += ns;
  shown_.Drop(source);
  Past past;
  past.ns = ns;
  past.octaves.resize(65);
  for (const auto& [key, counts] : running_.cells()) {
    if (key.source != source) continue;
    shown_.At(key).Add(counts);
    all_.At(key).Add(counts);
    past.count += counts.count;
    past.errors += counts.errors;
    past.bytes = tally::AddTo(past.bytes, counts.bytes);
    counts.durations.ForEach([&](uint16_t bucket, uint64_t count) {
      const uint64_t low = tally::HistogramLow(bucket);
      past.octaves[static_cast<size_t>(std::bit_width(low))] += count;
    });
  }
  running_.Drop(source);
  if (source != 0) return;
  if (past_.size() == kMaxPast) past_.erase(past_.begin());
  past_.push_back(std::move(past));
}

void Activity::Reset() {
  running_.Clear();
  shown_.Clear();
  all_.Clear();
  shown_ns_.clear();
  all_ns_.clear();
  past_.clear();
}

uint64_t Activity::duration_ns(bool all) const {
  const std::vector<uint64_t>& of = all ? all_ns_ : shown_ns_;
  return of.empty() ? 0 : *std::max_element(of.begin(), of.end());
}

}  // namespace tracefs::screen
