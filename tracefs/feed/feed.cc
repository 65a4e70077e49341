#include "tracefs/feed/feed.h"

namespace tracefs {
std::unique_ptr<FeedFormat> MakeFeedFormat(std::string_view name) {
  for (const FeedRow& feed : kFeeds) {
    if (feed.name == name) return feed.make();
  }
  return nullptr;
}

}  // namespace tracefs
