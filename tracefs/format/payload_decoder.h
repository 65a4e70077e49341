// PayloadDecoder: what undoes the output chain of a trace. The reader knows
// this interface only; who opens a trace supplies a factory that knows the
// output filters.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/frame.h"

namespace tracefs::format {

// Blocks stand alone, so a decoder keeps no state between them. Threads: one at
// a time.
class PayloadDecoder {
 public:
  virtual ~PayloadDecoder() = default;
  // Makes the block out of the payload of a frame, as `block`. Fails rather
  // than make more than kMaxPayloadBytes of it: the payload may be hostile.
  virtual Status Decode(const FrameHeader& header, ByteSpan payload,
                        std::vector<std::byte>* block) = 0;
};

// Makes the decoder for a chain text ("compress alg=zstd; file"). kInvalid, and
// the name of the stage in the message, if it cannot.
using PayloadDecoderFactory =
    std::function<Result<std::unique_ptr<PayloadDecoder>>(const Preamble&)>;

// Decodes chains without filters: those of a driver alone, which may be any.
Result<std::unique_ptr<PayloadDecoder>> MakePlainDecoder(
    const Preamble& preamble);

}  // namespace tracefs::format
