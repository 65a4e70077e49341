#include "tracefs/format/aggregate.h"

#include "tracefs/format/argument_rows.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::format {
namespace {

constexpr auto kKeyOp = static_cast<uint16_t>(ArgId::kKeyOp);
constexpr auto kDirectory = static_cast<uint16_t>(ArgId::kDirectory);

void PutHistogram(MessageWriter& out, ArgId id, const HistogramRecord& h) {
  std::vector<std::byte> bytes(h.buckets.size() * kHistogramPairBytes);
  std::byte* at = bytes.data();
  for (const HistogramBucketCount& b : h.buckets) {
    StoreLe<uint16_t>(at, b.bucket);
    StoreLe<uint64_t>(at + 2, b.count);
    at += kHistogramPairBytes;
  }
  out.PutBytes(static_cast<uint16_t>(id), bytes);
}

void TakeHistogram(ByteSpan value, HistogramRecord* h) {
  h->present = true;
  h->buckets.clear();
  ByteCursor in(value);
  while (in.left() >= kHistogramPairBytes &&
         h->buckets.size() < tally::kHistogramBuckets) {  // more are hostile
    const uint16_t bucket = *in.TakeLe<uint16_t>();
    const uint64_t count = *in.TakeLe<uint64_t>();
    if (bucket < tally::kHistogramBuckets)
      h->buckets.push_back({bucket, count});
  }
}

template <HistogramRecord AggregateRecord::*kHistogram>
void TakeHistogramOf(const Argument& argument, AggregateRecord* record) {
  TakeHistogram(argument.value, &(record->*kHistogram));
}

using Aggregate = AggregateRecord;
using Histogram = HistogramRecord;

constexpr ArgumentRow<Aggregate> kAggregateRows[] = {
    {ArgId::kAggregate, &Into<&Aggregate::aggregate>::Take},
    {ArgId::kFirstTime, &Into<&Aggregate::from_ns>::Take},
    {ArgId::kLastTime, &Into<&Aggregate::to_ns>::Take},
    {ArgId::kAggregateTotal, &Into<&Aggregate::total>::Take},
    {ArgId::kOther, &Into<&Aggregate::other>::Take},
    {ArgId::kCount, &Into<&Aggregate::count>::Take},
    {ArgId::kCountMissed, &Into<&Aggregate::missed>::Take},
    {ArgId::kErrorCount, &Into<&Aggregate::errors>::Take},
    {ArgId::kByteCount, &Into<&Aggregate::bytes>::Take},
    {ArgId::kLatencySum, &Into<&Aggregate::latency, &Histogram::sum>::Take},
    {ArgId::kLatencyMax, &Into<&Aggregate::latency, &Histogram::max>::Take},
    {ArgId::kLatencyHistogram, &TakeHistogramOf<&Aggregate::latency>},
    {ArgId::kSizeMax, &Into<&Aggregate::size, &Histogram::max>::Take},
    {ArgId::kSizeHistogram, &TakeHistogramOf<&Aggregate::size>},
};

// The width in bytes of a number that can be part of a key; 0 = not one.
size_t WidthOfKeyPart(uint16_t arg_id) {
  if (arg_id == kKeyOp) return 1;
  const FieldInfo* const field = FieldByArgId(arg_id);
  return field != nullptr && IsNumeric(field->field) ? field->width : 0;
}

void PutKeyPart(MessageWriter& out, const AggregateKeyPart& part) {
  if (AggregateKeyIsText(part.arg_id)) {
    out.PutText(part.arg_id, part.text);
    return;
  }
  switch (WidthOfKeyPart(part.arg_id)) {
    case 1:
      out.Put<uint8_t>(part.arg_id, static_cast<uint8_t>(part.number));
      return;
    case 4:
      out.Put<uint32_t>(part.arg_id, static_cast<uint32_t>(part.number));
      return;
    default:
      out.Put<uint64_t>(part.arg_id, part.number);
  }
}

// True if the argument is part of a key.
bool TakeKeyPart(const Argument& argument, AggregateRecord* record) {
  const bool text = AggregateKeyIsText(argument.id);
  const size_t width = WidthOfKeyPart(argument.id);
  if (!text && width == 0) return false;
  if (record->key.size() >= AggregateRecord::kMaxKeyParts) return true;
  AggregateKeyPart part;
  part.arg_id = argument.id;
  if (text) {
    part.text = AsText(argument.value);
  } else if (argument.is<uint8_t>()) {
    part.number = argument.As<uint8_t>();
  } else if (argument.is<uint32_t>()) {
    part.number = argument.As<uint32_t>();
  } else {
    part.number = argument.As<uint64_t>();
  }
  record->key.push_back(part);
  return true;
}

}  // namespace

