#include "filters/output/columns.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "filters/output/column_layout.h"
#include "filters/output/scratch.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs {
namespace {

// Stores a value's bytes in as many planes, `stride` apart.
template <typename T>
void StorePlanes(std::byte* at, size_t stride, T value) {
  for (size_t i = 0; i < sizeof value; ++i) {
    at[i * stride] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <typename T>
T LoadPlanes(const std::byte* at, size_t stride) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<T>(static_cast<T>(at[i * stride]) << (8 * i));
  }
  return value;
}

}  // namespace

class ColumnSorter::Sorting {
 public:
  ByteSpan Sort(ByteSpan block) {
    shapes_.clear();
    shapes_of_id_.clear();
    shape_of_message_.clear();
    shape_arguments_ = 0;
    if (!FindShapes(block) || shape_of_message_.empty()) return {};
    PlanColumns(shapes_, &plan_);
    const size_t size = Place();
    if (size > block.size()) return {};
    const std::span<std::byte> out = memory_.Get(size);
    WriteShapes(out.data());
    WriteColumns(block, out.data());
    return out;
  }

 private:
  // First pass: the shape of each message, and how much they hold.
  bool FindShapes(ByteSpan block) {
    format::MessageCursor messages(block);
    format::Message message;
    while (messages.Next(&message)) {
      std::vector<uint32_t>& candidates = shapes_of_id_[message.msg_id];
      size_t i = 0;
      while (i < candidates.size() &&
             !Fits(message, shapes_[candidates[i]].slots)) {
        ++i;
      }
      if (i == candidates.size()) {
        if (shapes_.size() == kMaxShapes || !AddShape(message)) return false;
        candidates.push_back(static_cast<uint32_t>(shapes_.size() - 1));
        if (!Fits(message, shapes_.back().slots)) return false;
      }
      // What came last comes next, most often.
      const uint32_t found = candidates[i];
      std::swap(candidates[i], candidates[0]);
      MessageShape& shape = shapes_[found];
      ++shape.count;
      for (size_t k = 0; k < shape.slots.size(); ++k) {
        shape.slots[k].variable_bytes += lengths_[k];
      }
      shape_of_message_.push_back(static_cast<uint16_t>(found));
    }
    return !messages.malformed();
  }

  // True if the message has exactly these arguments. Notes how long those of
  // variable width are.
  bool Fits(const format::Message& message,
            const std::vector<MessageShape::Slot>& slots) {
    const std::byte* at = message.arguments.data();
    size_t left = message.arguments.size();
    if (lengths_.size() < slots.size()) lengths_.resize(slots.size());
    for (size_t k = 0; k < slots.size(); ++k) {
      if (left < 2 || LoadLe<uint16_t>(at) != slots[k].arg_id) return false;
      size_t head = 2;
      size_t size = slots[k].width;
      lengths_[k] = 0;
      if (size == 0) {
        if (left < 6) return false;
        head = 6;
        size = LoadLe<uint32_t>(at + 2);
        lengths_[k] = size;
      }
      if (left - head < size) return false;
      at += head + size;
      left -= head + size;
    }
    return left == 0;
  }

  bool AddShape(const format::Message& message) {
    MessageShape shape{.msg_id = message.msg_id};
    format::ArgumentCursor arguments(message.arguments, widths_);
    format::Argument argument;
    while (arguments.Next(&argument)) {
      const size_t width = argument.has_length ? 0 : argument.value.size();
      if (width > UINT8_MAX || shape.slots.size() == UINT16_MAX ||
          ++shape_arguments_ > kMaxShapeArguments) {
        return false;
      }
      shape.slots.push_back(
          {.arg_id = static_cast<uint16_t>(
               argument.id | (argument.has_length ? format::kHasLength : 0)),
           .width = static_cast<uint8_t>(width)});
    }
    if (arguments.malformed()) return false;
    shapes_.push_back(std::move(shape));
    return true;
  }

  // Where each column is. Returns the size of everything.
  size_t Place() {
    size_t end = kColumnsHeadBytes;
    std::vector<size_t> variable(plan_.columns.size());
    for (const MessageShape& shape : shapes_) {
      end += kShapeHeadBytes + shape.slots.size() * kShapeArgumentBytes;
      for (const MessageShape::Slot& slot : shape.slots) {
        variable[slot.column] += slot.variable_bytes;
      }
    }
    numbers_offset_ = end;
    end += 2 * shape_of_message_.size();
    for (size_t i = 0; i < plan_.columns.size(); ++i) {
      LaidColumn& column = plan_.columns[i];
      column.offset = end;
      column.text_offset = end + FixedBytes(column);
      end = column.text_offset + variable[i];
    }
    return end;
  }

