// RandomEvent: an operation with any subset of fields, for property tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tracefs/event/event.h"

namespace tracefs::test {

// Owns the memory of the event's texts. Not movable: the event points into it.
struct RandomEvent {
  // Each numeric field is present with a probability of one half, its value
  // being any its width in the trace can hold. Texts are any bytes but NUL,
  // without '/' where they are names.
  RandomEvent(std::mt19937_64& random, Op op, uint64_t time_ns);
  RandomEvent(const RandomEvent&) = delete;
  RandomEvent& operator=(const RandomEvent&) = delete;

  Event event;
  std::string name, new_name, target, xattr_name, data;
};

std::string RandomBytes(std::mt19937_64& random, size_t max_size, bool name);

CallerInfo RandomCaller(std::mt19937_64& random);

}  // namespace tracefs::test
