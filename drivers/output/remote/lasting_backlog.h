// A backlog that a later process finds again (tracefs/survive/area.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/output/remote/backlog.h"
#include "tracefs/survive/area.h"

namespace tracefs {

// Frames are sent only from Commit on: what a later process would write once
// more, with another content, must not be with the receiver.
class LastingBacklog final : public Backlog {
 public:
  // Of the tracer with that id. `area` outlives this.
  LastingBacklog(survive::Area& area, uint32_t owner)
      : area_(area), owner_(owner) {}

  // Takes what an earlier process has left of the blocks below `next`. Once,
  // before anything else.
  void TakeLeft(uint64_t next);
  // kSystem ENOBUFS where there is no room in that memory.
  Status Append(ByteSpan header, ByteSpan payload,
                const BlockInfo& info) override;
  // All that was appended will not be written once more.
  void Commit();
  // What is left will never be sent.
  void GiveUp();
  uint64_t bytes() const override { return bytes_; }
  bool persistent() const override { return false; }

 protected:
  void Forget(const Frame& frame) override;
  void Shrink() override;

 private:
  struct Place;
  struct Record;
  struct Used {
    Place* place = nullptr;
    size_t frames = 0;  // that are still needed
  };

  Place* TakePlace();
  void GivePlace(Place* place);
  static Frame FrameOf(Record& record);
  Used* UsedFor(const void* at);

  survive::Area& area_;
  const uint32_t owner_;
  std::vector<Used> places_;  // the last is being filled
  std::vector<Frame> appended_;
  uint64_t bytes_ = 0;
};

}  // namespace tracefs
