#include "tracefs/tools/deps/trace_index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tracefs/base/file_io.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/index_piece.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/reader/trace_limits.h"
#include "tracefs/tools/deps/load_graph.h"

namespace tracefs {
namespace {

using format::FramePlace;
using format::FramePlaces;
using format::IndexPiece;
using format::MessageId;

// Blocks after an index, besides the last: states of files, heartbeats.
constexpr size_t kMostAfter = 64;
// Of one section, and beside what the trace itself has. It says in few words
// what is in the trace, which may be compressed; who claims more is hostile.
constexpr uint64_t kMostOfSection = uint64_t{1} << 30;
constexpr uint64_t kMostBytesForOne = 16;
constexpr uint64_t kFewBytes = uint64_t{1} << 20;

Status NotOfThisTrace() {
  return Status::Corrupt("its index was made of something else");
}

// The message of that kind in a block.
std::optional<format::Message> Find(MessageId id, ByteSpan block) {
  format::MessageCursor in(block);
  format::Message message;
  while (in.Next(&message)) {
    if (message.msg_id == static_cast<uint16_t>(id)) return message;
  }
  return std::nullopt;
}

// What the piece in a block says of the index it is of, if there is one.
std::optional<IndexPiece> PieceIn(const TraceIndex& index, ByteSpan block) {
  const auto message = Find(MessageId::kIndex, block);
  IndexPiece piece;
  if (!message ||
      !ReadIndexPiece(message->arguments,
                      index.input->trace(0).context().widths, &piece)) {
    return std::nullopt;
  }
  return piece;
}

Status OpenAll(const std::string& name, const std::vector<std::string>& keys,
               TraceIndex* index) {
  index->name = name;
  index->fd.Reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st;
  if (!index->fd || ::fstat(index->fd.get(), &st) != 0 ||
      !S_ISREG(st.st_mode)) {
    return Status::Invalid("no file");
  }
  Result<FramePlaces> places = format::FindFrames(index->fd.get());
  // A part, a snapshot, a damaged one.
  if (!places.ok()) return Status::Invalid(places.status().message());
  index->places = *std::move(places);
  if (index->places.end != static_cast<uint64_t>(st.st_size) ||
      index->places.frames.size() < 3) {
    return Status::Invalid("it is not whole");
  }
  Result<std::unique_ptr<reader::TraceInput>> input = reader::TraceInput::Open(
      {.traces = {name}, .keys = keys, .all_or_none = true}, {});
  if (!input.ok()) return Status::Invalid(input.status().message());
  index->input = *std::move(input);
  if (index->input->size() != 1 || !index->input->ReadFirst(0).ok()) {
    return Status::Invalid("it cannot be read");
  }
  auto decoder = index->input->trace(0).MakeDecoder();
  if (!decoder.ok()) return Status::Invalid(decoder.status().message());
  index->decoder = *std::move(decoder);
  return {};
}

}  // namespace

Result<TraceIndex> OpenForIndex(const std::string& name,
                                const std::vector<std::string>& keys) {
  TraceIndex index;
  if (Status s = OpenAll(name, keys, &index); !s.ok()) return s;
  return index;
}

Status ReadBlock(TraceIndex& index, const FramePlace& place,
                 std::vector<std::byte>* block) {
  std::vector<std::byte> frame(format::kFrameHeaderBytes +
                               place.header.payload_bytes);
  if (!ReadAllAt(index.fd.get(), frame, place.offset)) {
    return Status::Corrupt("its index cannot be read");
  }
  const auto view = format::FrameAt(frame, place.header.serial);
  if (!view) return Status::Corrupt("a block of its index is damaged");
  return index.decoder->Decode(view->header, view->payload, block);
}

Result<TraceIndex> FindIndex(const std::string& name,
                             const std::vector<std::string>& keys) {
  TraceIndex index;
  if (Status s = OpenAll(name, keys, &index); !s.ok()) return s;
  const std::vector<FramePlace>& frames = index.places.frames;
  std::vector<std::byte> block;
  if (Status s = ReadBlock(index, frames.back(), &block); !s.ok()) {
    return Status::Invalid(s.message());
  }
  const auto last = Find(MessageId::kFinal, block);
  format::FinalRecord final_record;
  if (!last) return Status::Invalid("it was cut");
  format::ReadFinal(last->arguments, &final_record);
  bool found = false;
  for (size_t back = 2; back < frames.size() && back < kMostAfter && !found;
       ++back) {
    if (!ReadBlock(index, frames[frames.size() - back], &block).ok()) break;
    format::MessageCursor in(block);
    format::Message head;
    format::BlockHead said;
    if (!in.Next(&head) || !format::ReadBlockHead(head.arguments, &said) ||
        said.events != 0) {
      break;
    }
    const std::optional<IndexPiece> piece = PieceIn(index, block);
    if (!piece) continue;
    if (piece->of != build::kGraphForm) break;  // of a later version
    index.part = piece->part;
    found = true;
  }
  if (!found) return Status::Invalid("it has no index");
  const uint64_t before = index.part.frames;
  if (before == 0 || before >= frames.size() ||
      index.places.PartOf(before, index.part.events) != index.part ||
      final_record.events != index.part.events ||
      final_record.blocks != frames.size() ||
      !final_record.loss_totals.empty()) {
    return NotOfThisTrace();
  }
  return index;
}

Result<IndexSections> SectionsOf(TraceIndex& index, bool all) {
  IndexSections sections;
  std::array<uint32_t, build::kGraphSections> have{};
  std::array<uint32_t, build::kGraphSections> pieces{};
  const std::vector<FramePlace>& frames = index.places.frames;
  std::vector<std::byte> block;
  const uint64_t most =
      std::min(kMostOfSection, kFewBytes + kMostBytesForOne * index.part.bytes);
  for (size_t i = index.part.frames; i < frames.size(); ++i) {
    if (!all && pieces[0] != 0 && have[0] == pieces[0]) break;
    if (Status s = ReadBlock(index, frames[i], &block); !s.ok()) {
      return Status::Corrupt(s.message());
    }
    const std::optional<IndexPiece> piece = PieceIn(index, block);
    if (!piece) continue;
    const size_t section = piece->section;
    if (piece->part != index.part || section >= sections.size() ||
        piece->piece != have[section] || piece->piece >= piece->pieces ||
        sections[section].size() + piece->data.size() > most) {
      return NotOfThisTrace();
    }
    pieces[section] = piece->pieces;
    ++have[section];
    sections[section].insert(sections[section].end(), piece->data.begin(),
                             piece->data.end());
  }
  for (size_t section = 0; section < (all ? sections.size() : 1); ++section) {
    if (have[section] == 0 || have[section] != pieces[section]) {
      return Status::Corrupt("its index is not whole");
    }
  }
  return sections;
}

Result<LoadedGraph> GraphOf(TraceIndex& index, bool all) {
  Result<IndexSections> sections = SectionsOf(index, all);
  if (!sections.ok()) return sections.status();
  Result<build::BuildGraph> graph =
      build::DecodeGraph({(*sections)[0], (*sections)[1], (*sections)[2]});
  if (!graph.ok()) return graph.status();
  if (all && !graph->has_times()) {
    return Status::Corrupt("its index has no times");
  }
  LoadedGraph loaded;
  loaded.graph = *std::move(graph);
  const format::TraceContext& trace = index.input->trace(0).context();
  loaded.mount_point = trace.description.header.Get("mount.point");
  loaded.source = trace.description.header.Get("backing.path");
  for (const std::string& limit : reader::LimitsOf(trace)) {
    loaded.limits.push_back(index.input->NameOf(0) + ": " + limit);
  }
  return loaded;
}

}  // namespace tracefs
