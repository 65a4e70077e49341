// TraceSet: one or more traces, opened by name, and their operations in order
// of time. What every command, and the C interface, reads traces with.
//
//   TraceSet traces({.keys = keys});
//   traces.AddNamed({"trace.log"}, complain);     // or a folder, or "-"
//   auto filter = EventFilter::Compile("op = write", "--filter");
//   if (!filter.ok()) …
//   traces.SetFilter(*std::move(filter));
//   format::Record record;
//   while (traces.Next(&record) == format::ReadStep::kItem) …
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/output/key_ring.h"
#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/reader/event_filter.h"
#include "tracefs/reader/trace_files.h"
#include "tracefs/reader/trace_origins.h"
#include "tracefs/reader/watched_source.h"

namespace tracefs::reader {

// What is told about one trace while it is read; each may be empty.
struct TraceSinks {
  format::ReportSink report = nullptr;
  format::AggregateSink aggregate = nullptr;
  format::AlarmSink alarm = nullptr;
  format::StateSink state = nullptr;
  format::EmbeddedFileSink file = nullptr;
  format::ProcessRecordSink process = nullptr;  // of those in the range
};

// Until when blocks may tell of losses in a window: what is lost is told in a
// later block, which waits for the output as others do.
inline uint64_t EndOfLosses(const TimeWindow& window) {
  constexpr uint64_t kLateNs = 10'000'000'000;
  return window.to_ns > UINT64_MAX - kLateNs ? UINT64_MAX
                                             : window.to_ns + kLateNs;
}

// Used by one thread.
class TraceSet {
 public:
  struct Options {
    bool follow = false;
    size_t memory_bytes = format::TraceMerger::kDefaultMemoryBytes;
    std::shared_ptr<const KeyRing> keys = std::make_shared<KeyRing>();
    // What undoes output chains, if it is not to be what the keys allow.
    format::PayloadDecoderFactory decoder = nullptr;
    // Counts what is read, and may end it; outlives the set. May be null.
    Watch* watch = nullptr;
    // Asked for each trace when it is added; `trace` is its number.
    std::function<TraceSinks(size_t trace)> sinks = nullptr;
  };

  explicit TraceSet(Options options);

  // --- Before the first Next.

  // Adds what the names mean: files, "-" and what is in folders; the parts of a
  // rotated trace are one. Those that cannot be opened are reported to `fail`,
  // and the others are read.
  void AddNamed(const std::vector<std::string>& names,
                const std::function<void(const Status&)>& fail);
  Status AddTrace(const TraceFiles& trace);
  void AddSource(std::string name, std::unique_ptr<format::ByteSource> source);
  void SetFilter(std::shared_ptr<const EventFilter> filter);
  // Operations that began in it; those without a time are in no window but the
  // whole one. The begin is looked for where the input can be read anywhere,
  // and read up to elsewhere.
  void SetRange(const TimeWindow& range);
  // Losses outside are not told: where that is not the range.
  void SetLossWindow(const TimeWindow& window);
  const TimeWindow& range() const { return range_; }
  // Takes a block of that trace that was read elsewhere.
  void Give(size_t i, std::unique_ptr<format::BlockDecoder> block) {
    merger_.Give(i, std::move(block));
  }

  // The block that ReadFirst has read, for who goes on reading that trace by
  // himself; may be null.
  std::unique_ptr<format::BlockDecoder> TakeFirst(size_t i) {
    return merger_.TakeFirst(i);
  }

  // The first and the last begin time of all traces, without reading what lies
  // between; zeros where that is not known.
  Result<format::TraceReader::Span> TimeSpan();

  // --- Reading.

  // As of TraceMerger, what is filtered away left out.
  format::ReadStep Next(format::Record* record, bool hurry = false);
  // The same of process records, which go to the sinks; operations are passed
  // over. Not beside Next. The views of a record hold until the next call.
  format::ReadStep NextProcess();
  // The ends of growing inputs, as they are now, are the ends.
  void Stop();

  size_t size() const { return merger_.size(); }
  format::TraceReader& trace(size_t i) { return merger_.reader(i); }
  const format::TraceReader& trace(size_t i) const { return merger_.reader(i); }
  // The number of the trace that a record is of.
  size_t NumberOf(const format::Record& record) const;
  // Whose that trace is. Its header has to be known: a record of it has come.
  format::TraceOrigin OriginOf(size_t i);
  // OK, or why that trace could not be read to its end.
  const Status& status(size_t i) const { return merger_.status(i); }
  // Whether any block of any trace has been read.
  bool AnythingRead() const;
  // Reads the first block of a trace ahead of Next: what the trace says of
  // itself. Not for growing inputs.
  Status ReadFirst(size_t i) { return merger_.ReadFirst(i); }

 private:
  // Goes to where the range begins.
  void Begin();
  // What one trace of a machine tells of its processes holds in the others.
  void ShareProcesses(format::TraceContext* trace);
  // Reads on for what was lost before the range ended.
  void ReadLosses();

  const Options options_;
  TimeWindow range_;
  std::shared_ptr<const EventFilter> filter_;
  format::TraceMerger merger_;
  TraceOrigins origins_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace tracefs::reader
