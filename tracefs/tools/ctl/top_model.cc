#include "tracefs/tools/ctl/top_model.h"

#include <algorithm>

#include "tracefs/format/block_decoder.h"

namespace tracefs {
namespace {

// The directory that holds `path`.
std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return path;
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void TopCount::Add(const TopCount& other) {
  count += other.count;
  errors += other.errors;
  bytes += other.bytes;
  ns += other.ns;
  durations.Add(other.durations);
}

uint64_t TopCount::In(TopOrder order) const {
  switch (order) {
    case TopOrder::kCount:
      return count;
    case TopOrder::kTime:
      return ns;
    case TopOrder::kErrors:
      return errors;
    case TopOrder::kBytes:
      return bytes;
  }
  return count;
}

TopCount& TopTable::At(std::string_view name) {
  const auto found = counts_.find(name);
  if (found != counts_.end()) return found->second;
  if (counts_.size() >= kMaxNames) Shrink();
  return counts_[std::string(name)];
}

// Puts the rarer half together.
void TopTable::Shrink() {
  std::vector<uint64_t> all;
  for (const auto& [name, count] : counts_) all.push_back(count.count);
  const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  // From those with the count of the middle just as many go as must.
  size_t excess = all.size() - all.size() / 2;
  TopCount rest;
  const uint64_t limit = *middle;
  for (auto at = counts_.begin(); at != counts_.end();) {
    if (at->first == kOther || (at->second.count <= limit && excess != 0)) {
      if (at->first != kOther) --excess;
      rest.Add(at->second);
      at = counts_.erase(at);
    } else {
      ++at;
    }
  }
  counts_[std::string(kOther)] = rest;
}

void TopTable::Take(TopTable* other) {
  for (const auto& [name, count] : other->counts_) At(name).Add(count);
  other->Clear();
}

std::vector<TopTable::Row> TopTable::Rows(TopOrder order, size_t most) const {
  std::vector<Row> rows;
  rows.reserve(counts_.size());
  for (const auto& [name, count] : counts_) {
    if (count.In(order) != 0) rows.push_back({name, &count});
  }
  const auto end =
      rows.begin() + static_cast<ptrdiff_t>(std::min(most, rows.size()));
  // The remainder is last; equals have a fixed order, so that rows do not jump.
  std::partial_sort(rows.begin(), end, rows.end(),
                    [order](const Row& a, const Row& b) {
                      if ((a.name == kOther) != (b.name == kOther))
                        return b.name == kOther;
                      if (a.count->In(order) != b.count->In(order)) {
                        return a.count->In(order) > b.count->In(order);
                      }
                      if (a.count->count != b.count->count) {
                        return a.count->count > b.count->count;
                      }
                      return a.name < b.name;
                    });
  rows.erase(end, rows.end());
  return rows;
}

void TopModel::Add(const format::Record& record) {
  const Event& event = record.event;
  if (event.before) return;
  const uint64_t ns =
      event.Has(Field::kLatency) ? event.Get(Field::kLatency) : 0;
  const bool failed = event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0;
  uint64_t bytes = 0;
  if (!failed && event.Has(Field::kResult) &&
      Info(event.op).family == OpFamily::kData) {
    bytes = event.Get(Field::kResult);
  }
  const auto count = [&](TopCount& at) {
    ++at.count;
    at.errors += failed ? 1 : 0;
    at.bytes += bytes;
    at.ns += ns;
    at.durations.Add(ns);
  };
  count(running_total_);
  count(running_[kOps].At(OpName(event.op)));
  if (event.caller != nullptr) {
    std::string process(record.caller.comm());
    process += '[' + std::to_string(record.caller.pid) + ']';
    count(running_[kProcesses].At(process));
  }
  const std::string_view path = format::PathOf(record, path_);
  if (path.empty()) return;
  if (Info(event.op).family == OpFamily::kDirectory) {
    count(running_[kDirectories].At(path));
    return;
  }
  count(running_[kFiles].At(path));
  count(running_[kDirectories].At(DirectoryOf(path)));
}

void TopModel::EndInterval(uint64_t ns) {
  for (size_t i = 0; i < kKinds; ++i) {
    shown_[i].Clear();
    std::swap(shown_[i], running_[i]);
    TopTable copy = shown_[i];
    all_[i].Take(&copy);
  }
  total_ = running_total_;
  running_total_ = TopCount();
  all_total_.Add(total_);
  shown_ns_ = ns;
  all_ns_ += ns;
}

void TopModel::Reset() {
  for (size_t i = 0; i < kKinds; ++i) {
    running_[i].Clear();
    shown_[i].Clear();
    all_[i].Clear();
  }
  running_total_ = total_ = all_total_ = TopCount();
  shown_ns_ = all_ns_ = 0;
  lost_ = 0;
}

}  // namespace tracefs
