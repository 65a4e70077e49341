// NameTable: the file-name cache of the paper (section 3 and figure 5), turned
// around. There, each name a filter asks for has a table of the inodes that
// satisfy it; here, each distinct name predicate of all filters has one of 64
// bits, and each inode keeps the bits it satisfies. A name node of a filter is
// then one load and one AND, filters that ask the same share a bit, and nothing
// has to be removed when an inode goes.
//
// Whoever keeps inodes (tracefs/fs) does this:
//   generation = table.generation()   first
//   bits = Match(name) of every name the file is known by, OR'ed (of a copy
//          both files)
// and puts both into the event, OR'ed with Match of the event's own `name` and
// `new_name`. Bits are stale when the generation has changed; a filter notices
// and asks the names themselves (EventResolver::ForEachName).
//
// A bit is never given to another predicate while a filter holds it, and a new
// holder knows since which generation its bit is right. Predicates beyond the
// 64 have no bit; filters answer them from the names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "filters/input/check.h"
#include "filters/input/snapshot.h"
#include "filters/input/text_matcher.h"
#include "tracefs/event/name_matcher.h"

namespace tracefs {

// One per process, and it outlives every filter compiled with it.
class NameTable final : public NameMatcher {
 public:
  static constexpr size_t kBits = 64;

  // Holds a registered predicate; the last one to go gives the bit back.
  class Handle {
   public:
    Handle(Handle&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), entry_(other.entry_) {}
    Handle& operator=(Handle&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Handle() {
      if (table_ != nullptr) table_->Release(entry_);
    }

    // The predicate's bit in Match() and Event::name_bits; 0 if it has none.
    uint64_t bit() const;
    // The first generation at which that bit means this predicate.
    uint32_t since() const;
    const std::shared_ptr<const TextMatcher>& matcher() const;

   private:
    friend class NameTable;
    struct Entry;
    Handle(NameTable* table, Entry* entry) : table_(table), entry_(entry) {}
    NameTable* table_;
    Entry* entry_;
  };

  NameTable();
  ~NameTable() override;  // no Handle may be left
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  // `field` is kName or kExt. Threads: any; takes a lock.
  Handle Register(Field field, const TextMatch& match);

  // NameMatcher:
  uint64_t Match(std::string_view name) const override;
  uint32_t generation() const override {
    return generation_.load(std::memory_order_acquire);
  }

  size_t size() const;  // distinct predicates, with and without a bit

 private:
  struct Index;
  using Key = std::pair<Field, TextMatch>;

  void Release(Handle::Entry* entry);
  void PublishIndex();  // mutex_ held

  mutable std::mutex mutex_;
  std::map<Key, std::unique_ptr<Handle::Entry>> entries_;  // guarded by mutex_
  uint64_t used_bits_ = 0;                                 // guarded by mutex_
  // Published under mutex_; read without.
  Snapshot<Index> index_;
  std::atomic<uint32_t> generation_{1};
};

}  // namespace tracefs
