// Frames for who carries them without looking into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/format/constants.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs::test {

// A trace of frames with recognisable payloads; not messages of the format.
class FakeTrace {
 public:
  explicit FakeTrace(uint8_t serial = 1, size_t payload_bytes = 1000);

  const std::string& preamble() const { return preamble_; }
  const format::Serial& serial() const { return serial_; }
  TraceIdentity identity() const;
  // Frame n is the same whenever it is asked for.
  std::string Payload(uint64_t sequence) const;
  std::string Header(uint64_t sequence) const;
  std::string Frame(uint64_t sequence) const {
    return Header(sequence) + Payload(sequence);
  }
  // The file that holds the frames [0, end).
  std::string File(uint64_t end) const;
  // Its name at a receiver, for TCP, and what that ends with for all.
  std::string FileName() const;
  std::string SerialFileName() const;
  // Gives the frame to a driver, as framing does.
  Status WriteTo(OutputDriver& driver, uint64_t sequence,
                 bool last = false) const;

 private:
  format::Serial serial_{};
  size_t payload_bytes_;
  std::string preamble_;
};

}  // namespace tracefs::test
