// The index of a trace (FORMAT.md section 8f): found by the headers of its
// frames and a few blocks, without reading the rest.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/graph_index.h"
#include "tracefs/format/frame_places.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/reader/trace_input.h"

namespace tracefs {

struct LoadedGraph;

enum class IndexWish : uint8_t {
  kNone,  // the trace is read
  kUses,  // no times, facts and double writes
  kAll,
};

// One that belongs to its trace: made of all frames before it, after which no
// operation was recorded.
struct TraceIndex {
  std::string name;
  std::unique_ptr<reader::TraceInput> input;  // its header was read
  UniqueFd fd;
  std::unique_ptr<format::PayloadDecoder> decoder;
  format::FramePlaces places;
  format::IndexedPart part;
};

// kInvalid: there is none. kCorrupt: there is one that is not of this trace, or
// damaged; why.
Result<TraceIndex> FindIndex(const std::string& name,
                             const std::vector<std::string>& keys);

// The same for who makes one: its frames, header and decoder. kInvalid where it
// is no whole trace in one file.
Result<TraceIndex> OpenForIndex(const std::string& name,
                                const std::vector<std::string>& keys);
// Decodes a block of it. kCorrupt if it is damaged.
Status ReadBlock(TraceIndex& index, const format::FramePlace& place,
                 std::vector<std::byte>* block);

// The bytes of its sections, of all or the first alone. kCorrupt likewise.
using IndexSections = std::array<std::vector<std::byte>, build::kGraphSections>;
Result<IndexSections> SectionsOf(TraceIndex& index, bool all);

Result<LoadedGraph> GraphOf(TraceIndex& index, bool all);

}  // namespace tracefs
