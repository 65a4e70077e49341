// StraceFiles: the lines of what strace wrote, of one file or, with -ff, of one
// for each thread, in the order of their times.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/import/line_reader.h"

namespace tracefs::import {

struct StraceFile {
  // Gives a descriptor that can be read at any offset. Called again for each
  // time that the file is read.
  std::function<Result<UniqueFd>()> open;
  uint32_t tid = 0;  // whose calls they are, if the lines do not tell
};

// Used by one thread. Open are those files whose times have come, and that have
// more to tell, kMostOpen of them at most.
class StraceFiles {
 public:
  // Far less than the descriptors of a process as a rule.
  static constexpr size_t kMostOpen = 128;

  explicit StraceFiles(std::vector<StraceFile> files);
  ~StraceFiles();

  // Back to the begin.
  Status Rewind();
  // The next line without its end, good until the next call, and whose it is,
  // if its file tells. False at the end, and where a file cannot be read
  // (status()).
  bool Next(std::string_view* line, uint32_t* tid);
  // Lines that were longer than can be read, and are left out.
  uint64_t too_long() const { return too_long_; }
  const Status& status() const { return status_; }
  bool many() const { return files_.size() > 1; }

 private:
  struct Reading;

  bool Open(size_t index);
  void Close(size_t index);
  bool Advance(size_t index);
  void Push(uint64_t ns, size_t index);

  const std::vector<StraceFile> files_;
  std::vector<std::unique_ptr<Reading>> readings_;
  std::deque<size_t> open_;  // files, in the order of their opening
  // For each file: the place to resume at when it is opened; the time of its
  // next line, or of the one before if that has none; the first time in it.
  std::vector<uint64_t> resume_at_;
  std::vector<uint64_t> ns_;
  std::vector<uint64_t> first_ns_;
  // The next line of each file: its time, and whose; a heap.
  std::vector<std::pair<uint64_t, size_t>> next_;
  size_t last_ = SIZE_MAX;  // of which the last line was
  uint64_t too_long_ = 0;
  Status status_;
};

}  // namespace tracefs::import
