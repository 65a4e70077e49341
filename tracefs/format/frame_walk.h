// FrameWalk: where the frames of a trace are in a stream of bytes that may be
// cut, damaged, hostile or still growing. Where bytes are not a frame it finds
// the next one. What frames say, their numbers and kinds, is for FrameReader.
//
// Memory: at most four frames of the largest size, and never more than about
// four times what the input really held. Time: linear in the input, whatever
// it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/window_crc.h"

namespace tracefs::format {

class FrameWalk {
 public:
  // Counts into `bytes_read`, which outlives the walk. follow: the end of the
  // input may be none.
  FrameWalk(std::unique_ptr<ByteSource> source, bool follow,
            uint64_t* bytes_read)
      : source_(std::move(source)), follow_(follow), bytes_read_(bytes_read) {}

  // Only frames of that trace count from now on.
  void SetSerial(const Serial& serial) { check_ = FrameCheck(serial); }

  // What is held of the input from offset() on; valid until the next call.
  ByteSpan window() const {
    return ByteSpan(buffer_).subspan(begin_, end_ - begin_);
  }
  uint64_t offset() const { return offset_; }
  // Makes the window at least `n` bytes long if the input has them.
  Result<bool> Fill(size_t n);
  // Goes on by `n` bytes, which the window has.
  void Consume(size_t n);

  // Goes on at another place of the input, which has a Size.
  Status Jump(uint64_t offset);
  ByteSource& source() { return *source_; }

  // What the window begins with.
  enum class Find {
    kFrame,  // a whole frame
    kCut,    // fewer bytes than a frame has, or than this one claims
    kNone,   // no frame
  };
  Result<Find> Look(FrameHeader* header);
  // Passes over bytes, which Look found to be no frame, to where the next one
  // may begin. False where the input ends before.
  bool Skip(Find found);

  // A range of bytes that were passed over begins here, if there is none yet.
  void BeginDamage(Find found, std::string_view why);
  bool in_damage() const { return damage_.has_value(); }
  struct Damage {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    bool cut = false;  // what it begins with claims to be longer than the rest
    std::string_view why;
  };
  // The range ends here.
  std::optional<Damage> TakeDamage();

  bool follow() const { return follow_; }
  // From now on the end of the input is the end.
  void Stop();
  // What ByteSource says of the input.
  bool WriterLives() const { return source_->WriterLives(); }
  // What is held, and giving it back where nothing is in it.
  size_t memory_bytes() const { return buffer_.capacity(); }
  void ReleaseMemory();

 private:
  const std::unique_ptr<ByteSource> source_;
  bool follow_;
  uint64_t* const bytes_read_;
  FrameCheck check_;

  // buffer_[begin_, end_) are the bytes from offset_ of the input on.
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  bool source_ended_ = false;

  std::optional<Damage> damage_;
  std::string_view why_none_;  // of the last Look that said kNone
  WindowCrc window_crc_;       // while there is damage
};

}  // namespace tracefs::format
