#include "drivers/output/remote/backlog.h"

#include <cstring>

namespace tracefs {
namespace {

class MemoryBacklog final : public Backlog {
 public:
  Status Append(ByteSpan header, ByteSpan payload,
                const BlockInfo& info) override {
    Frame frame{.bytes = header.size() + payload.size(), .info = info};
    frame.memory.reset(new std::byte[frame.bytes]);
    std::memcpy(frame.memory.get(), header.data(), header.size());
    if (!payload.empty()) {
      std::memcpy(frame.memory.get() + header.size(), payload.data(),
                  payload.size());
    }
    bytes_ += frame.bytes;
    frames_.push_back(std::move(frame));
    return Status::Ok();
  }
  uint64_t bytes() const override { return bytes_; }
  bool persistent() const override { return false; }

 protected:
  void Forget(const Frame& frame) override { bytes_ -= frame.bytes; }

 private:
  uint64_t bytes_ = 0;
};

}  // namespace

size_t Backlog::DropBefore(uint64_t next) {
  size_t dropped = 0;
  while (!frames_.empty() && frames_.front().info.sequence < next) {
    Forget(frames_.front());
    frames_.pop_front();
    ++dropped;
  }
  if (dropped != 0) Shrink();
  return dropped;
}

void Backlog::Drop(size_t index) {
  Forget(frames_[index]);
  frames_.erase(frames_.begin() + static_cast<ptrdiff_t>(index));
  Shrink();
}

std::unique_ptr<Backlog> MakeMemoryBacklog() {
  return std::make_unique<MemoryBacklog>();
}

}  // namespace tracefs
