// What drivers whose receiver acknowledges have in common: options that say how
// much waits for it, where, and for how long.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "config/config.h"
#include "config/shared_options.h"
#include "drivers/output/feed/option.h"
#include "drivers/output/remote/remote.h"
#include "drivers/output/rows.h"
#include "tracefs/base/clock.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {

inline constexpr OptionRow kUnbufferedOption = {.name = "unbuffered"};
inline constexpr OptionRow kWhenFullOption = {.name = "when_full",
                                              .type = ValueType::kChoice,
                                              .words = kPolicyWords,
                                              .word_with_text = "spill"};
inline constexpr OptionRow kMaxOption = {.name = "max",
                                         .type = ValueType::kSize,
                                         .min = uint64_t{8} << 20,
                                         .max = uint64_t{1} << 50};
inline constexpr OptionRow kTimeoutOption = {.name = "timeout",
                                             .type = ValueType::kDuration,
                                             .min = kNsPerSecond,
                                             .max = 600 * kNsPerSecond};

// With which the list of each of them ends.
inline constexpr std::array kWaitingOptions = {
    kBufOption,      kUnbufferedOption, kWhenFullOption,
    kDeadlineOption, kMaxOption,        kQueueOption,
    kTimeoutOption,  kRetryOption,      kFeedOption};
// That list: those of its own, then these.
template <size_t N>
constexpr auto WithWaitingOptions(const OptionRow (&own)[N]) {
  std::array<OptionRow, N + kWaitingOptions.size()> all;
  std::copy(kWaitingOptions.begin(), kWaitingOptions.end(),
            std::copy(std::begin(own), std::end(own), all.begin()));
  return all;
}

// Brokers are for many hosts, whose users should not notice one that is away:
// without a word on it nobody waits for them.
inline LossPolicy WaitingPolicy(const ConfigEntry& entry) {
  const bool broker = entry.name == "nats" || entry.name == "kafka";
  return PolicyOf(entry, broker ? LossPolicy::kDrop : LossPolicy::kBlock);
}
inline bool Spills(const ConfigEntry& entry) {
  return WaitingPolicy(entry) == LossPolicy::kSpill;
}
// What a driver needs to connect: `connection`, and where blocks spill another
// one for what is left over, with the directory.
inline std::vector<Wish> WaitingWishes(const ConfigEntry& entry,
                                       const std::vector<Wish>& connection) {
  std::vector<Wish> wishes = connection;
  if (!Spills(entry)) return wishes;
  wishes.insert(wishes.end(), connection.begin(), connection.end());
  wishes.push_back({.path = entry.Find("when_full")->value.argument,
                    .kind = Wish::Kind::kDirectory});
  return wishes;
}

// Which of these options go together.
Status CheckWaiting(const ConfigEntry& entry);
// Whether the spill directory, if there is to be one, can be used.
Status ProbeWaiting(const ConfigEntry& entry);
// What they say, but for the spill directory.
RemoteOptions WaitingOf(const ConfigEntry& entry);
// Opens it, or takes it from `given`.
Status OpenSpill(const ConfigEntry& entry, Given* given,
                 RemoteOptions* options);

}  // namespace tracefs
