#include "tracefs/query/group_store.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tracefs/base/bytes.h"

namespace tracefs::query {
namespace {

// Names in a trace come from anyone, who must not be able to predict
// collisions. Which keys are kept does not depend on it.
uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
    seed = reinterpret_cast<uintptr_t>(&seed);
  }
  return seed;
}

uint64_t HashOf(std::string_view key, uint64_t seed) {
  uint64_t hash = seed ^ key.size();
  while (key.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, key.data(), 8);
    hash = MixedHash(hash ^ word);
    key.remove_prefix(8);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, key.data(), key.size());
  return MixedHash(hash ^ rest);
}

// What a key takes besides its bytes.
constexpr size_t kEntryBytes =
    sizeof(GroupStore::Entry) + HashIndex::MostBytesFor(1);
constexpr uint64_t kCheckEvery = 4096;

}  // namespace

GroupStore::GroupStore(size_t memory_bytes, bool details)
    : memory_bytes_(memory_bytes), details_(details), seed_(RandomSeed()) {}

size_t GroupStore::BytesOf(const Entry& entry) const {
  return kEntryBytes + (entry.key.size() > 15 ? entry.key.size() + 17 : 0) +
         (entry.details == nullptr
              ? 0
              : sizeof(TallyDetails) + 16 + entry.details->bytes());
}

uint64_t GroupStore::Hash(std::string_view key) const {
  return HashOf(key, seed_);
}

void GroupStore::FetchSlot(uint64_t hash) const { places_.Fetch(hash); }

void GroupStore::FetchEntry(uint64_t hash) const {
  const uint32_t place = places_.Guess(hash);
  if (place != HashIndex::kNone) FetchPlace(place, /*soon=*/false);
}

void GroupStore::FetchPlace(size_t place, bool soon) const {
  const Entry& it = entries_[place];
  if (soon) return __builtin_prefetch(it.key.data());
  const auto* const entry = reinterpret_cast<const char*>(&it);
  // Entries are longer than what comes at a time.
  for (size_t at = 0; at < sizeof(Entry); at += 64) {
    __builtin_prefetch(entry + at);
  }
}

size_t GroupStore::Find(std::string_view key, uint64_t hash) {
  const auto is = [&](uint32_t place) { return entries_[place].key == key; };
  const uint32_t known = places_.Find(hash, is);
  if (known != HashIndex::kNone) return known;
  if (key_bytes_ + kEntryBytes + key.size() > memory_bytes_) Shed();
  places_.Add(hash, static_cast<uint32_t>(entries_.size()));
  Entry& entry = entries_.emplace_back();
  entry.hash = hash;
  entry.missed = shed_;
  entry.key = key;
  if (details_) entry.details = std::make_unique<TallyDetails>();
  key_bytes_ += BytesOf(entry);
  return entries_.size() - 1;
}

void GroupStore::CheckRoom() {
  if (!details_ || ++checked_ % kCheckEvery != 0) return;
  // What all have grown to: seldom, as it goes through all of them.
  if (checked_ % (kCheckEvery * (1 + entries_.size() / 1024)) != 0) return;
  key_bytes_ = 0;
  for (const Entry& entry : entries_) key_bytes_ += BytesOf(entry);
  while (key_bytes_ > memory_bytes_ && entries_.size() > 1) Shed();
}

void GroupStore::Shed() {
  if (on_full_) {
    on_full_(entries_);
    return Clear();
  }
  ++generation_;
  std::vector<uint64_t> weights;
  weights.reserve(entries_.size());
  for (Entry& entry : entries_) {
    // Weights count what came since the key did, less what was taken off.
    weights.push_back(entry.tally.count - entry.weight);
  }
  const auto middle =
      weights.begin() + static_cast<ptrdiff_t>(weights.size() / 2);
  std::nth_element(weights.begin(), middle, weights.end());
  const uint64_t median = weights.empty() ? 0 : *middle;
  // In their place: there is no room for two of them.
  size_t kept = 0;
  key_bytes_ = 0;
  for (Entry& entry : entries_) {
    if (entry.tally.count - entry.weight <= median) {
      other_.Add(entry.tally);
      if (entry.details != nullptr) other_details_.Add(*entry.details);
      ++other_keys_;
      continue;
    }
    entry.weight += median;
    key_bytes_ += BytesOf(entry);
    if (Entry& place = entries_[kept++]; &place != &entry) {
      place = std::move(entry);
    }
  }
  shed_ += median;
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(kept),
                 entries_.end());
  places_.Clear();
  for (size_t i = 0; i < entries_.size(); ++i) {
    places_.Add(entries_[i].hash, static_cast<uint32_t>(i));
  }
}

void GroupStore::Clear() {
  ++generation_;
  entries_.clear();
  key_bytes_ = 0;
  places_.Clear();
}

}  // namespace tracefs::query
