#include "drivers/assembly/key_counts.h"

#include <algorithm>
#include <cstring>

#include "tracefs/base/bytes.h"

namespace tracefs {
namespace {

using tally::HistogramBucket;

// What sizes are planned with: bytes of a key, pieces of a histogram.
constexpr size_t kPlannedKeyBytes = 40;
constexpr size_t kPlannedPieces = 8;
constexpr size_t kMaxPieces = 65535;  // their numbers are 16 bits wide

// The wide product, folded: every bit of the result depends on all of both.
uint64_t Mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

void Counts::Add(const CountSample& sample) {
  count += sample.counts ? 1 : 0;
  errors += sample.failed ? 1 : 0;
  bytes += sample.bytes;
  latency_sum += sample.latency_ns;
  latency_max = std::max(latency_max, sample.latency_ns);
  size_max = std::max(size_max, sample.bytes);
}

void Counts::Add(const Counts& other) {
  count += other.count;
  errors += other.errors;
  bytes += other.bytes;
  latency_sum += other.latency_sum;
  latency_max = std::max(latency_max, other.latency_max);
  size_max = std::max(size_max, other.size_max);
}

struct KeyCounts::Layout {
  size_t capacity = 0;
  size_t key_bytes = 0;
  size_t pieces = 0;
};

KeyCounts::Layout KeyCounts::LayOut(const KeyCountsOptions& options) {
  const size_t histograms = (options.latency ? 1 : 0) + (options.size ? 1 : 0);
  // Other() has whole histograms, and a key of any length must fit.
  const size_t fixed =
      histograms * tally::kHistogramBuckets * sizeof(uint64_t) + kMaxKeyBytes +
      sizeof(KeyCounts);
  const size_t each =
      sizeof(Entry) + sizeof(uint64_t) + HashIndex::MostBytesFor(1) +
      kPlannedKeyBytes +
      histograms * (sizeof(PieceIndex) + kPlannedPieces * (sizeof(Piece) + 2));
  Layout layout;
  layout.capacity =
      (std::max(options.bytes, kMinBytes) - std::min(fixed, kMinBytes / 2)) /
      each;
  if (histograms != 0) {
    layout.capacity =
        std::min(layout.capacity, kMaxPieces / (histograms * kPlannedPieces));
  }
  layout.key_bytes = layout.capacity * kPlannedKeyBytes + kMaxKeyBytes;
  layout.pieces = layout.capacity * histograms * kPlannedPieces;
  return layout;
}

size_t KeyCounts::Capacity(const KeyCountsOptions& options) {
  return LayOut(options).capacity;
}

KeyCounts::KeyCounts(const KeyCountsOptions& options) : seed_(options.seed) {
  const Layout layout = LayOut(options);
  capacity_ = layout.capacity;
  entries_.reserve(capacity_);
  places_ = HashIndex(capacity_);
  weights_.reserve(capacity_);
  key_bytes_ = layout.key_bytes;
  keys_ = std::make_unique_for_overwrite<char[]>(key_bytes_);
  const std::array<bool, kHistogramKinds> wanted = {options.latency,
                                                    options.size};
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    if (!wanted[kind]) continue;
    indexes_[kind] = std::make_unique_for_overwrite<PieceIndex[]>(capacity_);
    other_histograms_[kind].resize(tally::kHistogramBuckets);
  }
  if (layout.pieces == 0) return;
  piece_count_ = layout.pieces + 1;
  pieces_ = std::make_unique_for_overwrite<Piece[]>(piece_count_);
  free_pieces_.reserve(layout.pieces);
  for (size_t i = layout.pieces; i != 0; --i) {
    free_pieces_.push_back(static_cast<uint16_t>(i));
  }
}

size_t KeyCounts::footprint() const {
  size_t bytes = sizeof *this + entries_.capacity() * sizeof(Entry) +
                 places_.bytes() + key_bytes_ + piece_count_ * sizeof(Piece) +
                 weights_.capacity() * sizeof(uint64_t) +
                 free_pieces_.capacity() * sizeof(uint16_t);
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    if (indexes_[kind] != nullptr) bytes += capacity_ * sizeof(PieceIndex);
    bytes += other_histograms_[kind].capacity() * sizeof(uint64_t);
  }
  return bytes;
}

