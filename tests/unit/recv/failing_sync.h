// A disk that takes nothing for a while: fdatasync and syncfs of this program
// fail, as the kernel says it once and then no more.
#pragma once

#include <atomic>

namespace tracefs::test {

// So many of the next calls fail with EIO.
extern std::atomic<int> failing_syncs;

}  // namespace tracefs::test
