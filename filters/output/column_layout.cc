#include "filters/output/column_layout.h"

#include <algorithm>

namespace tracefs {

bool PlanColumns(std::vector<MessageShape>& shapes, ColumnPlan* plan) {
  std::vector<LaidColumn>& columns = plan->columns;
  columns.clear();
  plan->predictors = 0;
  plan->time = plan->duration = ColumnPlan::kNone;

  const auto before = [](const LaidColumn& a, const LaidColumn& b) {
    return a.arg_id != b.arg_id ? a.arg_id < b.arg_id : a.msg_id < b.msg_id;
  };
  for (const MessageShape& shape : shapes) {
    for (const MessageShape::Slot& slot : shape.slots) {
      columns.push_back(
          {.arg_id = slot.arg_id, .msg_id = shape.msg_id, .width = slot.width});
    }
  }
  std::sort(columns.begin(), columns.end(), before);
  columns.erase(std::unique(columns.begin(), columns.end(),
                            [](const LaidColumn& a, const LaidColumn& b) {
                              return a.arg_id == b.arg_id &&
                                     a.msg_id == b.msg_id;
                            }),
                columns.end());

  for (MessageShape& shape : shapes) {
    for (MessageShape::Slot& slot : shape.slots) {
      const auto column = std::lower_bound(
          columns.begin(), columns.end(),
          LaidColumn{.arg_id = slot.arg_id, .msg_id = shape.msg_id}, before);
      if (column->width != slot.width) return false;
      column->count += shape.count;
      slot.column = static_cast<uint32_t>(column - columns.begin());
    }
  }

  for (size_t i = 0; i < columns.size(); ++i) {
    LaidColumn& column = columns[i];
    if (i == 0 || columns[i - 1].arg_id != column.arg_id) {
      ++plan->predictors;
    } else if (columns[i - 1].width != column.width) {
      return false;
    }
    column.predictor = static_cast<uint32_t>(plan->predictors - 1);
    if (column.width != 8) continue;
    if (column.arg_id == Info(Field::kTime).arg_id) {
      plan->time = column.predictor;
    } else if (column.arg_id == Info(Field::kLatency).arg_id) {
      plan->duration = column.predictor;
    }
  }
  return true;
}

}  // namespace tracefs
