// The option `feed` of output drivers (config/REFERENCE.md, "Feeds").
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "config/config.h"
#include "tracefs/feed/feed.h"

namespace tracefs {

// "native", and all that tracefs/export knows.
inline constexpr auto kFeedWords = [] {
  std::array<std::string_view, 1 + std::size(kFeeds)> words = {"native"};
  std::transform(std::begin(kFeeds), std::end(kFeeds), words.begin() + 1,
                 [](const FeedRow& feed) { return feed.name; });
  return words;
}();
inline constexpr OptionRow kFeedOption = {
    .name = "feed",
    .alias = "format",  // as everywhere else
    .type = ValueType::kChoice,
    .words = kFeedWords};

// The feed an entry asks for: "ocsf", …; "" for native.
inline std::string_view FeedOf(const ConfigEntry& entry) {
  const std::string_view feed =
      entry.Text("feed", entry.name == "syslog" ? "cef" : "");
  return feed == "native" ? std::string_view() : feed;
}

}  // namespace tracefs
