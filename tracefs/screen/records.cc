#include "tracefs/screen/records.h"

#include "tracefs/format/block_decoder.h"
#include "tracefs/format/constants.h"
#include "tracefs/tally/sums.h"

namespace tracefs::screen {

void CountRecord(const format::Record& record, uint32_t source,
                 Activity* activity) {
  const Event& event = record.event;
  if (event.before) return;
  const auto number = [&event](Field field, uint32_t otherwise) {
    return event.Has(field) ? static_cast<uint32_t>(event.Get(field))
                            : otherwise;
  };
  static thread_local PathBuffer buffer;
  ActivityKey key;
  key.source = source;
  key.op = event.op;
  key.error = number(Field::kErrno, 0);
  key.uid = number(Field::kUid, kUnknown);
  key.pid = number(Field::kPid, kUnknown);
  key.ppid = number(Field::kPpid, kUnknown);
  if (event.caller != nullptr) key.comm = record.caller.comm();
  key.path = format::PathOf(record, buffer);
  ActivityCounts& counts = activity->At(key);
  const tally::TimedSums sums = tally::SumsOf(event);
  counts.TimedSums::Add(sums);
  if (sums.timed != 0) counts.durations.Add(sums.time_ns);
  if (!HasTwoFiles(event.op) || sums.written == 0) return;
  key.path = format::NewPathOf(record, buffer);
  activity->At(key).second += sums.written;
}

void CountAggregate(const format::AggregateRecord& record, uint32_t source,
                    Activity* activity) {
  ActivityKey key;
  key.source = source;
  key.other = record.other;
  bool has_op = false;
  for (const format::AggregateKeyPart& part : record.key) {
    const auto is = [&part](Field field) {
      return part.arg_id == Info(field).arg_id;
    };
    const auto number = static_cast<uint32_t>(part.number);
    if (part.arg_id == static_cast<uint16_t>(format::ArgId::kKeyOp)) {
      has_op = part.number < kOpCount;
      if (has_op) key.op = static_cast<Op>(part.number);
    } else if (is(Field::kErrno)) {
      key.error = number;
    } else if (is(Field::kUid)) {
      key.uid = number;
    } else if (is(Field::kPid)) {
      key.pid = number;
    } else if (is(Field::kPpid)) {
      key.ppid = number;
    } else if (is(Field::kComm)) {
      key.comm = part.text;
    } else if (is(Field::kPath)) {
      key.path = part.text;
    }
  }
  if (key.other || !has_op) {
    key = ActivityKey();
    key.source = source;
    key.other = true;
  }
  ActivityCounts& counts = activity->At(key);
  if (record.count == 0) {
    // Only what was written to it (aggregate driver).
    counts.second = tally::AddTo(counts.second, record.bytes.value_or(0));
    return;
  }
  counts.TimedSums::Add(format::SumsOf(record));
  for (const format::HistogramBucketCount& one : record.latency.buckets) {
    counts.durations.AddBucket(one.bucket, one.count);
  }
}

}  // namespace tracefs::screen
