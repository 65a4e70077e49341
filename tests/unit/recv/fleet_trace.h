// FleetTrace: a trace as a fleet's receiver gets it, block by block.
#pragma once

#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/recv/fleet/block.h"

namespace tracefs::test {

class FleetTrace {
 public:
  // `serial`: what its serial begins with; 0: any.
  explicit FleetTrace(size_t blocks = 6, uint16_t serial = 0) {
    if (serial != 0) StoreLe(trace_.serial().data(), serial);
    for (size_t i = 0; i < blocks; ++i) {
      trace_.DefinePath(0, "f" + std::to_string(i));
      trace_.EndBlock();
    }
    preamble_ = trace_.bytes().substr(0, trace_.frame_offsets()[0]);
  }

  const std::string& preamble() const { return preamble_; }
  const format::Serial& serial() { return trace_.serial(); }
  std::string Frame(size_t i) {
    const std::vector<size_t>& offsets = trace_.frame_offsets();
    const std::string& bytes = trace_.bytes();
    const size_t end = i + 1 < offsets.size() ? offsets[i + 1] : bytes.size();
    return bytes.substr(offsets[i], end - offsets[i]);
  }
  FleetBlock Block(size_t i, const std::string& day) {
    FleetBlock block;
    block.host = "web1";
    block.day = day;
    block.preamble = preamble_;
    block.chain = "file";
    block.frame = Frame(i);
    block.serial = serial();
    block.sequence = i;
    block.number = i;
    block.since = std::chrono::steady_clock::now();
    return block;
  }

 private:
  TraceBuilder trace_;
  std::string preamble_;
};

}  // namespace tracefs::test