uint64_t HistogramRecord::Count() const { return tally::CountOf(buckets); }

uint64_t HistogramRecord::Quantile(double share) const {
  return tally::QuantileOf(buckets, share,
                           {.max = max == 0 ? UINT64_MAX : max});
}

tally::TimedSums SumsOf(const AggregateRecord& record) {
  tally::TimedSums sums;
  sums.count = record.count;
  sums.errors = record.errors.value_or(0);
  sums.bytes = record.bytes.value_or(0);
  if (record.latency.present) {
    sums.timed = record.count;
    sums.time_ns = record.latency.sum;
    sums.max_ns = record.latency.max;
  }
  return sums;
}

std::string_view AggregateKeyLabel(uint16_t arg_id) {
  if (arg_id == kKeyOp) return "op";
  if (arg_id == kDirectory) return "dir";
  const FieldInfo* const field = FieldByArgId(arg_id);
  return field == nullptr ? std::string_view() : field->json_key;
}

bool AggregateKeyIsText(uint16_t arg_id) {
  if (arg_id == kDirectory) return true;
  const FieldInfo* const field = FieldByArgId(arg_id);
  return field != nullptr && !IsNumeric(field->field) &&
         field->field != Field::kOp;
}

bool WriteAggregate(MessageWriter& out, const AggregateRecord& record) {
  out.Begin(static_cast<uint16_t>(MessageId::kAggregate));
  out.Put<uint32_t>(ArgId::kAggregate, record.aggregate);
  out.Put<uint64_t>(ArgId::kFirstTime, record.from_ns);
  out.Put<uint64_t>(ArgId::kLastTime, record.to_ns);
  if (record.total) out.Put<uint8_t>(ArgId::kAggregateTotal, 1);
  if (record.other) out.Put<uint8_t>(ArgId::kOther, 1);
  for (const AggregateKeyPart& part : record.key) PutKeyPart(out, part);
  out.Put<uint64_t>(ArgId::kCount, record.count);
  if (record.missed != 0) {
    out.Put<uint64_t>(ArgId::kCountMissed, record.missed);
  }
  if (record.errors) out.Put<uint64_t>(ArgId::kErrorCount, *record.errors);
  if (record.bytes) out.Put<uint64_t>(ArgId::kByteCount, *record.bytes);
  if (record.latency.present) {
    out.Put<uint64_t>(ArgId::kLatencySum, record.latency.sum);
    out.Put<uint64_t>(ArgId::kLatencyMax, record.latency.max);
    PutHistogram(out, ArgId::kLatencyHistogram, record.latency);
  }
  if (record.size.present) {
    out.Put<uint64_t>(ArgId::kSizeMax, record.size.max);
    PutHistogram(out, ArgId::kSizeHistogram, record.size);
  }
  return out.End();
}

bool ReadAggregate(ByteSpan arguments, const ArgumentWidths& widths,
                   AggregateRecord* record) {
  *record = {};
  const bool whole = TakeArguments(
      arguments, widths, kAggregateRows, record,
      [record](const Argument& argument) { TakeKeyPart(argument, record); });
  record->size.sum = record->bytes.value_or(0);
  return whole;
}

}  // namespace tracefs::format
