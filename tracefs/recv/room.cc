#include "tracefs/recv/room.h"

namespace tracefs {
namespace {

// The oldest of the peer with most connections among those that `may`; 0 if
// there is none with more than `than`.
template <typename May>
uint64_t OfTheMost(const std::map<uint64_t, Place>& places, size_t than,
                   May may) {
  std::map<std::string, size_t> count;
  for (const auto& [id, place] : places) ++count[place.peer];
  uint64_t chosen = 0;
  for (const auto& [id, place] : places) {
    const size_t n = count[place.peer];
    if (!may(id, place) || n <= than) continue;
    than = n;
    chosen = id;
  }
  return chosen;
}

}  // namespace

uint64_t WhoMakesRoom(const std::map<uint64_t, Place>& places,
                      uint64_t newcomer) {
  const auto found = places.find(newcomer);
  const Place guest = found == places.end() ? Place{} : found->second;
  const uint64_t silent =
      OfTheMost(places, 0, [&](uint64_t id, const Place& place) {
        return id != newcomer && !place.sent;
      });
  if (silent != 0) return silent;
  size_t own = 0;
  for (const auto& [id, place] : places) own += place.peer == guest.peer;
  const uint64_t stranger = OfTheMost(places, guest.known ? 0 : own,
                                      [&](uint64_t id, const Place& place) {
                                        return id != newcomer && !place.known;
                                      });
  if (stranger != 0 || !guest.known) return stranger;
  return OfTheMost(places, own,
                   [&](uint64_t id, const Place&) { return id != newcomer; });
}

}  // namespace tracefs
