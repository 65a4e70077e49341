#include "tracefs/survive/kept_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>

namespace tracefs::survive {
namespace {

// At the beginning of a place; its part of the text follows.
struct Place {
  static constexpr uint64_t kMagic = 0x317478657474706b;  // "kpttext1"
  uint64_t magic;
  uint64_t bytes;
  uint64_t next;  // the number of the next place, plus 1; 0: there is none

  char* text() { return reinterpret_cast<char*>(this + 1); }
};
constexpr size_t kRoom = Area::kBlockBytes - sizeof(Place);

// The places of a text, from the first on, as far as they are right.
std::vector<Place*> PlacesOf(Area& area, uint64_t word) {
  std::vector<Place*> places;
  for (size_t i = 0; word != 0 && i <= kMostKeptBytes / kRoom; ++i) {
    auto* const place = static_cast<Place*>(area.Held(word - 1));
    if (place == nullptr || place->magic != Place::kMagic ||
        place->bytes > kRoom) {
      break;
    }
    places.push_back(place);
    word = place->next;
  }
  return places;
}

void Release(Area& area, uint64_t word) {
  for (Place* const place : PlacesOf(area, word)) area.Release(place);
}

}  // namespace

Status KeepText(Area& area, std::atomic<uint64_t>& word,
                std::string_view text) {
  const Status full = Status::System(
      ENOBUFS, "no memory that survives the daemon for what a later one needs");
  if (text.size() > kMostKeptBytes) return full;
  const size_t count = std::max<size_t>(1, (text.size() + kRoom - 1) / kRoom);
  // The last one first: each knows where the next is.
  uint64_t next = 0;
  for (size_t i = count; i-- > 0;) {
    void* const memory = area.TakeBlock();
    if (memory == nullptr) {
      Release(area, next);
      return full;
    }
    const std::string_view part = text.substr(i * kRoom, kRoom);
    auto* const place = static_cast<Place*>(memory);
    place->bytes = part.size();
    place->next = next;
    // Before it is held: what is, and has no name, is found by this.
    place->magic = Place::kMagic;
    const uint64_t number = area.Hold(memory);
    if (!part.empty()) std::memcpy(place->text(), part.data(), part.size());
    next = number + 1;
  }
  Release(area, word.exchange(next));
  return Status::Ok();
}

std::optional<std::string> KeptText(Area& area, uint64_t word) {
  const std::vector<Place*> places = PlacesOf(area, word);
  if (places.empty() || places.back()->next != 0) return std::nullopt;
  std::string text;
  for (Place* const place : places) {
    text.append(place->text(), std::min<size_t>(place->bytes, kRoom));
  }
  return text;
}

void ForgetText(Area& area, std::atomic<uint64_t>& word) {
  Release(area, word.exchange(0));
}

void ForgetLostTexts(Area& area,
                     const std::vector<std::atomic<uint64_t>*>& words) {
  std::unordered_set<const void*> known;
  for (const std::atomic<uint64_t>* const word : words) {
    for (const Place* const place : PlacesOf(area, word->load())) {
      known.insert(place);
    }
  }
  area.ForEachHeld([&](void* memory) {
    if (static_cast<const Place*>(memory)->magic == Place::kMagic &&
        !known.contains(memory)) {
      area.Release(memory);
    }
  });
}

}  // namespace tracefs::survive
