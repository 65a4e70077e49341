#include "tracefs/tools/anon/quasi_groups.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/append_le.h"
#include "tracefs/base/join.h"

namespace tracefs::anonymize {
namespace {

constexpr uint64_t kSmallGroup = 5;

const FieldInfo* FieldOf(const std::string& name) {
  const FieldInfo* field = nullptr;
  for (const FieldInfo& info : Fields()) {
    if (info.json_key == name || info.trace_name == name) field = &info;
  }
  return field;
}

void AppendText(std::string_view text, std::string* key) {
  *key += 't';
  AppendLe(static_cast<uint32_t>(text.size()), key);
  *key += text;
}

void AppendValue(const format::Record& record, const FieldInfo* field,
                 std::string* key) {
  if (field == nullptr || field->arg_id == 0) {
    *key += '?';
  } else if (field->field == Field::kComm && record.event.caller != nullptr &&
             !record.HasText(Field::kComm)) {
    AppendText(record.caller.comm(), key);
  } else if (!IsNumeric(field->field)) {
    AppendText(record.Text(field->field), key);
  } else if (record.event.Has(field->field)) {
    *key += 'n';
    AppendLe(record.event.Get(field->field), key);
  } else {
    for (const format::ExtraArgument& extra : record.extra) {
      if (extra.id == field->arg_id)
        return AppendText(AsText(extra.value), key);
    }
    *key += '-';
  }
}

}  // namespace

QuasiGroups::QuasiGroups(const std::vector<std::string>& names)
    : names_(names) {
  for (const std::string& name : names_) fields_.push_back(FieldOf(name));
}

void QuasiGroups::Count(format::TraceContext* context,
                        std::vector<std::byte>&& block,
                        const format::Frame& frame) {
  if (frame.header.sequence == 0) return;
  format::BlockDecoder decoder(context);
  if (!decoder.Open(std::move(block), frame.header.sequence, frame.offset)) {
    return;
  }
  format::Record record;
  while (!decoder.at_end()) {
    decoder.Next(&record);
    group_.clear();
    for (const FieldInfo* const field : fields_) {
      AppendValue(record, field, &group_);
    }
    // Operations of one process come in rows.
    if (last_ && group_ == last_group_) {
      groups_.AddAgain(*last_);
      continue;
    }
    last_ = groups_.Add(group_);
    last_group_.swap(group_);
  }
}

std::string QuasiGroups::Text() const {
  if (groups_.size() == 0) return {};
  uint64_t smallest = UINT64_MAX;
  size_t single = 0;
  size_t small = 0;
  for (const uint64_t count : groups_.counts()) {
    smallest = std::min(smallest, count);
    single += count == 1;
    small += count < kSmallGroup;
  }
  return "\nOver (" + JoinWords(names_, ",") +
         "): " + std::to_string(groups_.size()) +
         " groups of operations, smallest k = " + std::to_string(smallest) +
         "; " + std::to_string(single) + " with one operation, " +
         std::to_string(small) + " with fewer than " +
         std::to_string(kSmallGroup) +
         (groups_.full() ? " (of the first million groups)" : "") + '\n';
}

}  // namespace tracefs::anonymize
