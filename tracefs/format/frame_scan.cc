#include "tracefs/format/frame_scan.h"

#include <algorithm>
#include <limits>

#include "tracefs/base/file_io.h"

namespace tracefs::format {
namespace {

// Read at a time: headers with what stands between small ones, or a piece of a
// payload.
constexpr size_t kScanWindowBytes = size_t{16} << 10;

}  // namespace

Result<ByteSpan> FrameScan::Read(uint64_t at, size_t n) {
  if (at < window_at_ || at + n > window_at_ + window_.size()) {
    window_.resize(std::min<uint64_t>(kScanWindowBytes, size_ - at));
    window_at_ = at;
    if (!ReadAllAt(fd_, window_, at)) {
      window_.clear();
      return Status::System(EIO, "cannot read frames");
    }
  }
  return ByteSpan(window_).subspan(at - window_at_);
}

Result<FrameScan::Step> FrameScan::Next(bool check_payload) {
  if (at_ + kFrameHeaderBytes > size_) return Step::kCut;
  Result<ByteSpan> bytes = Read(at_, kFrameHeaderBytes);
  if (!bytes.ok()) return bytes.status();
  if (check_.Begin(bytes->first<kFrameHeaderBytes>()) != FrameFault::kNone ||
      check_.header().sequence < next_ ||
      // What follows it has no number.
      check_.header().sequence == std::numeric_limits<uint64_t>::max()) {
    return Step::kDamaged;
  }
  const uint64_t end = at_ + kFrameHeaderBytes + check_.left();
  if (end > size_) return Step::kCut;
  while (check_payload && check_.left() != 0) {
    bytes = Read(end - check_.left(), 1);
    if (!bytes.ok()) return bytes.status();
    check_.Add(*bytes);
  }
  if (check_payload && !check_.good()) return Step::kDamaged;
  at_ = end;
  next_ = check_.header().sequence + 1;
  return Step::kFrame;
}

Result<bool> FrameScan::Skip() {
  const std::string_view magic(kFrameMagic.data(), kFrameMagic.size());
  for (uint64_t at = at_ + 1; at + kFrameHeaderBytes <= size_;) {
    const Result<ByteSpan> bytes = Read(at, kFrameHeaderBytes);
    if (!bytes.ok()) return bytes.status();
    const size_t found = AsText(*bytes).find(magic);
    if (found != 0) {
      // The window may end within one.
      at += found != std::string_view::npos ? found
                                            : bytes->size() - magic.size() + 1;
      continue;
    }
    if (check_.Begin(bytes->first<kFrameHeaderBytes>()) == FrameFault::kNone &&
        check_.header().sequence >= next_ &&
        at + kFrameHeaderBytes + check_.left() <= size_) {
      at_ = at;
      return true;
    }
    ++at;
  }
  return false;
}

}  // namespace tracefs::format
