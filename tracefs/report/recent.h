// Recent: nodes that were found for a few numbers before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/report/name_tree.h"

namespace tracefs::report {

// What finds no room takes that of another. Used by one thread.
class Recent {
 public:
  explicit Recent(size_t size) : slots_(size) {}
  // Null: not remembered.
  NodeId* Find(NodeId a, uint64_t b, NodeId c) {
    Slot& slot = slots_[Index(a, b, c)];
    return slot.used && slot.a == a && slot.b == b && slot.c == c ? &slot.node
                                                                  : nullptr;
  }
  void Keep(NodeId a, uint64_t b, NodeId c, NodeId node) {
    slots_[Index(a, b, c)] = {a, c, b, node, true};
  }
  void Clear() { slots_.assign(slots_.size(), {}); }

 private:
  struct Slot {
    NodeId a = 0;
    NodeId c = 0;
    uint64_t b = 0;
    NodeId node = 0;
    bool used = false;
  };
  size_t Index(NodeId a, uint64_t b, NodeId c) const {
    const uint64_t hash =
        (a * 0x9e3779b97f4a7c15u ^ c * 0xc2b2ae3d27d4eb4fu ^ b) *
        0xff51afd7ed558ccdu;
    return static_cast<size_t>(hash >> 40) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;  // a power of two
};

}  // namespace tracefs::report
