// KeyCounts as bytes, for another process to go on with.
#include <algorithm>
#include <string>

#include "drivers/assembly/key_counts.h"
#include "tracefs/base/append_le.h"
#include "tracefs/base/bytes.h"

namespace tracefs {
namespace {

constexpr uint64_t Counts::*kMembers[] = {
    &Counts::count,       &Counts::errors,      &Counts::bytes,
    &Counts::latency_sum, &Counts::latency_max, &Counts::size_max};

void PutCounts(const Counts& counts, std::string* out) {
  for (const auto member : kMembers) AppendLe(counts.*member, out);
}

template <typename T>
bool TakeInto(ByteCursor& saved, T* value) {
  const auto taken = saved.TakeLe<T>();
  if (taken) *value = *taken;
  return taken.has_value();
}

bool TakeCounts(ByteCursor& saved, Counts* counts) {
  return std::ranges::all_of(kMembers, [&](const auto member) {
    return TakeInto(saved, &(counts->*member));
  });
}

}  // namespace

uint64_t KeyCounts::total() const {
  uint64_t total = other_.count;
  for (const Entry& entry : entries_) total += entry.counts.count;
  return total;
}

void KeyCounts::Save(std::string* out) const {
  AppendLe(shed_, out);
  PutCounts(other_, out);
  for (const std::vector<uint64_t>& histogram : other_histograms_) {
    const auto used = histogram.size() - static_cast<size_t>(std::ranges::count(
                                             histogram, uint64_t{0}));
    AppendLe(static_cast<uint32_t>(used), out);
    for (size_t b = 0; b < histogram.size(); ++b) {
      if (histogram[b] == 0) continue;
      AppendLe(static_cast<uint32_t>(b), out);
      AppendLe(histogram[b], out);
    }
  }
  AppendLe(static_cast<uint32_t>(entries_.size()), out);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    AppendLe(entry.weight, out);
    AppendLe(entry.missed, out);
    PutCounts(entry.counts, out);
    AppendLe(entry.key_size, out);
    out->append(KeyOf(entry));
    for (const auto& index : indexes_) {
      if (index == nullptr) continue;
      const auto there = static_cast<uint32_t>(
          kPieces -
          static_cast<size_t>(std::count(index[i].begin(), index[i].end(), 0)));
      AppendLe(there, out);
      for (size_t p = 0; p < kPieces; ++p) {
        if (index[i][p] == 0) continue;
        AppendLe(static_cast<uint32_t>(p), out);
        for (const uint64_t bucket : pieces_[index[i][p]]) {
          AppendLe(bucket, out);
        }
      }
    }
  }
}

bool KeyCounts::LoadEntry(ByteCursor& saved,
                          const std::function<bool(std::string_view)>& is_key) {
  Entry read;
  if (!TakeInto(saved, &read.weight) || !TakeInto(saved, &read.missed) ||
      !TakeCounts(saved, &read.counts) || !TakeInto(saved, &read.key_size) ||
      read.key_size == 0 || read.key_size > kMaxKeyBytes) {
    return false;
  }
  const auto bytes = saved.Take(read.key_size);
  if (!bytes || !is_key(AsText(*bytes)) ||
      !HasRoom(bytes->size(), /*pieces=*/0)) {
    return false;
  }
  const size_t before = entries_.size();
  const size_t place = FindOrMake(AsText(*bytes), 0, /*pieces=*/0);
  if (place != before) return false;  // it was there
  entries_[place].weight = read.weight;
  entries_[place].missed = read.missed;
  entries_[place].counts = read.counts;
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    if (indexes_[kind] == nullptr) continue;
    uint32_t count = 0;
    if (!TakeInto(saved, &count) || count > kPieces) return false;
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t piece = 0;
      if (!TakeInto(saved, &piece) || piece >= kPieces ||
          free_pieces_.empty()) {
        return false;
      }
      uint64_t* const to =
          &Bucket(static_cast<HistogramKind>(kind), place,
                  static_cast<uint16_t>(piece * kPieceBuckets));
      for (size_t b = 0; b < kPieceBuckets; ++b) {
        if (!TakeInto(saved, &to[b])) return false;
      }
    }
  }
  return true;
}

bool KeyCounts::LoadAll(ByteCursor& saved,
                        const std::function<bool(std::string_view)>& is_key) {
  uint64_t shed = 0;
  if (!TakeInto(saved, &shed) || !TakeCounts(saved, &other_)) return false;
  for (std::vector<uint64_t>& histogram : other_histograms_) {
    uint32_t used = 0;
    if (!TakeInto(saved, &used) || used > histogram.size()) return false;
    for (uint32_t i = 0; i < used; ++i) {
      uint32_t bucket = 0;
      if (!TakeInto(saved, &bucket) || bucket >= histogram.size() ||
          !TakeInto(saved, &histogram[bucket])) {
        return false;
      }
    }
  }
  uint32_t entries = 0;
  if (!TakeInto(saved, &entries) || entries > capacity_) return false;
  for (uint32_t i = 0; i < entries; ++i) {
    if (!LoadEntry(saved, is_key)) return false;
  }
  shed_ = shed;
  return true;
}

bool KeyCounts::Load(ByteCursor& saved,
                     const std::function<bool(std::string_view)>& is_key) {
  if (LoadAll(saved, is_key)) return true;
  Clear();
  return false;
}

}  // namespace tracefs
