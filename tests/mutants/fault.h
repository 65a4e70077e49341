// Included by each file with faults: scripts/mutate puts it there, in its copy.
//
// TRACEFS_FAULT=N switches fault N on. TRACEFS_FAULT_REACH=FILE notes in byte N
// of FILE that the place of fault N was reached.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <type_traits>
#include <utility>

struct TracefsFaults {
  long on = -1;
  unsigned char* reached = nullptr;
  long size = 0;

  TracefsFaults() {
    if (const char* text = std::getenv("TRACEFS_FAULT")) on = std::atol(text);
    const char* path = std::getenv("TRACEFS_FAULT_REACH");
    if (path == nullptr) return;
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    struct stat st;
    if (::fstat(fd, &st) == 0) {
      void* map = ::mmap(nullptr, static_cast<std::size_t>(st.st_size),
                         PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (map != MAP_FAILED) {
        reached = static_cast<unsigned char*>(map);
        size = static_cast<long>(st.st_size);
      }
    }
    ::close(fd);
  }
};

inline TracefsFaults tracefs_faults;

[[gnu::noinline, gnu::cold]] inline void tracefs_fault_reached(long number) {
  if (number < tracefs_faults.size) tracefs_faults.reached[number] = 1;
}

inline bool tracefs_fault(long number) {
  if (tracefs_faults.reached != nullptr) tracefs_fault_reached(number);
  return tracefs_faults.on == number;
}

// One more, of the same type.
template <typename T>
T tracefs_moved(T value) {
  return static_cast<T>(value + 1);
}

// An R that has a value: of a result or an optional.
template <typename R>
R tracefs_value() {
  return R(std::remove_cvref_t<decltype(*std::declval<R&>())>{});
}
