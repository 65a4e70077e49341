// Feeds: operations as events of formats that security tools read, one line
// each. Used by output drivers (`feed = ocsf`), and by tracefs-dump.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tracefs/format/record.h"

namespace tracefs {

// What was not kept, as it is told to a feed.
struct FeedLoss {
  uint64_t real_ns = 0;  // when it was told
  uint64_t count = 0;
  std::string_view reason;
  const format::TraceContext* trace = nullptr;
};

// Used by one thread. Lines have no line end, and none within. Names that are
// not UTF-8 are written with \xNN for their bytes.
class FeedFormat {
 public:
  virtual ~FeedFormat() = default;
  virtual void Append(const format::Record& record, std::string* line) = 0;
  virtual void AppendLoss(const FeedLoss& loss, std::string* line) = 0;
  // A rule fired.
  virtual void AppendAlarm(const format::AlarmRecord& alarm,
                           std::string* line) = 0;
};

// OCSF 1.3.0, classes 1001 File System Activity and, of alarms, 2004 Detection
// Finding, as JSON.
std::unique_ptr<FeedFormat> MakeOcsfFeed();
// Elastic Common Schema 8.17, events of category "file" and, of alarms, of kind
// "alert", as JSON.
std::unique_ptr<FeedFormat> MakeEcsFeed();
// ArcSight Common Event Format, version 0.
std::unique_ptr<FeedFormat> MakeCefFeed();

// Every feed: a word of the option `feed` of output drivers, and a format of
// tracefs-dump. A new one is a new row.
struct FeedRow {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<FeedFormat> (*make)();
  bool json = true;
};
inline constexpr FeedRow kFeeds[] = {
    {"ocsf", "OCSF 1.3.0, File System Activity, as JSON Lines", &MakeOcsfFeed},
    {"ecs", "Elastic Common Schema 8.17, as JSON Lines", &MakeEcsFeed},
    {"cef", "ArcSight Common Event Format", &MakeCefFeed, false},
};
// Null if there is none of that name.
std::unique_ptr<FeedFormat> MakeFeedFormat(std::string_view name);

}  // namespace tracefs
