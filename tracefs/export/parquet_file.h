// ParquetFile: a Parquet file as it is written, row group by row group; the
// footer comes last. Flat: columns of numbers, flags and text.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/export/parquet_column.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

// A file begins and ends with it.
inline constexpr std::string_view kParquetMagic = "PAR1";

struct ParquetOptions {
  uint32_t group_rows = 131'072;
  size_t group_bytes = size_t{64} << 20;  // of memory; then it ends earlier
  int level = 1;                          // of zstd
  // A thread makes the pages of a row group while the next one is filled: half
  // the time on two processors, and twice the memory.
  bool packs_beside = false;
};

// Used by one thread.
class ParquetFile {
 public:
  // `out` outlives it.
  ParquetFile(OutputBuffer& out,
              std::vector<std::pair<std::string, ParquetType>> columns,
              const ParquetOptions& options);

  ParquetColumn& column(size_t i) { return columns_[i]; }
  // The number that a row of the group has that is being filled.
  uint32_t row() const { return rows_; }
  // How many groups there were before: each starts its columns afresh.
  size_t groups() const { return groups_.size(); }
  void EndRow();
  // Many rows that are put column by column: before, which may begin a new
  // group, and after.
  void MakeRoom(uint32_t rows);
  void EndRows(uint32_t rows) { rows_ += rows; }
  // From the next row on.
  void SetGroupBytes(size_t bytes) { options_.group_bytes = bytes; }
  // Rows are in order of this column, so far.
  void SetSorted(size_t column) { sorted_ = static_cast<int>(column); }
  void SetUnsorted() { sorted_ = -1; }

  // Writes the footer.
  void Finish(
      const std::vector<std::pair<std::string, std::string>>& properties);
  const Status& status() const { return status_; }

 private:
  struct Group {
    uint64_t offset = 0;
    uint32_t rows = 0;
    std::vector<ParquetChunk> chunks;
  };
  struct Pages {
    Status status;
    std::string bytes;
    std::vector<ParquetChunk> chunks;
  };
  using Columns = std::vector<ParquetColumn>;

  Pages Pack(uint32_t rows);
  void FlushGroup();
  void AwaitPages();
  size_t memory_bytes() const;
  void Write(std::string_view bytes);

  OutputBuffer& out_;
  ParquetOptions options_;
  Columns columns_;
  uint64_t offset_ = 0;
  uint32_t rows_ = 0;
  uint64_t all_rows_ = 0;
  int sorted_ = -1;
  std::vector<Group> groups_;
  Status status_;
  // Those of the group before, while its pages are made; else they are empty.
  Columns packed_;
  ParquetPacker packer_;  // of the thread beside
  std::future<Pages> pages_;
};

}  // namespace tracefs
