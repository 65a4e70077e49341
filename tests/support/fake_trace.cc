#include "tests/support/fake_trace.h"

#include <array>

#include "tracefs/base/bytes.h"
#include "tracefs/format/frame.h"

namespace tracefs::test {

FakeTrace::FakeTrace(uint8_t serial, size_t payload_bytes)
    : payload_bytes_(payload_bytes) {
  serial_.fill(std::byte{serial});
  preamble_ = format::EncodePreamble({.serial = serial_, .chain = "test"});
}

TraceIdentity FakeTrace::identity() const {
  TraceIdentity identity;
  identity.serial = serial_;
  identity.preamble = preamble_;
  return identity;
}

std::string FakeTrace::Payload(uint64_t sequence) const {
  std::string text = "block " + std::to_string(sequence) + ' ';
  while (text.size() < payload_bytes_) text += text;
  text.resize(payload_bytes_);
  return text;
}

std::string FakeTrace::Header(uint64_t sequence) const {
  std::array<std::byte, format::kFrameHeaderBytes> header;
  format::EncodeFrameHeader(header, {.sequence = sequence, .serial = serial_},
                            AsBytes(Payload(sequence)));
  return std::string(AsText(header));
}

std::string FakeTrace::File(uint64_t end) const {
  std::string file = preamble_;
  for (uint64_t i = 0; i < end; ++i) file += Frame(i);
  return file;
}

std::string FakeTrace::FileName() const {
  return "ip-127.0.0.1." + SerialFileName();
}

std::string FakeTrace::SerialFileName() const {
  return format::SerialText(serial_) + ".trace";
}

Status FakeTrace::WriteTo(OutputDriver& driver, uint64_t sequence,
                          bool last) const {
  const std::string header = Header(sequence);
  const std::string payload = Payload(sequence);
  return driver.Write(AsBytes(header), AsBytes(payload),
                      {.sequence = sequence, .events = 1, .last = last});
}

}  // namespace tracefs::test
