// A BuildGraph as bytes, and back: what a trace that has an index keeps of
// itself (FORMAT.md section 8f), so that questions about it need not read it.
//
// In sections, as most questions need the first alone: who ran what, which
// files each execution used and how. What is not among them is not needed by
// any question about a build: environments, control groups, and sizes and times
// that only exports write.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/build/build_graph.h"
#include "tracefs/format/index_piece.h"
#include "tracefs/format/report.h"

namespace tracefs::build {

// What it is, with the version of its form: one of another form is not read.
inline constexpr std::string_view kGraphForm = "deps 2";

enum class GraphSection : uint8_t {
  kCore,
  kFacts,  // of files at the end, and files that were written twice
  kTimes,  // when each execution read and wrote each file
};
inline constexpr size_t kGraphSections = 3;

std::string EncodeGraph(const BuildGraph& graph, GraphSection section);

// The graph of these sections; those that are empty are left out: then it has
// no times, facts and double writes. The bytes may be anything: kCorrupt where
// they are no graph. Memory: a small multiple of theirs.
Result<BuildGraph> DecodeGraph(
    const std::array<ByteSpan, kGraphSections>& sections);

// Whether an index may be made of a trace that was read so far: nothing is
// missing, and nothing is to be said besides the answers. Its end may be
// missing.
bool MayIndex(const format::ReadStats& stats);

// Calls `put` with INDEX messages that hold all sections, a block of them each
// time: the index of that part of a trace, whose graph it is.
void WriteGraphIndex(const BuildGraph& graph, const format::IndexedPart& part,
                     const std::function<void(ByteSpan messages)>& put);

}  // namespace tracefs::build
