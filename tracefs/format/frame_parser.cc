#include "tracefs/format/frame_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tracefs/base/crc32c.h"

namespace tracefs {

// Of a header that is whole.
Status FrameParser::TakeHeader() {
  have_ = 0;
  if (!format::DecodeFrameHeader(header_, &frame_)) {
    return Status::Corrupt("behind block " + std::to_string(next_) +
                           " comes no frame");
  }
  if (frame_.serial != serial_) {
    return Status::Corrupt("block " + std::to_string(frame_.sequence) +
                           " is of another trace");
  }
  if (frame_.payload_bytes + header_.size() > max_frame_) {
    return Status::Invalid("block " + std::to_string(frame_.sequence) +
                           " has " + std::to_string(frame_.payload_bytes) +
                           " bytes, the limit is " +
                           std::to_string(max_frame_));
  }
  // What follows it has no number, nor have acknowledgements of it.
  if (frame_.sequence == std::numeric_limits<uint64_t>::max()) {
    return Status::Corrupt("a block has the highest of all numbers");
  }
  skip_ = frame_.sequence < next_;
  in_payload_ = true;
  left_ = frame_.payload_bytes;
  crc_ = Crc32c(ByteSpan(header_).first(header_.size() - 4));
  return Status::Ok();
}

Status FrameParser::Feed(ByteSpan bytes, std::vector<Piece>* pieces) {
  size_t at = 0;
  size_t run = 0;    // what is to be kept begins here
  size_t whole = 0;  // so many bytes of it are whole frames
  const auto put = [&](size_t end) {
    if (end > run)
      pieces->push_back({bytes.subspan(run, end - run), whole, next_});
    whole = 0;
  };
  while (at < bytes.size() || (in_payload_ && left_ == 0)) {
    if (!in_payload_) {
      const bool split = have_ != 0 || bytes.size() - at < header_.size();
      const size_t taken = std::min(header_.size() - have_, bytes.size() - at);
      std::memcpy(header_.data() + have_, bytes.data() + at, taken);
      if (split) put(at);
      have_ += taken;
      if (have_ < header_.size()) return Status::Ok();
      if (Status s = TakeHeader(); !s.ok()) {
        if (!split) put(run + whole);
        return s;
      }
      if (!split && skip_) put(at);
      at += taken;
      if (split && !skip_) {
        split_header_ = header_;
        pieces->push_back({split_header_, 0, next_});
      }
      if (split || skip_) run = at;
    }
    const size_t taken = std::min<size_t>(left_, bytes.size() - at);
    if (!skip_) crc_ = Crc32c(bytes.subspan(at, taken), crc_);
    at += taken;
    left_ -= static_cast<uint32_t>(taken);
    if (skip_) run = at;
    if (left_ != 0) break;
    in_payload_ = false;
    if (skip_) {
      ++skipped_;
      continue;
    }
    if (crc_ != frame_.crc) {
      put(run + whole);
      return Status::Corrupt("block " + std::to_string(frame_.sequence) +
                             " is damaged");
    }
    next_ = frame_.sequence + 1;
    whole = at - run;
    // A header that was split is a piece of its own: with an empty payload
    // nothing follows that could say that it is whole.
    if (at == run) pieces->back().whole = pieces->back().bytes.size();
    if (at == run) pieces->back().next = next_;
  }
  put(bytes.size());
  return Status::Ok();
}

}  // namespace tracefs
