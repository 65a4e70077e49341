#include "tracefs/query/group_rows.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs::query {
namespace {

// In the memory of the text that was there before.
void SetText(std::string_view text, Value* value) {
  value->present = true;
  value->text.assign(text);
}

}  // namespace

void GroupRows::MakeOf(const GroupStore::Entry& entry, Row* row) const {
  const size_t first_value = std::max<size_t>(spec_.keys.size(), 1);
  row->resize(first_value + spec_.values.size() + (store_->exact() ? 0 : 1));
  ByteCursor in(AsBytes(entry.key));
  for (size_t k = 0; k < spec_.keys.size(); ++k) {
    const GroupKey& key = spec_.keys[k];
    Value& value = (*row)[k];
    const auto mark = in.Take(1);
    if (!mark || (*mark)[0] == std::byte{0}) {
      value = {};
      continue;
    }
    const uint64_t number = LoadLe<uint64_t>((*in.Take(8)).data());
    if (!key.is_number()) {
      SetText(AsText(*in.Take(number)), &value);
    } else {
      value = Value::Number(number);
    }
  }
  if (spec_.keys.empty()) SetText("all", row->data());
  for (size_t i = 0; i < spec_.values.size(); ++i) {
    (*row)[first_value + i] =
        ValueOf(spec_.values[i], entry.tally, entry.details.get(), all_);
  }
  if (!store_->exact()) row->back() = Value::Number(entry.missed);
}

}  // namespace tracefs::query
