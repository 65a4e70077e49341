// Feeds: operations as events of formats that security tools read, one line
// each. Used by output drivers (`feed = ocsf`), and by tracefs-dump.
#ifndef TRACEFS_EXPORT_FEED_H_
#define TRACEFS_EXPORT_FEED_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/export/exporter.h"
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

// "ocsf", "ecs", "cef".
std::span<const std::string_view> FeedNames();
// Null if there is none of that name.
std::unique_ptr<FeedFormat> MakeFeedFormat(std::string_view name);

// The same as formats of tracefs-dump.
std::unique_ptr<Exporter> MakeOcsfExporter(OutputBuffer& out,
                                           const ExportOptions& options);
std::unique_ptr<Exporter> MakeEcsExporter(OutputBuffer& out,
                                          const ExportOptions& options);
std::unique_ptr<Exporter> MakeCefExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs

#endif  // TRACEFS_EXPORT_FEED_H_
