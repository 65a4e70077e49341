#include "tracefs/feed/aggregate_lines.h"

#include <string_view>

#include "tracefs/event/field.h"
#include "tracefs/event/op.h"
#include "tracefs/format/constants.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"

namespace tracefs {
namespace {

using format::AggregateKeyIsText;
using format::AggregateKeyLabel;
using format::AggregateKeyPart;
using format::AggregateRecord;
using format::HistogramRecord;

struct Share {
  double share;
  std::string_view name;
};
constexpr Share kShares[] = {
    {0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p999"}};

bool Is(const AggregateKeyPart& part, Field field) {
  return part.arg_id == Info(field).arg_id;
}

// The name a number has; empty if it has none.
std::string_view NameOfNumber(const AggregateKeyPart& part) {
  if (part.arg_id == static_cast<uint16_t>(format::ArgId::kKeyOp)) {
    const std::optional<Op> op = OpFromNumber(part.number);
    return op ? OpName(*op) : std::string_view();
  }
  if (Is(part, Field::kType)) return FileTypeName(part.number);
  if (Is(part, Field::kErrno)) return ErrnoName(part.number);
  return {};
}

void PutHistogram(std::string_view key, const HistogramRecord& histogram,
                  JsonWriter* json) {
  if (!histogram.present) return;
  json->Open(key);
  json->Put("sum", histogram.sum);
  json->Put("max", histogram.max);
  for (const Share& share : kShares) {
    json->Put(share.name, histogram.Quantile(share.share));
  }
  json->OpenList("buckets");
  for (const format::HistogramBucketCount& bucket : histogram.buckets) {
    json->OpenList();
    json->Add(tally::HistogramLow(bucket.bucket));
    json->Add(tally::HistogramHigh(bucket.bucket));
    json->Add(bucket.count);
    json->CloseList();
  }
  json->CloseList();
  json->Close();
}

}  // namespace

std::string AggregateKeyText(const AggregateKeyPart& part) {
  if (AggregateKeyIsText(part.arg_id)) return std::string(part.text);
  const std::string_view name = NameOfNumber(part);
  return name.empty() ? std::to_string(part.number) : std::string(name);
}

std::string AggregateKeysText(const AggregateRecord& record) {
  if (record.other) return "(other)";
  std::string text;
  for (const AggregateKeyPart& part : record.key) {
    if (!text.empty()) text += ' ';
    if (part.arg_id != static_cast<uint16_t>(format::ArgId::kKeyOp)) {
      text += std::string(AggregateKeyLabel(part.arg_id)) + '=';
    }
    text += TerminalWord(AggregateKeyText(part));
  }
  return text.empty() ? "(all)" : text;
}

std::string AggregateText(const AggregateRecord& record) {
  std::string line = "aggregate " + std::to_string(record.aggregate) +
                     (record.total ? " total" : "") + " of " +
                     DurationText(record.to_ns - record.from_ns) + ":";
  if (record.other) line += " other";
  for (const AggregateKeyPart& part : record.key) {
    line += ' ';
    line += AggregateKeyLabel(part.arg_id);
    line += '=' + TerminalWord(AggregateKeyText(part));
  }
  line += " count=" + std::to_string(record.count);
  if (record.missed != 0) line += "+" + std::to_string(record.missed);
  if (record.errors) line += " errors=" + std::to_string(*record.errors);
  if (record.bytes) line += " bytes=" + std::to_string(*record.bytes);
  if (record.latency.present) {
    line += " latency";
    for (const Share& share : kShares) {
      line += ' ' + std::string(share.name) + '=' +
              TerminalWord(DurationText(record.latency.Quantile(share.share)));
    }
    line += " max=" + TerminalWord(DurationText(record.latency.max));
  }
  if (record.size.present) {
    line += " size";
    for (const Share& share : kShares) {
      line += ' ' + std::string(share.name) + '=' +
              std::to_string(record.size.Quantile(share.share));
    }
    line += " max=" + std::to_string(record.size.max);
  }
  return line;
}

void PutAggregateKey(const AggregateRecord& record, JsonWriter* json) {
  for (const AggregateKeyPart& part : record.key) {
    const std::string_view label = AggregateKeyLabel(part.arg_id);
    if (label.empty()) continue;
    // As in operations: no errno where nothing failed.
    if (Is(part, Field::kErrno) && part.number == 0) continue;
    const bool text =
        AggregateKeyIsText(part.arg_id) || !NameOfNumber(part).empty();
    if (text) {
      json->PutExact(label, AggregateKeyText(part));
    } else {
      json->Put(label, part.number);
    }
  }
}

std::string AggregateJson(const AggregateRecord& record) {
  std::string line;
  JsonWriter json(&line);
  json.Put("ts", record.real_to_ns);
  json.Put("from", record.real_from_ns);
  json.Put("aggregate", record.aggregate);
  json.Put("scope", record.total ? "total" : "period");
  if (record.other) json.PutTrue("other");
  PutAggregateKey(record, &json);
  json.Put("count", record.count);
  if (record.missed != 0) json.Put("missed", record.missed);
  if (record.errors) json.Put("errors", *record.errors);
  if (record.bytes) json.Put("bytes", *record.bytes);
  PutHistogram("latency", record.latency, &json);
  PutHistogram("size", record.size, &json);
  json.Put("tracer", record.tracer_id);
  return line + "}\n";
}

}  // namespace tracefs
