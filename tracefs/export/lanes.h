// Lanes: threads, as formats see them whose calls lie in each other. The kernel
// may send operations of one thread that overlap otherwise, as when it reads
// ahead: those get a further lane of the same thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tracefs {

// Used by one thread.
class Lanes {
 public:
  // Threads that are remembered; then all are forgotten.
  static constexpr size_t kMaxThreads = 100'000;

  // The lane, from 0 on, of the thread in which an operation from `begin` to
  // `end` lies in those around it or beside them. In order of their begins.
  size_t Find(uint64_t thread, uint64_t begin, uint64_t end) {
    if (threads_.size() >= kMaxThreads) threads_.clear();
    std::vector<std::vector<uint64_t>>& lanes = threads_[thread];
    for (size_t i = 0;; ++i) {
      if (i == lanes.size()) lanes.emplace_back();
      std::vector<uint64_t>& ends = lanes[i];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      if (!ends.empty() && ends.back() < end) continue;
      ends.push_back(end);
      return i;
    }
  }

 private:
  // For each lane the ends of the operations it is in, outermost first.
  std::unordered_map<uint64_t, std::vector<std::vector<uint64_t>>> threads_;
};

}  // namespace tracefs
