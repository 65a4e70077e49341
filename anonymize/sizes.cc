#include "anonymize/sizes.h"

#include <algorithm>
#include <cstring>

#include "tracefs/base/choice.h"
#include "tracefs/base/text.h"
#include "tracefs/event/field.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/names.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;

constexpr uint16_t Id(ArgId id) { return static_cast<uint16_t>(id); }
uint16_t Id(Field field) { return Info(field).arg_id; }

struct Row {
  uint16_t arg_id;
  SizeTell tells;
};

// Every field of the classes in which some tell of sizes.
const Row kRows[] = {
    // size
    {Id(Field::kSize), SizeTell::kSize},
    {Id(Field::kNewSize), SizeTell::kSize},
    // io
    {Id(Field::kOffset), SizeTell::kTransfer},
    {Id(Field::kOffsetOut), SizeTell::kTransfer},
    {Id(Field::kLength), SizeTell::kTransfer},
    {Id(Field::kKeptAt), SizeTell::kNothing},
    {Id(Field::kKeptOffset), SizeTell::kTransfer},
    {Id(Field::kKeptLength), SizeTell::kTransfer},
    {Id(Field::kExtentsLeftOut), SizeTell::kTransfer},
    // result
    {Id(Field::kResult), SizeTell::kTransfer},
    {Id(ArgId::kExitCode), SizeTell::kNothing},
    {Id(ArgId::kExitSignal), SizeTell::kNothing},
    // data
    {Id(Field::kData), SizeTell::kBytes},
    {Id(Field::kExtents), SizeTell::kExtents},
    {Id(Field::kCmdline), SizeTell::kNothing},
    {Id(ArgId::kArgv), SizeTell::kNothing},
    {Id(ArgId::kEnviron), SizeTell::kNothing},
    {Id(ArgId::kXattrs), SizeTell::kNothing},
    // Left out with their messages.
    {Id(ArgId::kContentHash), SizeTell::kNothing},
    {Id(ArgId::kContent), SizeTell::kNothing},
    {Id(ArgId::kIndexData), SizeTell::kNothing},
    {Id(ArgId::kLeftOut), SizeTell::kNothing},
    {Id(ArgId::kIndexOf), SizeTell::kNothing},
    // name
    {Id(Field::kTarget), SizeTell::kTarget},
    {Id(Field::kName), SizeTell::kNothing},
    {Id(Field::kNewName), SizeTell::kNothing},
    {Id(Field::kExt), SizeTell::kNothing},
    {Id(Field::kPath), SizeTell::kNothing},
    {Id(Field::kNewPath), SizeTell::kNothing},
    {Id(ArgId::kDirectory), SizeTell::kNothing},
    {Id(ArgId::kCwd), SizeTell::kNothing},
    {Id(ArgId::kRuleTitle), SizeTell::kNothing},
    {Id(ArgId::kRuleAction), SizeTell::kNothing},
    {Id(ArgId::kRecentPath), SizeTell::kNothing},
    // totals
    {Id(ArgId::kByteCount), SizeTell::kSum},
    {Id(ArgId::kSizeMax), SizeTell::kSum},
    {Id(ArgId::kSizeHistogram), SizeTell::kHistogram},
    {Id(ArgId::kDataRanges), SizeTell::kRanges},
    {Id(ArgId::kLossCount), SizeTell::kNothing},
    {Id(ArgId::kLossReason), SizeTell::kNothing},
    {Id(ArgId::kOpTotal), SizeTell::kNothing},
    {Id(ArgId::kLossTotal), SizeTell::kNothing},
    {Id(ArgId::kEndReason), SizeTell::kNothing},
    {Id(ArgId::kAggregate), SizeTell::kNothing},
    {Id(ArgId::kAggregateTotal), SizeTell::kNothing},
    {Id(ArgId::kOther), SizeTell::kNothing},
    {Id(ArgId::kCount), SizeTell::kNothing},
    {Id(ArgId::kCountMissed), SizeTell::kNothing},
    {Id(ArgId::kErrorCount), SizeTell::kNothing},
    {Id(ArgId::kLatencySum), SizeTell::kNothing},
    {Id(ArgId::kLatencyMax), SizeTell::kNothing},
    {Id(ArgId::kLatencyHistogram), SizeTell::kNothing},
    {Id(ArgId::kRule), SizeTell::kNothing},
    {Id(ArgId::kRuleKey), SizeTell::kNothing},
    {Id(ArgId::kNotKnown), SizeTell::kNothing},
    {Id(ArgId::kRuleLimit), SizeTell::kNothing},
    {Id(ArgId::kRuleWindow), SizeTell::kNothing},
    {Id(ArgId::kRuleWindows), SizeTell::kNothing},
    {Id(ArgId::kCoreDumped), SizeTell::kNothing},
};

