// Progress: says on a terminal how far long work is, and how long it will still
// take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tracefs {

// "  42 % of 1.2 GiB, 12 s left": at most 60 characters. Nothing is said of the
// time left before it can be told.
std::string ProgressText(uint64_t done_bytes, uint64_t all_bytes,
                         uint64_t elapsed_ns);

// Used by one thread. Writes to standard error if that is a terminal, at most
// five times a second, and cleans up behind itself.
class Progress {
 public:
  // `traces`: what is read, as AddFiles takes them; none: nothing is said. Of
  // what is no regular file nothing can be said.
  explicit Progress(const std::vector<std::string>& traces);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  bool shown() const { return shown_; }
  void Tell(uint64_t done_bytes);
  // Makes room for something else that is to be said.
  void Hide();

 private:
  bool shown_ = false;
  bool told_ = false;
  uint64_t all_bytes_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t next_ns_ = 0;
};

}  // namespace tracefs
