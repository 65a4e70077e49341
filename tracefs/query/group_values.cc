#include "tracefs/query/group_values.h"

#include <algorithm>

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"

namespace tracefs::query {
namespace {

using enum GroupValue;

struct ValueRow {
  std::string_view name;
  GroupValue value;
  Unit unit;
  bool adds;
};
// In the order of the enumerators.
constexpr ValueRow kRows[] = {
    {"count", kCount, Unit::kNumber, true},
    {"errors", kErrors, Unit::kNumber, true},
    {"bytes", kBytes, Unit::kBytes, true},
    {"read", kRead, Unit::kBytes, true},
    {"written", kWritten, Unit::kBytes, true},
    {"time", kTime, Unit::kDuration, true},
    {"mean", kMean, Unit::kDuration, false},
    {"min", kMin, Unit::kDuration, false},
    {"p50", kP50, Unit::kDuration, false},
    {"p90", kP90, Unit::kDuration, false},
    {"p99", kP99, Unit::kDuration, false},
    {"p999", kP999, Unit::kDuration, false},
    {"max", kMax, Unit::kDuration, false},
    {"size_mean", kSizeMean, Unit::kBytes, false},
    {"size_p50", kSizeP50, Unit::kBytes, false},
    {"size_p99", kSizeP99, Unit::kBytes, false},
    {"size_max", kSizeMax, Unit::kBytes, false},
    {"first", kFirst, Unit::kTime, false},
    {"last", kLast, Unit::kTime, false},
    {"files", kFiles, Unit::kNumber, false},
    {"processes", kProcesses, Unit::kNumber, false},
    {"share", kShare, Unit::kShare, true},
    {"time_share", kTimeShare, Unit::kShare, true},
    {"before", kBefore, Unit::kNumber, true},
};

// Words that stand for several.
struct ValueSet {
  std::string_view name;
  std::initializer_list<GroupValue> values;
};
const ValueSet kSets[] = {
    {"latency", {kTime, kP50, kP99, kMax}},
    {"size", {kSizeMean, kSizeP50, kSizeP99, kSizeMax}},
};

}  // namespace

void Tally::Add(const Tally& other) {
  TimedSums::Add(other);
  before += other.before;
  either = tally::AddTo(either, other.either);
  unmeasured += other.unmeasured;
  sizes += other.sizes;
  size_max = std::max(size_max, other.size_max);
  first_ns = std::min(first_ns, other.first_ns);
  last_ns = std::max(last_ns, other.last_ns);
  half_bytes = tally::AddTo(half_bytes, other.half_bytes);
  half_sizes += other.half_sizes;
  bytes = tally::AddTo(bytes, half_bytes / 2);
  read = tally::AddTo(read, half_bytes / 2);
  written = tally::AddTo(written, half_bytes / 2);
  sizes += half_sizes / 2;
  half_bytes %= 2;
  half_sizes %= 2;
}

void TallyDetails::Add(const TallyDetails& other) {
  latency.Add(other.latency);
  size.Add(other.size);
  files.Add(other.files);
  processes.Add(other.processes);
}

DetailNeeds NeedsOf(const std::vector<GroupValue>& values) {
  DetailNeeds needs;
  for (const GroupValue value : values) {
    needs.latency |= value >= kP50 && value <= kP999;
    needs.size |= value == kSizeP50 || value == kSizeP99;
    needs.files |= value == kFiles;
    needs.processes |= value == kProcesses;
  }
  return needs;
}

Result<std::vector<GroupValue>> ParseGroupValues(std::string_view text,
                                                 std::string_view option) {
  std::vector<GroupValue> values;
  const auto add = [&values](GroupValue value) {
    if (std::ranges::find(values, value) == values.end()) {
      values.push_back(value);
    }
  };
  if (text.empty()) text = "count,errors,bytes,latency";
  while (!text.empty()) {
    const std::string_view word = Trim(TakeUpTo(text, ','));
    const size_t before = values.size();
    bool known = false;
    for (const ValueSet& set : kSets) {
      if (set.name != word) continue;
      known = true;
      for (const GroupValue value : set.values) add(value);
    }
    for (const ValueRow& row : kRows) {
      if (row.name != word) continue;
      known = true;
      add(row.value);
    }
    if (known && before != values.size()) continue;
    if (known) {
      return Status::Invalid(std::string(option) + ": " + std::string(word) +
                             " is given twice");
    }
    std::vector<std::string_view> names;
    std::string list;
    for (const ValueRow& row : kRows) {
      names.push_back(row.name);
      list += " " + std::string(row.name);
    }
    return Status::Invalid(std::string(option) + ": there is no value \"" +
                           Printable(word) + "\"" + DidYouMean(word, names) +
                           " (there are:" + list + " latency size)");
  }
  return values;
}

TableColumn ColumnOf(GroupValue value) {
  const ValueRow& row = kRows[static_cast<size_t>(value)];
  return {std::string(row.name), row.unit, row.adds};
}

Value ValueOf(GroupValue value, const Tally& t, const TallyDetails* details,
              const Tally& all) {
  const auto if_any = [](uint64_t any, uint64_t number) {
    return any == 0 ? Value() : Value::Number(number);
  };
  const auto latency = [&](double share) {
    return if_any(t.timed, details->latency.Quantile(share, t.Times()));
  };
  const auto size = [&](double share) {
    return if_any(t.sizes, details->size.Quantile(share, {.max = t.size_max}));
  };
  // What is known of none is no 0.
  const bool measured = t.unmeasured == 0 || t.sizes != 0 || t.bytes != 0;
  const auto moved = [&](uint64_t bytes) {
    return measured ? Value::Number(bytes) : Value();
  };
  switch (value) {
    case kCount:
      return Value::Number(t.count);
    case kErrors:
      return Value::Number(t.errors);
    case kBytes:
      return moved(t.bytes);
    case kRead:
      return t.either != 0 ? Value() : moved(t.read);
    case kWritten:
      return t.either != 0 ? Value() : moved(t.written);
    case kTime:
      return if_any(t.timed, t.time_ns);
    case kMean:
      return if_any(t.timed, t.MeanNs());
    case kMin:
      // Aggregate drivers do not count it.
      return if_any(t.min_ns != UINT64_MAX, t.min_ns);
    case kP50:
      return latency(0.5);
    case kP90:
      return latency(0.9);
    case kP99:
      return latency(0.99);
    case kP999:
      return latency(0.999);
    case kMax:
      return if_any(t.timed, t.max_ns);
    case kSizeMean:
      return if_any(t.sizes, t.bytes / std::max<uint64_t>(t.sizes, 1));
    case kSizeP50:
      return size(0.5);
    case kSizeP99:
      return size(0.99);
    case kSizeMax:
      return if_any(t.sizes, t.size_max);
    case kFirst:
      return if_any(t.last_ns, t.first_ns);
    case kLast:
      return if_any(t.last_ns, t.last_ns);
    // Each operation is of a file and by a process: none is known.
    case kFiles: {
      const uint64_t files = details->files.Estimate();
      return if_any(files, files);
    }
    case kProcesses: {
      const uint64_t processes = details->processes.Estimate();
      return if_any(processes, processes);
    }
    case kShare:
      return Value::Share(t.count, all.count);
    case kTimeShare:
      return t.timed == 0 ? Value() : Value::Share(t.time_ns, all.time_ns);
    case kBefore:
      return Value::Number(t.before);
  }
  return {};
}

}  // namespace tracefs::query
