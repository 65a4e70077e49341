// How much of an fsync or of a read that had to fetch something was the
// device's: its requests (BlockRequests) beside the extents of the operation
// (STR_EXTENTS).
#include <algorithm>

#include "tracefs/event/extents.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/block_requests.h"
#include "tracefs/query/file_layout.h"
#include "tracefs/tally/sums.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostOnDisk = size_t{1} << 17;

struct BusyPeriod {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// How long any of them lasts.
uint64_t TimeOf(std::vector<BusyPeriod> periods) {
  std::ranges::sort(periods, {}, &BusyPeriod::begin);
  uint64_t sum = 0;
  uint64_t until = 0;
  for (const BusyPeriod& period : periods) {
    const uint64_t begin = std::max(period.begin, until);
    if (period.end <= begin) continue;
    sum += period.end - begin;
    until = period.end;
  }
  return sum;
}

class Disk final : public Analysis {
 public:
  explicit Disk(const AnalysisOptions& options)
      : path_(options.path), status_(requests_.Read(options.path)) {}

  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    const std::string_view of = record.Text(Field::kExtentsOf);
    if (!HasRun(record) || !status_.ok() || event.op == Op::release_ ||
        !event.Has(Field::kTime) || !event.Has(Field::kLatency) ||
        !record.HasText(Field::kExtents) || SaysOfExtents(of, kColdUnknown)) {
      return;
    }
    ++operations_;
    const uint64_t device = event.GetOr0(Field::kExtentsDevice);
    if (!requests_.Knows(device)) {
      ++no_requests_;
      return;
    }
    Add(record, device);
  }

  std::vector<Table> Finish() override {
    Table all;
    all.columns = Columns();
    all.rows = std::move(rows_);
    if (left_out_ != 0) {
      all.notes.push_back("and " + std::to_string(left_out_) +
                          " more operations");
    }
    all.notes.push_back(
        "data: requests of what the operation wrote or fetched were under way; "
        "elsewhere: others of the device were and none of these (the journal, "
        "metadata, other programs); rest: none were");
    if (requests_.not_whole() != 0 || requests_.no_room() != 0) {
      all.notes.push_back(std::to_string(requests_.not_whole()) +
                          " requests without begin or end, " +
                          std::to_string(requests_.no_room()) +
                          " that there was no room for");
    }
    if (no_requests_ != 0) {
      all.notes.push_back(std::to_string(no_requests_) +
                          " operations on devices without requests: of a "
                          "partition, those of its disk are told");
    }
    if (many_) all.notes.push_back("not all requests were looked at");
    return {all};
  }

  Status Verdict() const override {
    if (!status_.ok()) return status_;
    if (requests_.size() == 0) {
      return Status::Corrupt("'" + path_ +
                             "' has no block_rq_issue of perf script or "
                             "trace-cmd report");
    }
    if (operations_ == 0) {
      return Status::Corrupt(
          "no operation says where anything lies: record with STR_EXTENTS");
    }
    if (matched_ == 0) {
      return Status::Corrupt(
          "no request was under way during any operation: record them on the "
          "same machine at the same time, with perf record -k CLOCK_MONOTONIC");
    }
    return {};
  }

 private:
  static std::vector<TableColumn> Columns() {
    return {{"time", Unit::kTime},
            {"op"},
            {"latency", Unit::kDuration, true},
            {"data", Unit::kDuration, true},
            {"elsewhere", Unit::kDuration, true},
            {"rest", Unit::kDuration, true},
            {"requests", Unit::kNumber, true},
            {"requests_elsewhere", Unit::kNumber, true},
            {"cname"},
            {"path"}};
  }

  void Add(const format::Record& record, uint64_t device) {
    const Event& event = record.event;
    const uint64_t begin = event.Get(Field::kTime);
    const uint64_t latency = event.Get(Field::kLatency);
    const uint64_t end = tally::AddTo(begin, latency);
    std::vector<Extent> extents;
    std::string_view text = record.Text(Field::kExtents);
    Extent extent;
    while (extents.size() < kMostExtents && TakeExtent(&text, &extent)) {
      if (extent.has_place()) extents.push_back(extent);
    }
    std::vector<BusyPeriod> all;
    std::vector<BusyPeriod> data;
    many_ |= !requests_.ForEach(
        device, begin, end, [&](const BlockRequest& request) {
          const BusyPeriod period = {std::max(begin, request.issued_ns),
                                     std::min(end, request.done_ns)};
          all.push_back(period);
          const bool is_data =
              std::ranges::any_of(extents, [&](const Extent& e) {
                return request.begin < e.physical + e.length &&
                       e.physical < request.begin + request.bytes;
              });
          if (is_data) data.push_back(period);
        });
    matched_ += all.size();
    if (rows_.size() == kMostOnDisk) {
      ++left_out_;
      return;
    }
    const uint64_t with_data = TimeOf(data);
    const uint64_t with_any = TimeOf(all);
    PathBuffer buffer;
    rows_.push_back(
        {Value::Number(record.real_ns), Value::Text(OpName(event.op)),
         Value::Number(latency), Value::Number(with_data),
         Value::Number(with_any - with_data),
         Value::Number(latency - std::min(latency, with_any)),
         Value::Number(data.size()), Value::Number(all.size() - data.size()),
         Value::Text(record.Text(Field::kComm)),
         Value::Text(format::PathOf(record, buffer))});
  }

  const std::string path_;
  BlockRequests requests_;
  const Status status_;
  std::vector<Row> rows_;
  uint64_t operations_ = 0;
  uint64_t no_requests_ = 0;
  uint64_t matched_ = 0;
  uint64_t left_out_ = 0;
  bool many_ = false;
};

}  // namespace

std::unique_ptr<Analysis> MakeDisk(const AnalysisOptions& options) {
  return std::make_unique<Disk>(options);
}

}  // namespace tracefs::query
