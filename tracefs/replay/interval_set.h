// IntervalSet: which bytes of a file are known. Bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace tracefs::replay {

// Used by one thread.
class IntervalSet {
 public:
  static constexpr size_t kMost = 4096;

  // Adds [begin, end). Calls `fresh` with each part that was not there. False,
  // and nothing done, if there are too many pieces already.
  bool Add(uint64_t begin, uint64_t end,
           const std::function<void(uint64_t, uint64_t)>& fresh = nullptr);
  bool Covers(uint64_t begin, uint64_t end) const;
  // Whether any of [begin, end) is in it.
  bool Touches(uint64_t begin, uint64_t end) const;
  // Takes [begin, end) out; not from within a piece if there are too many.
  void Remove(uint64_t begin, uint64_t end);

 private:
  std::map<uint64_t, uint64_t> ends_;  // by begin; apart from each other
};

}  // namespace tracefs::replay
