// The option `feed` of output drivers (config/REFERENCE.md, "Feeds").
#ifndef DRIVERS_OUTPUT_FEED_OPTION_H_
#define DRIVERS_OUTPUT_FEED_OPTION_H_

#include <string_view>

#include "config/config.h"

namespace tracefs {

inline constexpr std::string_view kFeeds[] = {"native", "ocsf", "ecs", "cef"};
inline constexpr OptionRow kFeedOption = {
    .name = "feed", .type = ValueType::kChoice, .words = kFeeds};

// The feed an entry asks for: "ocsf", …; "" for native.
inline std::string_view FeedOf(const ConfigEntry& entry) {
  const ConfigOption* const feed = entry.Find("feed");
  if (feed == nullptr) return entry.name == "syslog" ? "cef" : "";
  if (feed->value.text == "native") return {};
  return feed->value.text;
}

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_FEED_OPTION_H_
