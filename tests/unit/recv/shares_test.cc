// Who has how much, who makes room for whom: against what the headers promise,
// worked out the slow way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tracefs/recv/room.h"
#include "tracefs/recv/sender_shares.h"

namespace tracefs {
namespace {

const std::vector<std::string> kSenders = {
    "cn-a",        "cn-b.c",     "uid-1000", "ip-10.0.0.7",
    "ip-10.0.0.8", "host=web\"", ""};

TEST(SenderSharesTest, AddUpAsASlowModelDoes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    SenderShares shares;
    std::map<std::string, uint64_t> model;
    for (int step = 0; step < 40; ++step) {
      const std::string& sender = kSenders[random() % kSenders.size()];
      const uint64_t amount = random() % 50;
      if (random() % 2 == 0) {
        shares.Add(sender, amount);
        model[sender] += amount;
      } else {
        shares.Take(sender, amount);
        model[sender] -= std::min(amount, model[sender]);
      }
      uint64_t total = 0;
      uint64_t of_addresses = 0;
      size_t proven = 0;
      size_t addresses = 0;
      for (const auto& [name, has] : model) {
        total += has;
        if (IsProvenSender(name)) {
          proven += has != 0;
        } else {
          of_addresses += has;
          addresses += has != 0;
        }
        EXPECT_EQ(shares.Of(name), has);
      }
      EXPECT_EQ(shares.total(), total);
      EXPECT_EQ(shares.of_addresses(), of_addresses);
      constexpr uint64_t kLimit = 100'000;
      EXPECT_EQ(shares.ShareOfAddresses(kLimit), kLimit / (proven + 1));
      for (const std::string& name : kSenders) {
        const size_t fresh = model[name] == 0 ? 1 : 0;
        // All who are known by an address alone share one share.
        const uint64_t expected =
            IsProvenSender(name)
                ? kLimit / (proven + fresh + (addresses != 0 ? 1 : 0))
                : kLimit / (proven + 1) / (addresses + fresh);
        EXPECT_EQ(shares.Share(kLimit, name), expected) << name;
      }
    }
  }
}

// 0: nobody may go.
uint64_t SlowChoice(const std::map<uint64_t, Place>& places,
                    uint64_t newcomer) {
  const Place guest = places.contains(newcomer) ? places.at(newcomer) : Place();
  const auto count_of = [&](const std::string& peer) {
    return std::ranges::count_if(
        places, [&](const auto& place) { return place.second.peer == peer; });
  };
  // The oldest of those with most connections, among some.
  const auto most = [&](const std::set<uint64_t>& among) -> uint64_t {
    uint64_t chosen = 0;
    for (const uint64_t id : among) {  // oldest first
      if (chosen == 0 ||
          count_of(places.at(id).peer) > count_of(places.at(chosen).peer)) {
        chosen = id;
      }
    }
    return chosen;
  };
  std::set<uint64_t> silent;
  std::set<uint64_t> strangers;
  std::set<uint64_t> known;
  const auto own = count_of(guest.peer);
  for (const auto& [id, place] : places) {
    if (id == newcomer) continue;
    const bool more = count_of(place.peer) > own;
    if (!place.sent) silent.insert(id);
    if (!place.known && (guest.known || more)) strangers.insert(id);
    if (more) known.insert(id);
  }
  if (!silent.empty()) return most(silent);
  if (!strangers.empty()) return most(strangers);
  return guest.known ? most(known) : 0;
}

TEST(RoomTest, IsMadeByWhoShouldMakeIt) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::map<uint64_t, Place> places;
    std::map<std::string, bool> known;
    const uint64_t count = random() % 9;
    for (uint64_t id = 1; id <= count; ++id) {
      const std::string peer = "p" + std::to_string(random() % 4);
      const bool is_known =
          known.try_emplace(peer, random() % 2 == 0).first->second;
      places[id] = {.peer = peer, .known = is_known, .sent = random() % 4 != 0};
    }
    const uint64_t newcomer = count == 0 ? 1 : 1 + random() % count;
    ASSERT_EQ(WhoMakesRoom(places, newcomer), SlowChoice(places, newcomer))
        << round;
  }
}

}  // namespace
}  // namespace tracefs
