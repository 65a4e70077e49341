#include "drivers/output/lasting_parts.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tracefs/survive/area.h"

namespace tracefs {

using survive::Area;

struct LastingParts::Place {
  static constexpr size_t kMostHead =
      Area::kBlockBytes - kMost * sizeof(Part) - sizeof(uint64_t);
  uint64_t head_bytes;
  std::array<Part, kMost> parts;
  std::array<char, kMostHead> head;
};

bool LastingParts::Make(uint64_t* memory) {
  static_assert(sizeof(Place) <= Area::kBlockBytes);
  Area* const area = Area::OfProcess();
  void* const place = area == nullptr ? nullptr : area->TakeBlock();
  if (place == nullptr) return false;
  *memory = area->Hold(place) + 1;
  place_ = static_cast<Place*>(place);
  place_->head_bytes = 0;
  return true;
}

bool LastingParts::Find(uint64_t memory) {
  Area* const area = Area::OfProcess();
  if (area == nullptr || memory == 0) return false;
  place_ = static_cast<Place*>(area->Held(memory - 1));
  return place_ != nullptr;
}

void LastingParts::Note(uint64_t part, const Part& what) {
  place_->parts[part % kMost] = what;
}

LastingParts::Part LastingParts::Get(uint64_t part) const {
  return place_->parts[part % kMost];
}

bool LastingParts::NoteHead(std::string_view head) {
  if (head.size() > place_->head.size()) return false;
  std::memcpy(place_->head.data(), head.data(), head.size());
  place_->head_bytes = head.size();
  return true;
}

std::string_view LastingParts::head() const {
  return {place_->head.data(),
          std::min<size_t>(place_->head_bytes, place_->head.size())};
}

}  // namespace tracefs
