#include "filters/output/payload_filter.h"

#include <algorithm>

namespace tracefs {

size_t SmallerBlock(size_t a, size_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

Status PayloadFilter::Initialize(const TraceIdentity& identity) {
  if (Status s = Begin(identity); !s.ok()) return s;
  if (!HidesTimes()) return next_->Initialize(identity);
  TraceIdentity hidden = identity;
  hidden.hides_times = true;
  return next_->Initialize(hidden);
}

Status PayloadFilter::Write(ByteSpan block, const BlockInfo& info) {
  const Result<ByteSpan> payload = Encode(block, info);
  if (!payload.ok()) return payload.status();
  if (payload->size() > format::kMaxPayloadBytes) {
    return Status::Invalid("a block of " + std::to_string(block.size()) +
                           " bytes makes a payload beyond 64 MiB; set a "
                           "smaller block size");
  }
  Status written = next_->Write(*payload, info);
  if (written.ok()) Accepted(info);
  return written;
}

Status PayloadFilter::Release() {
  End();
  return next_->Release();
}

size_t PayloadFilter::PreferredBlockSize() const {
  return SmallerBlock(block_bytes_, next_->PreferredBlockSize());
}

}  // namespace tracefs