uint64_t KeyCounts::Hash(std::string_view key) const {
  constexpr uint64_t kA = 0xa0761d6478bd642fu;
  constexpr uint64_t kB = 0xe7037ed1a0b428dbu;
  uint64_t hash = seed_ ^ Mix(key.size() ^ kA, kB);
  const char* at = key.data();
  size_t left = key.size();
  for (; left >= 8; at += 8, left -= 8) {
    hash = Mix(hash ^ LoadLe<uint64_t>(at), kB);
  }
  uint64_t tail = 0;
  if (left != 0) std::memcpy(&tail, at, left);
  return Mix(hash ^ tail, kA);
}

uint32_t KeyCounts::Find(std::string_view key, uint64_t hash) const {
  return places_.Find(
      hash, [&](uint32_t place) { return KeyOf(entries_[place]) == key; });
}

bool KeyCounts::HasRoom(size_t key_bytes, size_t pieces) const {
  return entries_.size() < capacity_ && key_bytes_ - keys_used_ >= key_bytes &&
         free_pieces_.size() >= pieces;
}

size_t KeyCounts::FindOrMake(std::string_view key, uint64_t missed,
                             size_t pieces) {
  const uint64_t hash = Hash(key);
  uint32_t place = Find(key, hash);
  const auto has_all = [&] {
    return place != HashIndex::kNone && free_pieces_.size() >= pieces;
  };
  if (has_all()) [[likely]]
    return place;
  while (!HasRoom(key.size(), pieces)) {
    Shed();
    place = Find(key, hash);
    if (has_all()) return place;
  }
  places_.Add(hash, static_cast<uint32_t>(entries_.size()));
  Entry& entry = entries_.emplace_back();
  entry.missed = missed + shed_;
  entry.key_offset = static_cast<uint32_t>(keys_used_);
  entry.key_size = static_cast<uint32_t>(key.size());
  std::memcpy(keys_.get() + keys_used_, key.data(), key.size());
  keys_used_ += key.size();
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    if (indexes_[kind] != nullptr) indexes_[kind][entries_.size() - 1].fill(0);
  }
  return entries_.size() - 1;
}

uint64_t& KeyCounts::Bucket(HistogramKind kind, size_t entry, uint16_t bucket) {
  uint16_t& piece = indexes_[kind][entry][bucket / kPieceBuckets];
  if (piece == 0) {
    piece = free_pieces_.back();
    free_pieces_.pop_back();
    pieces_[piece].fill(0);
  }
  return pieces_[piece][bucket % kPieceBuckets];
}

void KeyCounts::Add(std::string_view key, const CountSample& sample) {
  const size_t place = FindOrMake(key, 0, pieces_ == nullptr ? 0 : 2);
  Entry& entry = entries_[place];
  ++entry.weight;
  entry.counts.Add(sample);
  if (has(kLatency) && sample.counts) {
    ++Bucket(kLatency, place, HistogramBucket(sample.latency_ns));
  }
  if (has(kSize) && sample.has_size) {
    ++Bucket(kSize, place, HistogramBucket(sample.bytes));
  }
}

size_t KeyCounts::PiecesOf(size_t entry) const {
  size_t pieces = 0;
  for (const auto& index : indexes_) {
    if (index == nullptr) continue;
    pieces += kPieces - static_cast<size_t>(std::count(index[entry].begin(),
                                                       index[entry].end(), 0));
  }
  return pieces;
}

