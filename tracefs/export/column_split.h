// ColumnSplit: the columns of a table by where their values come from, so that
// of an operation only those are looked at that it has: most are empty.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tracefs/export/columns.h"

namespace tracefs {

class ColumnSplit {
 public:
  // `place`: what stands for the column where its values go.
  void Add(const Column& column, size_t place) {
    const Slot slot = {&column, place};
    switch (column.source) {
      case ColumnSource::kField:
        break;
      case ColumnSource::kBefore:
      case ColumnSource::kPath2:
      case ColumnSource::kMore:
        return seldom_.push_back(slot);
      default:
        return others_.push_back(slot);
    }
    by_field_[Index(column.field)] = slot;
    if (!IsNumeric(column.field)) {
      texts_ |= 1u << format::Record::TextIndex(column.field);
    } else if (column.type == ColumnType::kWord ||
               column.type == ColumnType::kFlag) {
      words_ |= Bit(column.field);
    } else {
      numbers_ |= Bit(column.field);
    }
  }

  // Calls `number(place, value)` for each field that is a number and there, and
  // `other(column, place, key)` for all else that may be there, in no order.
  // Values with the same key are the same, but for kNoKey.
  static constexpr uint64_t kNoKey = UINT64_MAX;
  template <typename Number, typename Other>
  void ForEach(const format::Record& record, Number number, Other other) const {
    const Event& event = record.event;
    for (uint64_t bits = event.present & numbers_; bits != 0;
         bits &= bits - 1) {
      const auto field = static_cast<size_t>(std::countr_zero(bits));
      number(by_field_[field].place, event.value[field]);
    }
    for (uint64_t bits = event.present & words_; bits != 0; bits &= bits - 1) {
      const auto field = static_cast<size_t>(std::countr_zero(bits));
      const Slot& slot = by_field_[field];
      // What a system call is called depends on the trace.
      const bool same = slot.column->type == ColumnType::kWord &&
                        slot.column->field != Field::kSyscall;
      other(*slot.column, slot.place, same ? event.value[field] : kNoKey);
    }
    for (uint32_t bits = record.text_present & texts_; bits != 0;
         bits &= bits - 1) {
      const Slot& slot = by_field_[kNumericFieldCount +
                                   static_cast<size_t>(std::countr_zero(bits))];
      other(*slot.column, slot.place, kNoKey);
    }
    for (const Slot& slot : others_) {
      other(
          *slot.column, slot.place,
          slot.column->source == ColumnSource::kOp ? Index(event.op) : kNoKey);
    }
    const bool seldom =
        event.before || event.new_parent != 0 || !event.new_name.empty() ||
        record.HasText(Field::kNewPath) || !record.extra.empty();
    if (!seldom) return;
    for (const Slot& slot : seldom_) other(*slot.column, slot.place, kNoKey);
  }

 private:
  struct Slot {
    const Column* column = nullptr;
    size_t place = 0;
  };
  std::array<Slot, kFieldCount> by_field_{};
  uint64_t numbers_ = 0;
  uint64_t words_ = 0;
  uint32_t texts_ = 0;
  std::vector<Slot> others_;
  std::vector<Slot> seldom_;  // what few operations have
};

}  // namespace tracefs
