// What an aggregate driver counts, and by what: the clauses between the braces
// of `aggregate = { … }` (config/REFERENCE.md, "aggregate").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {

// One part of a key.
struct AggregateKey {
  enum class From : uint8_t {
    kOp,      // the operation
    kNumber,  // a numeric field of the event
    kComm,    // name of the caller's process
    kExt,     // extension of the file's name
    kName,    // name of the file
    kDir,     // the directory it is in, or the first `depth` parts of that
    kPath,    // its path
  };
  From from{};
  uint16_t arg_id = 0;  // in an AGGREGATE message
  uint8_t field = 0;    // of kNumber: index of the field
  uint32_t depth = 0;   // of kDir; 0 = all of it
};

// What keys are written in order of. The words of `tracefs-dump --sort`.
enum class AggregateSort : uint8_t {
  kCount,
  kErrors,
  kBytes,
  kTime,  // all latencies together
  kMean,  // latency
  kMax,   // latency
};

struct AggregateSpec {
  static constexpr size_t kMaxKeys = 8;
  static constexpr uint64_t kMinEveryNs = 1'000'000'000;
  static constexpr uint64_t kMaxEveryNs = 24 * 3600 * uint64_t{1'000'000'000};
  static constexpr size_t kMaxTop = 10000;
  static constexpr size_t kMinMemory = size_t{256} << 10;
  static constexpr size_t kMaxMemory = size_t{256} << 20;

  std::vector<AggregateKey> keys;  // none: everything is one key
  bool errors = true;
  bool bytes = true;
  bool latency = true;
  bool size = false;
  uint64_t every_ns = 0;  // 0: only at the end
  AggregateSort sort{};
  bool ascending = false;  // the least first
  size_t top = 100;
  // What is beyond `top` is told by its key without what names files, as far as
  // that has no more keys than `top`; the rest of it, or all, in one sum.
  bool rest_without_files = false;
  size_t memory = size_t{3} << 20;  // of the table of each thread
};

// What it counts by, as the header of a trace says it: "op dir(2)".
std::string KeysText(const AggregateSpec& spec);

// Reads the clauses; `file` and `position`, of the first byte, are for
// messages. Errors are kInvalid: "file:line:column: what is wrong".
Result<AggregateSpec> ParseAggregateSpec(std::string_view text,
                                         std::string_view file,
                                         SourcePosition position);

}  // namespace tracefs
