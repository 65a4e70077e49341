// NameMatcher: what the filters want to know of file names, as the file system
// sees it.
#pragma once

#include <cstdint>
#include <string_view>

namespace tracefs {

// Threads: any.
class NameMatcher {
 public:
  virtual ~NameMatcher() = default;

  // The name predicates (bit n: predicate n) that a file called `name`
  // satisfies. Takes no lock, allocates nothing.
  virtual uint64_t Match(std::string_view name) const = 0;

  // Grows whenever a predicate gets a bit; never 0. What Match says is at least
  // as new as a generation read before it; bits kept with an inode are stale
  // when it has changed.
  virtual uint32_t generation() const = 0;
};

}  // namespace tracefs
