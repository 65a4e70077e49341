// KeyCounts: counters and histograms by key, in bounded memory however many
// keys there are.
//
// Space-saving in its batched form (Misra and Gries 1982; Agarwal et al.,
// "Mergeable Summaries", PODS 2012, show that both are the same and how they
// are merged): each key has a weight. When there is no room for another, the
// median of the weights is taken off all; keys whose weight is used up go into
// Other(), with all that was counted for them. So:
//
// - all keys and Other() together have every event, exactly once;
// - a key that had more than total / (capacity / 2) events is there;
// - what is counted for a key is exact since it came in, and at most `missed`
//   events of it before are in Other().
//
// Used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/hash_table.h"
#include "tracefs/tally/histogram.h"

namespace tracefs {

// What one event adds to its key.
struct CountSample {
  uint64_t bytes = 0;
  bool failed = false;
  bool has_size = false;  // `bytes` is the size of a transfer
  // False for what an operation that counts elsewhere did with a second file.
  bool counts = true;
  uint64_t latency_ns = 0;
};

struct Counts {
  uint64_t count = 0;
  uint64_t errors = 0;
  uint64_t bytes = 0;
  uint64_t latency_sum = 0;
  uint64_t latency_max = 0;
  uint64_t size_max = 0;

  void Add(const CountSample& sample);
  void Add(const Counts& other);
};

struct KeyCountsOptions {
  size_t bytes = 0;  // of memory, at most; kMinBytes and more
  bool latency = false;
  bool size = false;
  uint64_t seed = 0;  // of the hash: keys come from anyone
};

class KeyCounts {
 public:
  static constexpr size_t kMinBytes = size_t{256} << 10;
  static constexpr size_t kMaxKeyBytes = 4096;
  enum HistogramKind : uint8_t { kLatency, kSize };
  static constexpr size_t kHistogramKinds = 2;

  struct Entry {
    uint64_t weight = 0;
    uint64_t missed = 0;
    uint32_t key_offset = 0;
    uint32_t key_size = 0;
    Counts counts;
  };

  // How many keys there is room for.
  static size_t Capacity(const KeyCountsOptions& options);

  // Takes its memory now; the system provides it as it is used.
  explicit KeyCounts(const KeyCountsOptions& options);
  KeyCounts(const KeyCounts&) = delete;
  KeyCounts& operator=(const KeyCounts&) = delete;

  // `key`: at most kMaxKeyBytes. Constant time, but for one in
  // capacity / 2 new keys, which takes time in proportion to the capacity.
  void Add(std::string_view key, const CountSample& sample);
  // Adds all of `other`, which has the same options but for its size.
  void Add(const KeyCounts& other);
  // Forgets all.
  void Clear();

  // All of it as bytes; and, in an empty one, from bytes that may be anything:
  // false, and it is empty, if they are not those of one with the same options.
  // `is_key` judges each key.
  void Save(std::string* out) const;
  bool Load(ByteCursor& saved,
            const std::function<bool(std::string_view)>& is_key);
  // Events in it.
  uint64_t total() const;

  bool empty() const {
    return entries_.empty() && other_.count == 0 && other_.bytes == 0;
  }
  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view KeyOf(const Entry& entry) const {
    return {keys_.get() + entry.key_offset, entry.key_size};
  }
  // What belongs to no key that is there.
  const Counts& Other() const { return other_; }
  // Bytes it has taken.
  size_t footprint() const;

  // Adds the histogram of an entry, or of Other(), to `sum`, one number a
  // bucket: kHistogramBuckets of them.
  void AddHistogram(HistogramKind kind, const Entry& entry,
                    std::vector<uint64_t>* sum) const;
  void AddOtherHistogram(HistogramKind kind, std::vector<uint64_t>* sum) const;

 private:
  // Histograms are kept in pieces, and only those that have something.
  static constexpr size_t kPieceBuckets = 32;
  static constexpr size_t kPieces = tally::kHistogramBuckets / kPieceBuckets;
  using Piece = std::array<uint64_t, kPieceBuckets>;
  using PieceIndex = std::array<uint16_t, kPieces>;  // 0 = none
  struct Layout;

  static Layout LayOut(const KeyCountsOptions& options);
  uint64_t Hash(std::string_view key) const;
  bool has(HistogramKind kind) const { return indexes_[kind] != nullptr; }
  uint32_t Find(std::string_view key, uint64_t hash) const;
  // The place of a key that has room for it and `pieces` more pieces.
  size_t FindOrMake(std::string_view key, uint64_t missed, size_t pieces);
  bool HasRoom(size_t key_bytes, size_t pieces) const;
  void Shed();
  void MoveToOther(size_t entry);
  bool LoadEntry(ByteCursor& saved,
                 const std::function<bool(std::string_view)>& is_key);
  bool LoadAll(ByteCursor& saved,
               const std::function<bool(std::string_view)>& is_key);
  uint64_t& Bucket(HistogramKind kind, size_t entry, uint16_t bucket);
  size_t PiecesOf(size_t entry) const;

  const uint64_t seed_;
  size_t capacity_;
  std::vector<Entry> entries_;
  HashIndex places_;  // in entries_; never grows
  // One behind the other, in the order of entries_.
  std::unique_ptr<char[]> keys_;
  size_t key_bytes_ = 0;
  size_t keys_used_ = 0;
  // One for each place in entries_; null where there is no such histogram.
  std::array<std::unique_ptr<PieceIndex[]>, kHistogramKinds> indexes_;
  std::unique_ptr<Piece[]> pieces_;  // the first one is not used
  size_t piece_count_ = 0;
  std::vector<uint16_t> free_pieces_;
  // Taken off all weights so far: no key that is not there had more.
  uint64_t shed_ = 0;
  std::vector<uint64_t> weights_;  // scratch of Shed
  Counts other_;
  std::array<std::vector<uint64_t>, kHistogramKinds> other_histograms_;
};

}  // namespace tracefs
