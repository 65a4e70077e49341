#include "tracefs/format/frame_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tracefs {

// The header is whole.
Status FrameParser::TakeHeader() {
  have_ = 0;
  const format::FrameFault fault = check_.Begin(header_);
  const format::FrameHeader& frame = check_.header();
  if (fault == format::FrameFault::kSerial) {
    return Status::Corrupt("block " + std::to_string(frame.sequence) +
                           " is of another trace");
  }
  if (fault != format::FrameFault::kNone) {
    return Status::Corrupt("after block " + std::to_string(next_) +
                           " comes no frame");
  }
  if (frame.payload_bytes + header_.size() > max_frame_) {
    return Status::Invalid("block " + std::to_string(frame.sequence) + " has " +
                           std::to_string(frame.payload_bytes) +
                           " bytes, the limit is " +
                           std::to_string(max_frame_));
  }
  // What follows it has no number, nor have acknowledgements of it.
  if (frame.sequence == std::numeric_limits<uint64_t>::max()) {
    return Status::Corrupt("a block has the highest of all numbers");
  }
  skip_ = frame.sequence < next_;
  in_payload_ = true;
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
  while (at < bytes.size() || (in_payload_ && check_.left() == 0)) {
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
    at +=
        skip_ ? check_.Pass(bytes.size() - at) : check_.Add(bytes.subspan(at));
    if (skip_) run = at;
    if (check_.left() != 0) break;
    in_payload_ = false;
    if (skip_) {
      continue;
    }
    if (!check_.good()) {
      put(run + whole);
      return Status::Corrupt(
          "block " + std::to_string(check_.header().sequence) + " is damaged");
    }
    next_ = check_.header().sequence + 1;
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