void KeyCounts::Add(const KeyCounts& other) {
  // What `other` has in its Other() may belong to any key.
  for (Entry& entry : entries_) entry.missed += other.shed_;
  for (size_t i = 0; i < other.entries_.size(); ++i) {
    const Entry& from = other.entries_[i];
    const std::string_view key = other.KeyOf(from);
    const size_t place = FindOrMake(key, other.shed_, other.PiecesOf(i));
    Entry& entry = entries_[place];
    entry.missed += from.missed - other.shed_;
    entry.weight += from.weight;
    entry.counts.Add(from.counts);
    for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
      if (indexes_[kind] == nullptr) continue;
      for (size_t p = 0; p < kPieces; ++p) {
        const uint16_t piece = other.indexes_[kind][i][p];
        if (piece == 0) continue;
        uint64_t* const to = &Bucket(static_cast<HistogramKind>(kind), place,
                                     static_cast<uint16_t>(p * kPieceBuckets));
        for (size_t b = 0; b < kPieceBuckets; ++b) {
          to[b] += other.pieces_[piece][b];
        }
      }
    }
  }
  shed_ += other.shed_;
  other_.Add(other.other_);
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    for (size_t b = 0; b < other_histograms_[kind].size(); ++b) {
      other_histograms_[kind][b] += other.other_histograms_[kind][b];
    }
  }
}

void KeyCounts::MoveToOther(size_t entry) {
  other_.Add(entries_[entry].counts);
  for (size_t kind = 0; kind < kHistogramKinds; ++kind) {
    if (indexes_[kind] == nullptr) continue;
    for (size_t p = 0; p < kPieces; ++p) {
      const uint16_t piece = indexes_[kind][entry][p];
      if (piece == 0) continue;
      for (size_t b = 0; b < kPieceBuckets; ++b) {
        other_histograms_[kind][p * kPieceBuckets + b] += pieces_[piece][b];
      }
      free_pieces_.push_back(piece);
    }
  }
}

// Takes the median weight off all and drops those that have nothing left.
void KeyCounts::Shed() {
  weights_.clear();
  for (const Entry& entry : entries_) weights_.push_back(entry.weight);
  const auto middle =
      weights_.begin() + static_cast<ptrdiff_t>(weights_.size() / 2);
  std::nth_element(weights_.begin(), middle, weights_.end());
  const uint64_t median = *middle;
  size_t kept = 0;
  keys_used_ = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].weight <= median) {
      MoveToOther(i);
      continue;
    }
    Entry& entry = entries_[kept];
    if (kept != i) {
      entry = entries_[i];
      for (const auto& index : indexes_) {
        if (index != nullptr) index[kept] = index[i];
      }
    }
    entry.weight -= median;
    // Keys lie in the order of entries: what is moved lies further back.
    std::memmove(keys_.get() + keys_used_, keys_.get() + entry.key_offset,
                 entry.key_size);
    entry.key_offset = static_cast<uint32_t>(keys_used_);
    keys_used_ += entry.key_size;
    ++kept;
  }
  entries_.resize(kept);
  shed_ += median;
  places_.Clear();
  for (size_t i = 0; i < kept; ++i) {
    places_.Add(Hash(KeyOf(entries_[i])), static_cast<uint32_t>(i));
  }
}

void KeyCounts::Clear() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (const auto& index : indexes_) {
      if (index == nullptr) continue;
      for (const uint16_t piece : index[i]) {
        if (piece != 0) free_pieces_.push_back(piece);
      }
    }
  }
  entries_.clear();
  keys_used_ = 0;
  shed_ = 0;
  other_ = {};
  places_.Clear();
  for (std::vector<uint64_t>& histogram : other_histograms_) {
    std::fill(histogram.begin(), histogram.end(), 0);
  }
}

void KeyCounts::AddHistogram(HistogramKind kind, const Entry& entry,
                             std::vector<uint64_t>* sum) const {
  sum->resize(tally::kHistogramBuckets);
  if (indexes_[kind] == nullptr) return;
  const auto place = static_cast<size_t>(&entry - entries_.data());
  for (size_t p = 0; p < kPieces; ++p) {
    const uint16_t piece = indexes_[kind][place][p];
    if (piece == 0) continue;
    for (size_t b = 0; b < kPieceBuckets; ++b) {
      (*sum)[p * kPieceBuckets + b] += pieces_[piece][b];
    }
  }
}

void KeyCounts::AddOtherHistogram(HistogramKind kind,
                                  std::vector<uint64_t>* sum) const {
  sum->resize(tally::kHistogramBuckets);
  for (size_t b = 0; b < other_histograms_[kind].size(); ++b) {
    (*sum)[b] += other_histograms_[kind][b];
  }
}

}  // namespace tracefs
