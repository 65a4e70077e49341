// AccessPattern: where in their files reads and writes go, and how large they
// are.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::report {

// Used by one thread.
class AccessPattern {
 public:
  // Of a read or a write, seen from the one of its kind before it in the same
  // open file.
  enum class Class : uint8_t { kFirst, kConsecutive, kForward, kBackward };
  static constexpr size_t kClasses = 4;
  static constexpr std::array<const char*, kClasses> kClassNames = {
      "first", "consecutive", "forward", "backward"};
  enum Direction : uint8_t { kRead = 0, kWrite = 1 };

  struct Moved {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  struct OneWay {
    std::array<Moved, kClasses> by_class{};
    std::array<uint64_t, 65> by_size{};  // by the bits of the size asked for
    uint64_t unaligned = 0;              // offset or size no multiple of 4096
    std::unordered_map<uint64_t, uint64_t> exact;  // size asked for, count
    uint64_t other_sizes = 0;  // operations whose size is not in `exact`
  };

  // Any operation, in order of time. `trace`: handles of traces differ.
  void Take(const Event& event, size_t trace);
  const OneWay& way(Direction direction) const { return ways_[direction]; }
  // The most frequent sizes, most frequent first, the smaller one of equals.
  std::vector<std::pair<uint64_t, uint64_t>> CommonSizes(Direction direction,
                                                         size_t most) const;
  // How often all that was known of open files had to be forgotten.
  uint64_t forgotten() const { return forgotten_; }

 private:
  void TakeTransfer(const Event& event, const tally::Transfer& transfer,
                    size_t trace);

  static constexpr size_t kMaxOpen = 65536;
  static constexpr size_t kMaxExact = 4096;
  static constexpr uint64_t kNowhere = UINT64_MAX;
  struct Open {
    std::array<uint64_t, 2> next = {kNowhere, kNowhere};
  };

  std::array<OneWay, 2> ways_{};
  std::unordered_map<uint64_t, Open> open_;  // by handle
  uint64_t forgotten_ = 0;
};

}  // namespace tracefs::report
