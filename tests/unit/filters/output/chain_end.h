// ChainEnd: the end of a chain of output filters in tests. Keeps payloads, and
// fails when told to.
#pragma once

#include <cerrno>
#include <string>
#include <vector>

#include "filters/output/stage_decoder.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct Written {
  std::string payload;
  BlockInfo info;
};

// What a ChainEnd saw; outlives it.
struct ChainLog {
  std::vector<Written> written;
  std::vector<std::string> calls;  // but for Write
  int fail_writes = 0;             // this many, from now on
};

class ChainEnd final : public OutputFilter {
 public:
  explicit ChainEnd(ChainLog* log, size_t preferred = 0)
      : log_(log), preferred_(preferred) {}

  Status Initialize(const TraceIdentity&) override {
    log_->calls.push_back("initialize");
    return Status::Ok();
  }
  Status Write(ByteSpan block, const BlockInfo& info) override {
    if (log_->fail_writes > 0) {
      --log_->fail_writes;
      return Status::System(ENOSPC, "test output");
    }
    log_->written.push_back({std::string(AsText(block)), info});
    return Status::Ok();
  }
  Status Flush() override {
    log_->calls.push_back("flush");
    return Status::Ok();
  }
  Status Release() override {
    log_->calls.push_back("release");
    return Status::Ok();
  }
  size_t PreferredBlockSize() const override { return preferred_; }

 private:
  ChainLog* const log_;
  const size_t preferred_;
};

inline format::Serial TestSerial(uint8_t first = 0x10) {
  format::Serial serial;
  for (size_t i = 0; i < serial.size(); ++i) serial[i] = std::byte(first + i);
  return serial;
}

inline TraceIdentity TestIdentity() {
  return {.tracer_id = 1, .serial = TestSerial(), .preamble = "the preamble"};
}

// Blocks of several sizes and kinds: none, one byte, text, zeros, noise.
std::vector<std::string> SampleBlocks();

}  // namespace tracefs
