// PathMemo: what somebody found for a path, remembered by the numbers that the
// block of an operation has for it: most operations are about a path that was
// seen before, and making the text of a path costs more than all else.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"

namespace tracefs::format {

// Used by one thread. Memory: a value for each path that the last few blocks
// define, and for kNamed names in directories.
template <typename Value>
class PathMemo {
 public:
  // What is remembered of the path of an operation, as PathOf has it: Value()
  // at first, and whenever it was forgotten. Null: its block has no number for
  // that path. Good until the next call.
  Value* Of(const Record& record) {
    const Event& event = record.event;
    if (record.HasText(Field::kPath)) return nullptr;
    if (event.parent != 0) return &At(record, event.parent, event.name);
    return event.node != 0 ? &At(record, event.node, {}) : nullptr;
  }
  // Of a path id of its block.
  Value& OfPath(const Record& record, uint64_t path_id) {
    return At(record, path_id, {});
  }
  // What was remembered is no longer true.
  void Clear() { blocks_ = {}; }

 private:
  static constexpr size_t kBlocks = 4;  // whose operations alternate
  static constexpr size_t kNamed = 1024;
  struct Block {
    uint64_t number = 0;  // in the order in which they came; 0: none
    const BlockDecoder* decoder = nullptr;
    const TraceContext* trace = nullptr;
    uint64_t sequence = 0;
    uint64_t offset = 0;
    std::vector<Value> values;  // by path id
  };
  // A name in a directory; what finds no room takes that of another.
  struct Named {
    uint64_t block = 0;
    uint64_t parent = 0;
    std::string_view name;  // in the block, which may be gone
    Value value{};
  };

  static bool IsOf(const Block& block, const Record& record) {
    return block.decoder == record.block && block.trace == record.trace &&
           block.sequence == record.block->sequence() &&
           block.offset == record.block->offset();
  }
  Block& BlockOf(const Record& record) {
    if (IsOf(blocks_[last_], record)) return blocks_[last_];
    for (size_t i = 0; i < kBlocks; ++i) {
      if (IsOf(blocks_[i], record)) return blocks_[last_ = i];
    }
    last_ = next_++ % kBlocks;
    Block& block = blocks_[last_];
    block.number = ++numbers_;
    block.decoder = record.block;
    block.trace = record.trace;
    block.sequence = record.block->sequence();
    block.offset = record.block->offset();
    block.values.clear();
    return block;
  }

  // Where names differ most: at their ends.
  static uint64_t HashOf(uint64_t parent, std::string_view name) {
    uint64_t first = 0;
    uint64_t last = 0;
    const size_t size = name.size() < 8 ? name.size() : 8;
    std::memcpy(&first, name.data(), size);
    std::memcpy(&last, name.data() + name.size() - size, size);
    const uint64_t mixed = (first ^ last * 0x9e3779b97f4a7c15u ^
                            parent * 0xc2b2ae3d27d4eb4fu ^ name.size()) *
                           0xff51afd7ed558ccdu;
    return mixed >> 32;
  }

  Value& At(const Record& record, uint64_t id, std::string_view name) {
    Block& block = BlockOf(record);
    if (name.empty()) {
      // Ids are checked: there are as many as the block defines.
      if (id >= block.values.size()) block.values.resize(id + 1);
      return block.values[id];
    }
    if (named_.empty()) named_.resize(kNamed);
    Named& named = named_[HashOf(id, name) % kNamed];
    if (named.block != block.number || named.parent != id ||
        named.name != name) {
      named = {.block = block.number, .parent = id, .name = name};
    }
    return named.value;
  }

  std::array<Block, kBlocks> blocks_;
  size_t last_ = 0;
  size_t next_ = 0;
  uint64_t numbers_ = 0;
  std::vector<Named> named_;
};

}  // namespace tracefs::format
