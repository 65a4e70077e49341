#include "filters/input/name_table.h"

#include <bit>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"

namespace tracefs {

struct NameTable::Handle::Entry {
  Key key;
  std::shared_ptr<const TextMatcher> matcher;
  uint64_t bit = 0;
  uint32_t since = 0;
  size_t references = 0;  // guarded by the table's mutex_
};

namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

// The exact predicates on one kind of text: one look-up answers all of them.
struct ExactIndex {
  struct Bits {
    uint64_t any_of = 0;   // predicates whose list has the text
    uint64_t none_of = 0;  // likewise
  };
  std::unordered_map<std::string, Bits, TextHash, std::equal_to<>> texts;
  uint64_t all_none_of = 0;

  void Add(const TextMatch& match, uint64_t bit) {
    const bool any_of = match.kind == TextMatch::Kind::kAnyOf;
    if (!any_of) all_none_of |= bit;
    for (const std::string& text : match.texts) {
      Bits& bits = texts[text];
      (any_of ? bits.any_of : bits.none_of) |= bit;
    }
  }

  uint64_t Find(std::string_view text) const {
    if (text.empty() || texts.empty()) return 0;
    const auto found = texts.find(text);
    if (found == texts.end()) return all_none_of;
    return found->second.any_of | (all_none_of & ~found->second.none_of);
  }
};

}  // namespace

// What Match needs; immutable.
struct NameTable::Index {
  ExactIndex names;
  ExactIndex extensions;
  struct Pattern {
    std::shared_ptr<const TextMatcher> matcher;
    uint64_t bit;
  };
  std::vector<Pattern> patterns;
};

uint64_t NameTable::Handle::bit() const { return entry_->bit; }
uint32_t NameTable::Handle::since() const { return entry_->since; }
const std::shared_ptr<const TextMatcher>& NameTable::Handle::matcher() const {
  return entry_->matcher;
}

NameTable::NameTable() : index_(std::make_unique<const Index>()) {}
NameTable::~NameTable() = default;

NameTable::Handle NameTable::Register(Field field, const TextMatch& match) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Handle::Entry>& slot = entries_[{field, match}];
  if (slot == nullptr) {
    slot = std::make_unique<Handle::Entry>();
    slot->key = {field, match};
    slot->matcher = TextMatcher::Make(field, match);
    const uint64_t free = ~used_bits_;
    // After four thousand million changes generations would repeat themselves;
    // without a bit a predicate is slower and right.
    if (free != 0 && generation_.load(std::memory_order_relaxed) !=
                         std::numeric_limits<uint32_t>::max()) {
      slot->bit = uint64_t{1} << std::countr_zero(free);
      used_bits_ |= slot->bit;
      PublishIndex();
      // After the index, so that whoever sees the generation sees it, too.
      slot->since = generation_.fetch_add(1, std::memory_order_release) + 1;
    }
  }
  ++slot->references;
  return Handle(this, slot.get());
}

void NameTable::Release(Handle::Entry* entry) {
  const std::lock_guard lock(mutex_);
  if (--entry->references > 0) return;
  const uint64_t bit = entry->bit;
  // A copy: the key must not be destroyed while it is searched for.
  entries_.erase(Key(entry->key));
  if (bit == 0) return;
  used_bits_ &= ~bit;
  PublishIndex();  // the same generation: nobody looks at the bit any more
}

void NameTable::PublishIndex() {
  auto index = std::make_unique<Index>();
  for (const auto& [key, entry] : entries_) {
    if (entry->bit == 0) continue;
    if (key.second.kind == TextMatch::Kind::kGlob) {
      index->patterns.push_back({entry->matcher, entry->bit});
    } else if (key.first == Field::kExt) {
      index->extensions.Add(key.second, entry->bit);
    } else {
      index->names.Add(key.second, entry->bit);
    }
  }
  index_.Publish(std::move(index));
}

uint64_t NameTable::Match(std::string_view name) const {
  const auto index = index_.Read();
  uint64_t bits = index->names.Find(name);
  if (!index->extensions.texts.empty()) {
    bits |= index->extensions.Find(ExtensionOf(name));
  }
  for (const Index::Pattern& pattern : index->patterns) {
    if (pattern.matcher->Matches(name)) bits |= pattern.bit;
  }
  return bits;
}

size_t NameTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace tracefs
