// AggregateQueue: keeps what was counted until the operations before it have
// been listed. Blocks are read a little before their operations are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tracefs/format/aggregate.h"

namespace tracefs {

// Used by one thread.
class AggregateQueue {
 public:
  using Use = std::function<void(const format::AggregateRecord&)>;

  // Keeps a copy.
  void Add(const format::AggregateRecord& record);
  // Hands out, in order of their ends, what ended at or before `until_ns`
  // (since the epoch); and what is more than the queue is to hold.
  void TakeUntil(uint64_t until_ns, const Use& use);

 private:
  // Records of 100 keys and a minute of periods a second, say.
  static constexpr size_t kMaxKept = 10000;

  struct Kept {
    format::AggregateRecord record;
    std::deque<std::string> texts;  // what its key points to
  };
  std::deque<Kept> kept_;  // in order of their ends
};

}  // namespace tracefs
