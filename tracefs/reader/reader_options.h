// What a Reader is made from: the C interface's tracefs_options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/output/key_ring.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/reader/event_filter.h"
#include "tracefs/reader/finding.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs::reader {

// Gets a text and the number of its field; true, and another text, if that
// takes its place. It holds until the next call.
using TextHook = std::function<bool(uint32_t field, std::string_view text,
                                    std::string_view* other)>;
// Gets what was found, with the number of the trace.
using FindingSink = std::function<void(const Finding&)>;

struct ReaderOptions {
  struct Input {
    std::string name;  // of a file or folder, or for messages
    std::shared_ptr<const UniqueFd> fd = nullptr;
    std::optional<ByteSpan> memory = std::nullopt;
  };
  std::vector<Input> inputs;
  std::shared_ptr<KeyRing> keys = std::make_shared<KeyRing>();
  std::shared_ptr<const EventFilter> filter;
  TimeWindow range;
  bool follow = false;
  bool file_order = false;
  bool no_operations = false;  // among messages
  size_t memory_bytes = format::TraceMerger::kDefaultMemoryBytes;
  unsigned threads = 0;  // 0: as many as there are processors
  size_t batch_rows = 65536;
  uint64_t strict_kinds = 0;  // bits, by FindingKind
  uint64_t lenient_kinds = 0;
  FindingSink on_finding;
  TextHook on_text;
};

}  // namespace tracefs::reader
