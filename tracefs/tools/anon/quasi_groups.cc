#include "tracefs/tools/anon/quasi_groups.h"

#include <algorithm>

namespace tracefs::anonymize {
namespace {

constexpr size_t kMaxGroups = 1'000'000;
constexpr uint64_t kSmallGroup = 5;

const FieldInfo* FieldOf(const std::string& name) {
  const FieldInfo* field = nullptr;
  for (const FieldInfo& info : Fields()) {
    if (info.json_key == name || info.trace_name == name) field = &info;
  }
  return field;
}

std::string QuasiValue(const format::Record& record, const FieldInfo* field) {
  if (field == nullptr || field->arg_id == 0) return "?";
  if (field->field == Field::kComm && record.event.caller != nullptr &&
      !record.HasText(Field::kComm)) {
    return std::string(record.caller.comm());
  }
  if (IsNumeric(field->field)) {
    if (record.event.Has(field->field)) {
      return std::to_string(record.event.Get(field->field));
    }
    for (const format::ExtraArgument& extra : record.extra) {
      if (extra.id == field->arg_id) return std::string(AsText(extra.value));
    }
    return "-";
  }
  return std::string(record.Text(field->field));
}

}  // namespace

void QuasiGroups::Count(format::TraceContext* context,
                        std::vector<std::byte> block,
                        const format::Frame& frame) {
  if (frame.header.sequence == 0) return;
  format::BlockDecoder decoder(context);
  if (!decoder.Open(std::move(block), frame.header.sequence, frame.offset)) {
    return;
  }
  std::vector<const FieldInfo*> fields;
  for (const std::string& name : names_) fields.push_back(FieldOf(name));
  format::Record record;
  while (!decoder.at_end()) {
    decoder.Next(&record);
    std::string group;
    for (const FieldInfo* field : fields) {
      group += QuasiValue(record, field) + '|';
    }
    const auto found = groups_.find(group);
    if (found != groups_.end()) {
      ++found->second;
    } else if (groups_.size() < kMaxGroups) {
      groups_.emplace(std::move(group), 1);
    } else {
      groups_full_ = true;
    }
  }
}

std::string QuasiGroups::Text() const {
  if (groups_.empty()) return {};
  uint64_t smallest = UINT64_MAX;
  size_t single = 0;
  size_t small = 0;
  for (const auto& [group, count] : groups_) {
    smallest = std::min(smallest, count);
    single += count == 1;
    small += count < kSmallGroup;
  }
  std::string names;
  for (const std::string& name : names_) {
    names += (names.empty() ? "" : ",") + name;
  }
  return "\nOver (" + names + "): " + std::to_string(groups_.size()) +
         " groups of operations, smallest k = " + std::to_string(smallest) +
         "; " + std::to_string(single) + " with one operation, " +
         std::to_string(small) + " with fewer than " +
         std::to_string(kSmallGroup) +
         (groups_full_ ? " (of the first million groups)" : "") + '\n';
}

}  // namespace tracefs::anonymize
