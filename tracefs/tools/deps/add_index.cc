#include "tracefs/tools/deps/add_index.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "filters/output/chain.h"
#include "tracefs/base/append_le.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/replacement.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/message_writer.h"

namespace tracefs {
namespace {

using format::FramePlace;
using format::FramePlaces;

// How blocks become payloads; nothing where keys have a part in it.
struct PlainChain {
  bool compressed = false;
};
Result<PlainChain> PlainChainOf(std::string_view text) {
  PlainChain chain;
  std::vector<ChainStage> stages = ParseChain(text);
  if (!stages.empty()) stages.pop_back();  // the driver
  for (const ChainStage& stage : stages) {
    if (stage.name == "compress" && !chain.compressed) {
      chain.compressed = true;
    } else if (stage.name != "async" && stage.name != "throttle") {
      return Status::Invalid(
          "what is added to it later is not protected as the rest is (" +
          stage.name + "); record it with tracefs-run --index");
    }
  }
  return chain;
}

// Writes what comes after the part that is copied.
class Tail {
 public:
  Tail(int fd, const FramePlaces& places, const format::IndexedPart& part,
       PlainChain chain)
      : fd_(fd),
        serial_(places.preamble.serial),
        chain_(chain),
        at_(part.bytes),
        next_(part.frames) {}

  Status Write(ByteSpan block) {
    std::string payload;
    if (chain_.compressed) {
      // As it is: FORMAT.md section 11.1, method 0.
      AppendLe(uint32_t{0}, &payload);
      AppendLe(static_cast<uint32_t>(block.size()), &payload);
    }
    payload += AsText(block);
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::EncodeFrameHeader(header, {.sequence = next_++, .serial = serial_},
                              AsBytes(payload));
    if (Status s = WriteAllAt(fd_, header, at_, "the trace"); !s.ok()) return s;
    at_ += header.size();
    Status status = WriteAllAt(fd_, AsBytes(payload), at_, "the trace");
    at_ += payload.size();
    return status;
  }
  // So many blocks, with the one that comes.
  uint64_t count() const { return next_ + 1; }

 private:
  const int fd_;
  const format::Serial serial_;
  const PlainChain chain_;
  uint64_t at_;
  uint64_t next_;
};

Status CopyBefore(int from, uint64_t end, int to) {
  std::vector<std::byte> piece(size_t{1} << 20);
  for (uint64_t at = 0; at < end;) {
    const auto size =
        static_cast<size_t>(std::min<uint64_t>(piece.size(), end - at));
    const std::span<std::byte> bytes(piece.data(), size);
    if (!ReadAllAt(from, bytes, at)) {
      return Status::System(errno, "the trace cannot be read");
    }
    if (Status s = WriteAllAt(to, bytes, at, "the trace"); !s.ok()) return s;
    at += size;
  }
  return {};
}

// FINAL's count of blocks, in the last block.
bool SetBlockCount(std::vector<std::byte>* block, uint64_t count) {
  format::MessageCursor in(*block);
  format::Message message;
  while (in.Next(&message)) {
    if (message.msg_id != static_cast<uint16_t>(format::MessageId::kFinal)) {
      continue;
    }
    format::ArgumentCursor arguments(message.arguments,
                                     format::BuiltInWidths());
    format::Argument argument;
    while (arguments.Next(&argument)) {
      if (argument.id != static_cast<uint16_t>(format::ArgId::kBlockCount) ||
          !argument.is<uint64_t>()) {
        continue;
      }
      StoreLe(block->data() + (argument.value.data() - block->data()), count);
      return true;
    }
  }
  return false;
}

}  // namespace

Status AddIndex(const std::string& name, const std::vector<std::string>& keys,
                const LoadedGraph& loaded) {
  Result<TraceIndex> opened = OpenForIndex(name, keys);
  if (!opened.ok()) return opened.status();
  TraceIndex& trace = *opened;
  const FramePlaces& places = trace.places;
  const Result<PlainChain> chain = PlainChainOf(places.preamble.chain);
  if (!chain.ok()) return chain.status();
  if (!loaded.may_index || loaded.blocks != places.frames.size()) {
    return Status::Invalid("an index is of a whole trace, and this is none");
  }
  std::vector<std::byte> last;
  if (Status s = ReadBlock(trace, places.frames.back(), &last); !s.ok()) {
    return s;
  }
  format::MessageCursor in(last);
  format::Message first;
  format::BlockHead head;
  if (!in.Next(&first) || !format::ReadBlockHead(first.arguments, &head) ||
      head.events != 0) {
    return Status::Invalid("its last block has operations");
  }
  head.first_ns = head.last_ns = 0;

  const format::IndexedPart part =
      places.PartOf(places.frames.size() - 1, loaded.events);
  Result<Replacement> place =
      Replacement::Begin(name, Replacement::Kind::kFile);
  if (!place.ok()) return place.status();
  if (!place->replaces()) return Status::Invalid("it is no file");
  if (Status s = CopyBefore(trace.fd.get(), part.bytes, place->fd()); !s.ok()) {
    return s;
  }
  Tail tail(place->fd(), places, part, *chain);
  Status status;
  std::vector<std::byte> memory(format::kBlockInfoBytes +
                                2 * format::IndexPiece::kMostBytes);
  WriteGraphIndex(loaded.graph, part, [&](ByteSpan messages) {
    format::MessageWriter out(memory);
    const bool fits =
        format::WriteBlockHead(out, head) && out.PutMessages(messages);
    if (!fits) status = Status::Invalid("a piece is too long");
    if (status.ok()) status = tail.Write(out.bytes());
  });
  if (status.ok() && !SetBlockCount(&last, tail.count())) {
    status = Status::Invalid("its end does not say how many blocks it has");
  }
  if (status.ok()) status = tail.Write(last);
  return status.ok() ? place->Commit() : status;
}

}  // namespace tracefs