  void WriteShapes(std::byte* out) {
    StoreLe<uint32_t>(out, static_cast<uint32_t>(shapes_.size()));
    StoreLe<uint32_t>(out + 4, static_cast<uint32_t>(shape_of_message_.size()));
    std::byte* at = out + kColumnsHeadBytes;
    for (const MessageShape& shape : shapes_) {
      StoreLe<uint16_t>(at, shape.msg_id);
      StoreLe<uint16_t>(at + 2, static_cast<uint16_t>(shape.slots.size()));
      at += kShapeHeadBytes;
      for (const MessageShape::Slot& slot : shape.slots) {
        StoreLe<uint16_t>(at, slot.arg_id);
        at[2] = static_cast<std::byte>(slot.width);
        at += kShapeArgumentBytes;
      }
    }
    const size_t messages = shape_of_message_.size();
    for (size_t i = 0; i < messages; ++i) {
      StorePlanes<uint16_t>(out + numbers_offset_ + i, messages,
                            shape_of_message_[i]);
    }
  }

  // Second pass. The first one has checked every length.
  void WriteColumns(ByteSpan block, std::byte* out) {
    predictors_.Reset(plan_);
    const std::byte* at = block.data();
    for (const uint16_t number : shape_of_message_) {
      at += format::kMessageHeaderBytes;
      for (const MessageShape::Slot& slot : shapes_[number].slots) {
        LaidColumn& column = plan_.columns[slot.column];
        at += 2;
        const size_t i = column.next++;
        if (slot.width == 8) {
          const auto value = LoadLe<uint64_t>(at);
          StorePlanes<uint64_t>(out + column.offset + i, column.count,
                                value - predictors_.Of(column.predictor));
          predictors_.Learn(column.predictor, value);
        } else if (slot.width == 4) {
          const auto value = LoadLe<uint32_t>(at);
          StorePlanes<uint32_t>(
              out + column.offset + i, column.count,
              value - static_cast<uint32_t>(predictors_.Of(column.predictor)));
          predictors_.Learn(column.predictor, value);
        } else if (slot.width != 0) {
          std::memcpy(out + column.offset + i * slot.width, at, slot.width);
        } else {
          const auto length = LoadLe<uint32_t>(at);
          at += 4;
          StorePlanes<uint32_t>(out + column.offset + i, column.count, length);
          if (length != 0) std::memcpy(out + column.text_offset, at, length);
          column.text_offset += length;
          at += length;
        }
        at += slot.width;
      }
    }
  }

  const format::ArgumentWidths& widths_ = format::BuiltInWidths();
  std::vector<MessageShape> shapes_;
  std::unordered_map<uint16_t, std::vector<uint32_t>> shapes_of_id_;
  std::vector<uint16_t> shape_of_message_;
  size_t shape_arguments_ = 0;
  std::vector<size_t> lengths_;  // what Fits() found last
  size_t numbers_offset_ = 0;
  ColumnPlan plan_;
  Predictors predictors_;
  Scratch memory_;
};

ColumnSorter::ColumnSorter() : sorting_(std::make_unique<Sorting>()) {}
ColumnSorter::~ColumnSorter() = default;
ByteSpan ColumnSorter::Sort(ByteSpan block) { return sorting_->Sort(block); }

namespace {

Status Wrong(const char* what) {
  return Status::Corrupt(std::string("the columns of compressed data ") + what);
}

// Merging one block. Nothing is believed before it was checked; once Place()
// has found that everything fits exactly, Write() cannot leave its bounds.
class Merging {
 public:
  Merging(ByteSpan columns, std::span<std::byte> block)
      : columns_(columns), block_(block) {}

  Status Merge() {
    if (Status s = ReadShapes(); !s.ok()) return s;
    if (Status s = ReadNumbers(); !s.ok()) return s;
    if (!PlanColumns(shapes_, &plan_)) {
      return Wrong("have an argument of two widths");
    }
    if (Status s = Place(); !s.ok()) return s;
    Write();
    return Status::Ok();
  }

