#include "tests/unit/reader/reading.h"

namespace tracefs::test {
namespace {

std::string Cell(const ArrowSchema& schema, const ArrowArray& array,
                 int64_t row) {
  const auto bit = [row](const void* bits) {
    return (static_cast<const uint8_t*>(bits)[row / 8] >> row % 8 & 1) != 0;
  };
  if (array.buffers[0] != nullptr && !bit(array.buffers[0])) return "NULL";
  const void* const data = array.buffers[1];
  if (schema.dictionary != nullptr) {
    const int32_t index = static_cast<const int32_t*>(data)[row];
    const auto* const offsets =
        static_cast<const int32_t*>(array.dictionary->buffers[1]);
    return std::string(
        static_cast<const char*>(array.dictionary->buffers[2]) + offsets[index],
        static_cast<size_t>(offsets[index + 1] - offsets[index]));
  }
  const std::string format = schema.format;
  if (format == "b") return bit(data) ? "true" : "false";
  if (format == "l" || format == "tsn:") {
    return std::to_string(static_cast<const int64_t*>(data)[row]);
  }
  if (format == "L") {
    return std::to_string(static_cast<const uint64_t*>(data)[row]);
  }
  if (format == "I") {
    return std::to_string(static_cast<const uint32_t*>(data)[row]);
  }
  return "?" + format;
}

}  // namespace

Table ReadTable(tracefs_reader* reader, const char* columns) {
  Table table;
  ArrowArrayStream stream;
  if (tracefs_reader_columns(reader, columns, &stream) != TRACEFS_ITEM) {
    table.error = -1;
    return table;
  }
  ArrowSchema schema;
  EXPECT_EQ(stream.get_schema(&stream, &schema), 0);
  EXPECT_STREQ(schema.format, "+s");
  for (int64_t i = 0; i < schema.n_children; ++i) {
    table.names.emplace_back(schema.children[i]->name);
    table.formats.emplace_back(schema.children[i]->format);
  }
  for (;;) {
    ArrowArray array;
    table.error = stream.get_next(&stream, &array);
    if (table.error != 0 || array.release == nullptr) break;
    ++table.batches;
    for (int64_t row = 0; row < array.length; ++row) {
      auto& cells = table.rows.emplace_back();
      for (int64_t i = 0; i < array.n_children; ++i) {
        cells.push_back(Cell(*schema.children[i], *array.children[i], row));
      }
    }
    array.release(&array);
    EXPECT_EQ(array.release, nullptr);
  }
  schema.release(&schema);
  stream.release(&stream);
  return table;
}

}  // namespace tracefs::test