// Whole classes that tell nothing of sizes. Of kRequest, ARG_DATA_LEFT_OUT says
// of a copy that it was longer than 1 MiB.
bool TellsNothing(DataClass of) {
  switch (of) {
    case DataClass::kSize:
    case DataClass::kIo:
    case DataClass::kResult:
    case DataClass::kData:
    case DataClass::kName:
    case DataClass::kTotals:
      return false;
    default:
      return true;
  }
}

}  // namespace

SizeTell TellsOfSize(uint16_t arg_id) {
  const auto* const row = std::ranges::find(kRows, arg_id, &Row::arg_id);
  if (row != std::end(kRows)) return row->tells;
  const format::ArgumentInfo* known = format::FindArgument(arg_id);
  // What a policy does not know, it must name by itself.
  if (known == nullptr || TellsNothing(known->data_class)) {
    return SizeTell::kNothing;
  }
  return SizeTell::kUnknown;
}

std::string_view WhatItTells(SizeTell tells) {
  static constexpr Choice<SizeTell> kTells[] = {
      {"the size", SizeTell::kSize},
      {"where the last transfer ends", SizeTell::kTransfer},
      {"bytes transferred", SizeTell::kSum},
      {"lengths of transfers", SizeTell::kHistogram},
      {"where the last range of data ends", SizeTell::kRanges},
      {"as many bytes as were transferred", SizeTell::kBytes},
      {"as long as the link", SizeTell::kTarget},
      {"where the last blocks end", SizeTell::kExtents},
  };
  return WordOf(kTells, tells, "nothing");
}

bool TellsExactly(const FieldPlan& field) {
  const SizeTell tells = TellsOfSize(field.arg_id);
  const Rule& rule = *field.rule;
  switch (tells) {
    case SizeTell::kNothing:
    case SizeTell::kUnknown:
      return false;
    case SizeTell::kSum:
    case SizeTell::kHistogram:
    case SizeTell::kRanges:
      return field.treatment == Treatment::kCopy;
    case SizeTell::kBytes:
    case SizeTell::kTarget:
    case SizeTell::kExtents:
      // Tokens of encrypted texts are as long as these; zeros are, too.
      return rule.action == Action::kKeep ||
             (rule.action == Action::kZero && tells == SizeTell::kBytes) ||
             (rule.action == Action::kEncrypt && rule.pad <= 1);
    default:
      // Shifted transfers tell the constant: where one ends the next begins.
      return rule.action == Action::kKeep ||
             (rule.action == Action::kShift && tells == SizeTell::kTransfer) ||
             (rule.action == Action::kQuantise && rule.step <= 1 &&
              (!rule.shift || tells == SizeTell::kTransfer));
  }
}

Status CheckSizes(const std::vector<FieldPlan>& fields) {
  const FieldPlan* hidden = nullptr;
  std::string clear;
  for (const FieldPlan& field : fields) {
    if (field.rule == nullptr) continue;
    if (TellsOfSize(field.arg_id) == SizeTell::kSize && !TellsExactly(field)) {
      hidden = &field;
    }
  }
  if (hidden == nullptr) return Status::Ok();
  for (const FieldPlan& field : fields) {
    if (field.rule == nullptr || !TellsExactly(field)) continue;
    clear += (clear.empty() ? "" : ", ") + field.name + " (" +
             std::string(WhatItTells(TellsOfSize(field.arg_id))) + ")";
  }
  if (clear.empty()) return Status::Ok();
  return Status::Invalid(
      hidden->rule->origin + ": " + hidden->name + " is '" +
      RuleText(*hidden->rule, true) +
      "', but sizes of files would still be told by " + clear +
      "; make these coarse as well or leave them out (io, result = bucket; "
      "data, ARG_TARGET = drop;), or keep sizes");
}

Result<std::string> CoarseHistogram(
    ByteSpan histogram, const std::function<Status(uint64_t*)>& map) {
  constexpr size_t kPair = format::kHistogramPairBytes;
  if (histogram.size() % kPair != 0) {
    return Status::Corrupt("a histogram is cut short");
  }
  std::string out;
  for (ByteSpan in = histogram; !in.empty(); in = in.subspan(kPair)) {
    const auto bucket = LoadLe<uint16_t>(in.data());
    if (bucket >= tally::kHistogramBuckets) {
      return Status::Corrupt("a histogram has a bucket " +
                             std::to_string(bucket));
    }
    uint64_t value = tally::HistogramLow(bucket);
    if (Status s = map(&value); !s.ok()) return s;
    auto count = LoadLe<uint64_t>(in.data() + sizeof bucket);
    std::byte pair[kPair];
    StoreLe<uint16_t>(pair, tally::HistogramBucket(value));
    if (!out.empty()) {
      const ByteSpan last = AsBytes(out).last(kPair);
      if (std::memcmp(last.data(), pair, sizeof bucket) == 0) {
        count += LoadLe<uint64_t>(last.data() + sizeof bucket);
        out.resize(out.size() - kPair);
      }
    }
    StoreLe<uint64_t>(pair + sizeof bucket, count);
    out += AsText(pair);
  }
  return out;
}

}  // namespace tracefs::anonymize