 private:
  Status ReadShapes() {
    ByteCursor in(columns_);
    const auto shapes = in.TakeLe<uint32_t>();
    const auto messages = in.TakeLe<uint32_t>();
    if (!messages || *shapes > kMaxShapes) return Wrong("have no shapes");
    messages_ = *messages;
    size_t arguments = 0;
    for (uint32_t i = 0; i < *shapes; ++i) {
      MessageShape shape;
      const auto msg_id = in.TakeLe<uint16_t>();
      const auto count = in.TakeLe<uint16_t>();
      if (!count) return Wrong("end within the shapes");
      arguments += *count;
      if (arguments > kMaxShapeArguments) {
        return Wrong("have more shapes than any writer makes");
      }
      shape.msg_id = *msg_id;
      const auto slots = in.Take(*count * kShapeArgumentBytes);
      if (!slots) return Wrong("end within the shapes");
      for (size_t k = 0; k < *count; ++k) {
        const std::byte* at = slots->data() + k * kShapeArgumentBytes;
        const MessageShape::Slot slot{.arg_id = LoadLe<uint16_t>(at),
                                      .width = LoadLe<uint8_t>(at + 2)};
        if ((slot.width == 0) != ((slot.arg_id & format::kHasLength) != 0)) {
          return Wrong("have an argument whose width is wrong");
        }
        shape.slots.push_back(slot);
      }
      shapes_.push_back(std::move(shape));
    }
    numbers_offset_ = in.offset();
    return Status::Ok();
  }

  Status ReadNumbers() {
    // Each message is at least six bytes of the block.
    if (messages_ > block_.size() / format::kMessageHeaderBytes ||
        (columns_.size() - numbers_offset_) / 2 < messages_) {
      return Wrong("name more messages than there are");
    }
    for (size_t i = 0; i < messages_; ++i) {
      const size_t number = NumberOf(i);
      if (number >= shapes_.size()) return Wrong("name a shape that is not");
      ++shapes_[number].count;
    }
    return Status::Ok();
  }

  uint16_t NumberOf(size_t message) const {
    return LoadPlanes<uint16_t>(columns_.data() + numbers_offset_ + message,
                                messages_);
  }

  Status Place() {
    size_t at = numbers_offset_ + 2 * messages_;
    size_t made = messages_ * format::kMessageHeaderBytes;
    for (LaidColumn& column : plan_.columns) {
      // No product overflows: a count is at most messages x slots, both below
      // the size of the input.
      const size_t fixed = FixedBytes(column);
      if (columns_.size() - at < fixed) return Wrong("end within a column");
      column.offset = at;
      at += fixed;
      made += fixed + 2 * column.count;
      if (column.width != 0) continue;
      column.text_offset = at;
      uint64_t text = 0;
      for (size_t i = 0; i < column.count; ++i) {
        text += LoadPlanes<uint32_t>(columns_.data() + column.offset + i,
                                     column.count);
      }
      if (columns_.size() - at < text) return Wrong("end within a text");
      at += text;
      made += text;
    }
    if (at != columns_.size() || made != block_.size()) {
      return Wrong("do not make the length that their head promises");
    }
    return Status::Ok();
  }

  void Write() {
    predictors_.Reset(plan_);
    std::byte* out = block_.data();
    for (size_t m = 0; m < messages_; ++m) {
      const MessageShape& shape = shapes_[NumberOf(m)];
      std::byte* const head = out;
      out += format::kMessageHeaderBytes;
      for (const MessageShape::Slot& slot : shape.slots) {
        StoreLe<uint16_t>(out, slot.arg_id);
        out = WriteValue(plan_.columns[slot.column], out + 2);
      }
      StoreLe<uint16_t>(head, shape.msg_id);
      StoreLe<uint32_t>(head + 2, static_cast<uint32_t>(out - head));
    }
  }

  std::byte* WriteValue(LaidColumn& column, std::byte* out) {
    const size_t i = column.next++;
    const std::byte* const in = columns_.data() + column.offset;
    if (column.width == 8) {
      const uint64_t value = LoadPlanes<uint64_t>(in + i, column.count) +
                             predictors_.Of(column.predictor);
      StoreLe<uint64_t>(out, value);
      predictors_.Learn(column.predictor, value);
      return out + 8;
    }
    if (column.width == 4) {
      const auto value =
          static_cast<uint32_t>(LoadPlanes<uint32_t>(in + i, column.count) +
                                predictors_.Of(column.predictor));
      StoreLe<uint32_t>(out, value);
      predictors_.Learn(column.predictor, value);
      return out + 4;
    }
    if (column.width != 0) {
      std::memcpy(out, in + i * column.width, column.width);
      return out + column.width;
    }
    const auto length = LoadPlanes<uint32_t>(in + i, column.count);
    StoreLe<uint32_t>(out, length);
    out += 4;
    if (length != 0) {
      std::memcpy(out, columns_.data() + column.text_offset, length);
    }
    column.text_offset += length;
    return out + length;
  }

  const ByteSpan columns_;
  const std::span<std::byte> block_;
  std::vector<MessageShape> shapes_;
  size_t messages_ = 0;
  size_t numbers_offset_ = 0;
  ColumnPlan plan_;
  Predictors predictors_;
};

}  // namespace

Status MergeColumns(ByteSpan columns, std::span<std::byte> block) {
  return Merging(columns, block).Merge();
}

}  // namespace tracefs
