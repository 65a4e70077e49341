// Traces from the bytes of a fuzzer. The first byte says which, so that
// mutations get past the CRC: 'R', a trace whose CRCs are put right first; 'B',
// the messages of a block; anything else belongs to a trace as it is.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/trace_builder.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/format/frame.h"

namespace tracefs::fuzz {

using namespace format;  // NOLINT: for fuzz targets

// Puts right what it can: the CRC of the preamble and of each frame that lies
// where the one before it ends.
inline void Repair(std::string& trace) {
  if (trace.size() < 12) return;
  auto* const bytes = reinterpret_cast<std::byte*>(trace.data());
  size_t at = LoadLe<uint32_t>(bytes + 8);
  if (at < kMinPreambleBytes || at > trace.size()) return;
  StoreLe<uint32_t>(bytes + at - 4, Crc32c({bytes, at - 4}));
  while (trace.size() - at >= kFrameHeaderBytes) {
    FrameHeader header;
    const std::span<std::byte, kFrameHeaderBytes> head(bytes + at,
                                                       kFrameHeaderBytes);
    if (!DecodeFrameHeader(head, &header)) return;
    at += kFrameHeaderBytes;
    if (header.payload_bytes > trace.size() - at) return;
    StoreLe<uint32_t>(bytes + at - 4,
                      FrameCrc(head, {bytes + at, header.payload_bytes}));
    at += header.payload_bytes;
  }
}

inline std::string MakeTrace(std::string_view input) {
  std::string rest(input.substr(input.empty() ? 0 : 1));
  if (input.starts_with('R')) {
    Repair(rest);
    return rest;
  }
  if (!input.starts_with('B')) return std::string(input);
  test::TraceBuilder trace;
  trace.AddBytes(rest);
  trace.EndBlock();
  trace.AddBytes(rest);
  trace.Finish();
  return trace.bytes();
}

}  // namespace tracefs::fuzz
