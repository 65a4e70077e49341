// What sorting a block by columns and merging them again have in common: which
// columns a block has and in what order. FORMAT.md section 11.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/event/field.h"
#include "tracefs/format/constants.h"

namespace tracefs {

inline constexpr size_t kColumnsHeadBytes = 8;    // shapes 4, messages 4
inline constexpr size_t kShapeHeadBytes = 4;      // message id 2, arguments 2
inline constexpr size_t kShapeArgumentBytes = 3;  // argument id 2, width 1
inline constexpr size_t kMaxShapes = 65536;       // their numbers are u16
inline constexpr size_t kMaxShapeArguments = 65536;  // of all shapes together

// The kind of a message: its id and those of its arguments, in their order.
struct MessageShape {
  uint16_t msg_id = 0;
  size_t count = 0;  // messages of the block that have it
  struct Slot {
    uint16_t arg_id = 0;  // as stored: with kHasLength
    uint8_t width = 0;    // bytes; 0 with kHasLength
    uint32_t column = 0;
    size_t variable_bytes = 0;  // of all its messages, where width is 0
  };
  std::vector<Slot> slots{};
};

// The values of one argument in all messages of one id.
struct LaidColumn {
  uint16_t arg_id = 0;
  uint16_t msg_id = 0;
  uint8_t width = 0;
  size_t count = 0;        // values
  size_t next = 0;         // how many of them were moved already
  uint32_t predictor = 0;  // shared by all columns of the argument
  size_t offset = 0;       // of its values, or of the planes of their lengths
  size_t text_offset = 0;  // of the next bytes of variable width
};

// Bytes a column takes without those of variable width.
inline size_t FixedBytes(const LaidColumn& column) {
  return column.count * (column.width == 0 ? 4 : column.width);
}

// The columns of a block, in their order in the stream, and what predicts them.
struct ColumnPlan {
  std::vector<LaidColumn> columns;
  size_t predictors = 0;
  // Predictors of ARG_TIME_NS and ARG_DURATION_NS; kNone where there is none.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t time = kNone;
  uint32_t duration = kNone;
};
// Makes the plan from the shapes and their counts, and tells their slots which
// column is theirs. Offsets are left to the caller. False if an argument has
// two widths.
bool PlanColumns(std::vector<MessageShape>& shapes, ColumnPlan* plan);

// The values that the next ones are expected to equal. An operation most often
// begins when the one before has been answered, so ARG_TIME_NS is expected to
// be the last one plus the duration that came after it; ARG_DURATION_NS is not
// predicted at all.
class Predictors {
 public:
  void Reset(const ColumnPlan& plan) {
    last_.assign(plan.predictors, 0);
    time_ = plan.time;
    duration_ = plan.duration;
  }
  uint64_t Of(uint32_t predictor) const { return last_[predictor]; }
  void Learn(uint32_t predictor, uint64_t value) {
    if (predictor != duration_) {
      last_[predictor] = value;
    } else if (time_ != ColumnPlan::kNone) {
      last_[time_] += value;
    }
  }

 private:
  std::vector<uint64_t> last_;
  uint32_t time_ = ColumnPlan::kNone;
  uint32_t duration_ = ColumnPlan::kNone;
};

}  // namespace tracefs
