#include "drivers/output/remote/lasting_backlog.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace tracefs {

using survive::Area;

namespace {

constexpr uint64_t kMagic = 0x31676f6c6b636162;  // "backlog1"
constexpr size_t kAlignment = 8;

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// A frame follows.
struct LastingBacklog::Record {
  uint64_t bytes;
  BlockInfo info;
  std::atomic<uint32_t> done;  // it is not needed any more

  std::byte* frame() { return reinterpret_cast<std::byte*>(this + 1); }
};

// Records follow, one after the other.
struct LastingBacklog::Place {
  uint64_t magic;
  uint64_t owner;
  std::atomic<uint64_t> used;  // bytes, of whole records

  std::byte* begin() { return reinterpret_cast<std::byte*>(this + 1); }
  static constexpr size_t kRoom =
      Area::kBlockBytes - sizeof(uint64_t) * 2 - sizeof(std::atomic<uint64_t>);
};

LastingBacklog::Place* LastingBacklog::TakePlace() {
  void* const memory = area_.TakeBlock();
  if (memory == nullptr) return nullptr;
  auto* const place = static_cast<Place*>(memory);
  place->used.store(0);
  place->owner = owner_;
  place->magic = kMagic;
  area_.Hold(place);
  places_.push_back({.place = place});
  return place;
}

void LastingBacklog::GivePlace(Place* place) { area_.Release(place); }

Backlog::Frame LastingBacklog::FrameOf(Record& record) {
  Frame frame{.bytes = record.bytes, .info = record.info};
  frame.memory = std::unique_ptr<std::byte[], FrameDelete>(record.frame(),
                                                           FrameDelete{false});
  return frame;
}

LastingBacklog::Used* LastingBacklog::UsedFor(const void* at) {
  const auto found = std::ranges::find_if(places_, [&](const Used& used) {
    const auto* const begin = reinterpret_cast<const std::byte*>(used.place);
    return at >= begin && at < begin + Area::kBlockBytes;
  });
  return found == places_.end() ? nullptr : &*found;
}

void LastingBacklog::TakeLeft(uint64_t next) {
  std::vector<Frame> left;
  area_.ForEachHeld([&](void* memory) {
    auto* const place = static_cast<Place*>(memory);
    if (place->magic != kMagic || place->owner != owner_) return;
    Used& used = places_.emplace_back(Used{.place = place});
    const size_t end = std::min<size_t>(place->used.load(), Place::kRoom);
    for (size_t at = 0; at + sizeof(Record) <= end;) {
      auto* const record = reinterpret_cast<Record*>(place->begin() + at);
      if (record->bytes > end - at - sizeof(Record)) break;
      at += Aligned(sizeof(Record) + record->bytes);
      if (record->done.load() != 0) continue;
      if (record->info.sequence >= next) {
        record->done.store(1);
        continue;
      }
      ++used.frames;
      left.push_back(FrameOf(*record));
    }
  });
  std::ranges::sort(left, {},
                    [](const Frame& frame) { return frame.info.sequence; });
  for (Frame& frame : left) {
    bytes_ += frame.bytes;
    frames_.push_back(std::move(frame));
  }
  Shrink();
}

Status LastingBacklog::Append(ByteSpan header, ByteSpan payload,
                              const BlockInfo& info) {
  const size_t bytes = header.size() + payload.size();
  const size_t needed = Aligned(sizeof(Record) + bytes);
  Place* place = places_.empty() ? nullptr : places_.back().place;
  if (place == nullptr || place->used.load() + needed > Place::kRoom) {
    place = needed > Place::kRoom ? nullptr : TakePlace();
  }
  if (place == nullptr) {
    return Status::System(
        ENOBUFS, "no memory that survives the daemon for a block that waits");
  }
  const size_t at = place->used.load();
  auto* const record = reinterpret_cast<Record*>(place->begin() + at);
  record->bytes = bytes;
  record->info = info;
  record->done.store(0);
  std::memcpy(record->frame(), header.data(), header.size());
  if (!payload.empty()) {
    std::memcpy(record->frame() + header.size(), payload.data(),
                payload.size());
  }
  place->used.store(at + needed, std::memory_order_release);
  ++places_.back().frames;
  bytes_ += bytes;
  appended_.push_back(FrameOf(*record));
  return Status::Ok();
}

void LastingBacklog::GiveUp() {
  appended_.clear();
  frames_.clear();
  for (const Used& used : places_) GivePlace(used.place);
  places_.clear();
}

void LastingBacklog::Commit() {
  std::ranges::move(appended_, std::back_inserter(frames_));
  appended_.clear();
}

void LastingBacklog::Forget(const Frame& frame) {
  auto* const record = reinterpret_cast<Record*>(frame.memory.get()) - 1;
  record->done.store(1);
  bytes_ -= frame.bytes;
  if (Used* const used = UsedFor(record)) --used->frames;
}

void LastingBacklog::Shrink() {
  for (size_t i = 0; i + 1 < places_.size();) {
    if (places_[i].frames != 0) {
      ++i;
      continue;
    }
    GivePlace(places_[i].place);
    places_.erase(places_.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace tracefs
