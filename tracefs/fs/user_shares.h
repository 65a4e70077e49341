// UserShares: divides something scarce (descriptors, threads) so that no user
// can take all of it, and no number of users can take what root needs.
//
// An ordinary user may take more while holding less than is free: a single user
// gets half, two a third each, and there is always something left for the next
// one. Root may take whatever there is.
//
// Threads: any; no locks. Memory: fixed. Users beyond the first 1,021 share one
// count.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tracefs {

class UserShares {
 public:
  // `capacity`: how many there are; `for_root`: how many of them only root may
  // take.
  explicit UserShares(int capacity, int for_root = 0)
      : capacity_(capacity), for_root_(for_root) {}

  // False, and nothing is taken, if the user has his share.
  bool Take(uint32_t uid);
  // Takes one that the user had before: never refused.
  void TakeAgain(uint32_t uid);
  // Gives back one that was taken for that user.
  void Give(uint32_t uid);

  int capacity() const { return capacity_; }
  // What an ordinary user gets if no other has any.
  int largest_share() const { return (capacity_ - for_root_ + 1) / 2; }
  int used() const { return used_.load(std::memory_order_relaxed); }
  // How often Take said no.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct User {
    std::atomic<uint64_t> key{0};  // uid + 1; 0: free
    std::atomic<int> held{0};
  };
  User& Of(uint32_t uid);

  const int capacity_;
  const int for_root_;
  std::atomic<int> used_{0};
  std::atomic<uint64_t> refused_{0};
  std::array<User, 1021> users_;
  User others_;
};

}  // namespace tracefs
