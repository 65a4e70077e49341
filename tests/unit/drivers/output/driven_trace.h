// DrivenTrace: a small trace, block by block, to be given to an output driver,
// and what reading a file of it finds.
#pragma once

#include <string>
#include <vector>

#include "tracefs/format/report.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// Begin times of its operations are 1, 2, 3, … above a fixed one, so that what
// was read tells which they were.
class DrivenTrace {
 public:
  // `blocks` besides START and FINAL, with `events` operations each.
  DrivenTrace(size_t blocks, size_t events, const std::string& chain = "file");

  TraceIdentity Identity(BlockLost lost = nullptr) const;
  size_t size() const { return frames_.size(); }
  // Gives one block to the driver.
  Status Write(OutputDriver& driver, size_t block, uint32_t source = 1) const;
  // Initialize, all blocks, Flush, Release; expects no failure.
  void WriteAll(OutputDriver& driver) const;

  // The trace as one file.
  std::string Bytes() const;
  const std::string& preamble() const { return preamble_; }
  const std::string& frame(size_t block) const { return frames_[block]; }

 private:
  size_t events_;
  std::string preamble_;
  std::vector<std::string> frames_;
};

// What a reader finds in a file, or in files that follow each other.
struct ReadBack {
  std::vector<uint64_t> numbers = {};  // of the operations: 1, 2, …
  format::ReadStats stats = {};
  std::string reports = {};  // one a line
  std::string error = {};    // why nothing could be read
};
ReadBack ReadFiles(const std::vector<std::string>& paths);
ReadBack ReadBytes(const std::string& bytes);

// first, first + 1, …, last
std::vector<uint64_t> Range(uint64_t first, uint64_t last);

}  // namespace tracefs
