// Lanes: which thread of the replay does what a recorded thread did. One each,
// while there are enough; threads that fell silent give theirs to new ones.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tracefs::replay {

// Used by one thread.
class Lanes {
 public:
  // At most so many; at least 1.
  explicit Lanes(uint32_t most) : most_(most) {}

  // The lane of an operation of thread `tid`, from `begin_ns` to `end_ns`.
  // Operations come in order of their begin.
  uint32_t Of(uint32_t tid, uint64_t begin_ns, uint64_t end_ns);
  uint32_t count() const { return static_cast<uint32_t>(busy_until_.size()); }

 private:
  struct Thread {
    uint32_t lane;
    uint64_t last_ns;
  };
  uint32_t Choose(uint64_t begin_ns);
  void ForgetOld();

  const uint32_t most_;
  std::vector<uint64_t> busy_until_;  // by lane
  std::unordered_map<uint32_t, Thread> threads_;
};

}  // namespace tracefs::replay
