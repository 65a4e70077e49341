// The compression filter (paper section 2.4), both directions. Unlike the
// paper's it ends its stream with each block, so that a damaged block costs
// one block and a trace that was cut is readable up to there.
//
// A block that does not become smaller is stored as it is. FORMAT.md section
// 11 has the bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "filters/output/stage_decoder.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

enum class CompressAlgorithm : uint8_t { kZlib = 1, kZstd = 2 };

struct CompressOptions {
  CompressAlgorithm algorithm = CompressAlgorithm::kZlib;
  // 1 to MaxCompressLevel; 0 = the default, which with zstd is higher for
  // blocks that end short of their size because time has passed.
  int level = 0;
  // Sort blocks of messages by columns first (columns.h): about half the size.
  bool columns = true;
  size_t block_bytes = 0;
};

// 9 for zlib, 19 for zstd (the levels above want gigabytes from a reader).
int MaxCompressLevel(CompressAlgorithm algorithm);

std::unique_ptr<OutputFilter> MakeCompress(const CompressOptions& options,
                                           std::unique_ptr<OutputFilter> next);

// Decodes what any CompressOptions made.
std::unique_ptr<StageDecoder> MakeCompressDecoder();

// --- The payload: this head, then what the method made.
inline constexpr size_t kCompressHeadBytes = 8;  // method 1, zero 3, length 4
// Behind it, with columns: their length 4.
inline constexpr size_t kColumnsLengthBytes = 4;
enum class CompressMethod : uint8_t {
  kStored = 0,
  kZlib = 1,
  kZstd = 2,
  kZlibColumns = 3,
  kZstdColumns = 4,
};
// No block claims to be larger than this for what it holds.
inline constexpr uint64_t MaxUncompressedBytes(uint64_t compressed_bytes) {
  return 65536 + 4096 * compressed_bytes;
}

}  // namespace tracefs
