// The one open-addressing table: HashTable has the slots, and HashIndex, which
// most use, numbers of things that lie elsewhere.
//
// Linear probing, at most two thirds full. Whoever hashes what others may
// choose mixes a seed into the hash: the table does not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tracefs {

// A slot that equals Slot() is free. Places hold until something is put in or
// taken out. Used by one thread.
template <typename Slot>
class HashTable {
 public:
  // Has room for `count` from the start.
  explicit HashTable(size_t count = 0) : slots_(SlotsFor(count)) {}

  // The place of the slot that `is`, or the free one where it would go.
  template <typename Is>
  size_t Find(uint64_t hash, Is is) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at] != Slot() && !is(slots_[at])) at = (at + 1) & mask;
    return at;
  }
  bool IsFree(size_t place) const { return slots_[place] == Slot(); }
  const Slot& At(size_t place) const { return slots_[place]; }
  // Only what changes no hash.
  Slot& At(size_t place) { return slots_[place]; }
  // Where Find begins.
  const Slot& FirstFor(uint64_t hash) const {
    return slots_[hash & (slots_.size() - 1)];
  }

  // Whether PutIn would make the table larger, which moves all.
  bool IsFull() const { return 3 * (size_ + 1) > 2 * slots_.size(); }
  // Into a free place that Find gave. `hash_of(slot)`: of what is there.
  template <typename HashOf>
  void PutIn(size_t place, const Slot& slot, HashOf hash_of) {
    if (IsFull()) {
      Grow(hash_of);
      place = FreeFor(hash_of(slot));
    }
    slots_[place] = slot;
    ++size_;
  }
  template <typename HashOf>
  void TakeOut(size_t place, HashOf hash_of) {
    // A free slot ends the search: those that would be cut off move up.
    const size_t mask = slots_.size() - 1;
    for (size_t next = (place + 1) & mask; !IsFree(next);
         next = (next + 1) & mask) {
      const size_t home = hash_of(slots_[next]) & mask;
      if (((next - home) & mask) < ((next - place) & mask)) continue;
      slots_[place] = slots_[next];
      place = next;
    }
    slots_[place] = Slot();
    --size_;
  }
  // Keeps its room.
  void Clear() {
    std::fill(slots_.begin(), slots_.end(), Slot());
    size_ = 0;
  }

  size_t size() const { return size_; }
  // Taken and free ones.
  const std::vector<Slot>& slots() const { return slots_; }
  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  static constexpr size_t SlotsFor(size_t count) {
    return std::bit_ceil(count + count / 2 + 2);
  }
  size_t FreeFor(uint64_t hash) const {
    return Find(hash, [](const Slot&) { return false; });
  }
  template <typename HashOf>
  void Grow(HashOf hash_of) {
    const std::vector<Slot> old = std::exchange(
        slots_, std::vector<Slot>(std::max<size_t>(64, 2 * slots_.size())));
    for (const Slot& slot : old) {
      if (slot != Slot()) slots_[FreeFor(hash_of(slot))] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two
  size_t size_ = 0;
};

// Numbers, by the hash of what they stand for; of a hash its low 32 bits count.
// Used by one thread.
class HashIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit HashIndex(size_t count = 0) : table_(count) {}

  // kNone: it is not there. `is(number)`, which is asked of those with the same
  // hash only: whether that is the one.
  template <typename Is>
  uint32_t Find(uint64_t hash, Is is) const {
    return table_.At(PlaceOf(hash, is)).number();
  }
  // `fresh`, which is added, where it is not there.
  template <typename Is>
  uint32_t FindOrAdd(uint64_t hash, uint32_t fresh, Is is) {
    const size_t place = PlaceOf(hash, is);
    const uint32_t number = table_.At(place).number();
    if (number != kNone) return number;
    table_.PutIn(place, Slot(hash, fresh), HashOf);
    return fresh;
  }
  // What is not there yet.
  void Add(uint64_t hash, uint32_t number) {
    FindOrAdd(hash, number, [](uint32_t) { return false; });
  }
  // What is there.
  void Remove(uint64_t hash, uint32_t number) {
    table_.TakeOut(PlaceOf(hash, [=](uint32_t n) { return n == number; }),
                   HashOf);
  }
  // The same thing has another number now.
  void Renumber(uint64_t hash, uint32_t from, uint32_t to) {
    table_.At(PlaceOf(hash, [=](uint32_t n) { return n == from; })) =
        Slot(hash, to);
  }
  // Keeps its room.
  void Clear() { table_.Clear(); }

  // Large tables are far from the processor: told some time before that `hash`
  // is looked for. Then, once that has come, the number that it most likely
  // finds, or kNone.
  void Fetch(uint64_t hash) const {
    __builtin_prefetch(&table_.FirstFor(hash));
  }
  uint32_t Guess(uint64_t hash) const {
    const Slot& slot = table_.FirstFor(hash);
    return slot.hash == static_cast<uint32_t>(hash) ? slot.number() : kNone;
  }

  size_t size() const { return table_.size(); }
  size_t bytes() const { return table_.bytes(); }
  // The most that `count` take.
  static constexpr size_t MostBytesFor(size_t count) {
    return 3 * count * sizeof(Slot);
  }

 private:
  // With the hash: where it differs, nothing else is looked at.
  struct Slot {
    uint32_t taken = 0;  // number + 1; 0: free
    uint32_t hash = 0;

    Slot() = default;
    Slot(uint64_t h, uint32_t number)
        : taken(number + 1), hash(static_cast<uint32_t>(h)) {}
    uint32_t number() const { return taken - 1; }  // kNone if it is free
    bool operator==(const Slot& other) const { return taken == other.taken; }
  };
  static uint64_t HashOf(const Slot& slot) { return slot.hash; }
  template <typename Is>
  size_t PlaceOf(uint64_t hash, Is is) const {
    const auto low = static_cast<uint32_t>(hash);
    return table_.Find(low, [&](const Slot& slot) {
      return slot.hash == low && is(slot.number());
    });
  }

  HashTable<Slot> table_;
};

}  // namespace tracefs
