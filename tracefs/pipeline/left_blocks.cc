// The blocks that were being filled when a daemon was killed: where a later one
// finds them, and what it takes of them (tracefs/survive/area.h).
#include <algorithm>
#include <atomic>
#include <cstring>

#include "tracefs/pipeline/block_builder.h"
#include "tracefs/survive/area.h"

namespace tracefs {

using survive::Area;

namespace {

// What is behind a block in its place.
constexpr size_t kBehind = (sizeof(Block) + 63) / 64 * 64;

}  // namespace

void* Block::TakePlace(size_t bytes) {
  Area* const area = Area::OfProcess();
  void* const place = area == nullptr ? nullptr : area->TakeBlock();
  return place != nullptr ? place : ::operator new(bytes);
}

void Block::GivePlace(void* block) {
  Area* const area = Area::OfProcess();
  if (area != nullptr && area->IsBlock(block)) {
    area->GiveBlock(block);
  } else {
    ::operator delete(block);
  }
}

Block::Memory Block::MemoryFor(size_t bytes) {
  const Area* const area = Area::OfProcess();
  if (area != nullptr && area->IsBlock(this) &&
      kBehind + bytes <= Area::kBlockBytes) {
    return {reinterpret_cast<std::byte*>(this) + kBehind, Delete{false}};
  }
  return {new std::byte[bytes], Delete{}};
}

void BlockBuilder::Keep(const Event& event) {
  const Block& b = *block_;
  const uint64_t begin = event.Get(Field::kTime);
  Block::Kept& kept = block_->kept;
  kept.events = b.events + 1;
  kept.first_ns = b.events == 0 ? begin : std::min(begin, b.first_ns);
  kept.last_ns = std::max(b.last_ns, begin);
  kept.phase = event.before ? 1 : 0;
  kept.op = static_cast<uint32_t>(Index(event.op));
  kept.count = b.by_op[kept.phase][kept.op] + 1;
  kept.written_as.store(0, std::memory_order_relaxed);
  kept.bytes.store(b.writer.size(), std::memory_order_release);
}

std::unique_ptr<Block> Block::Left(void* place, uint32_t owner,
                                   uint64_t sequence) {
  auto& left = *static_cast<Block*>(place);
  Kept& kept = left.kept;
  const uint64_t bytes = kept.bytes.load();
  const uint64_t written_as = kept.written_as.load();
  if (kept.owner != owner || bytes <= format::kBlockInfoBytes ||
      bytes > Area::kBlockBytes - kBehind || kept.phase > 1 ||
      kept.op >= kOpCount || (written_as != 0 && written_as - 1 < sequence)) {
    return nullptr;
  }
  // It was not written: another one may get that number before this one is
  // written, and its writer die in between.
  kept.written_as.store(0);
  // Room for what a tracer adds when it writes it.
  constexpr size_t kMore = 4096;
  auto block = std::make_unique<Block>(bytes + kMore);
  std::memcpy(block->memory.get(),
              static_cast<const std::byte*>(place) + kBehind, bytes);
  block->writer.Truncate(bytes);
  block->source = left.source;
  block->events = kept.events;
  block->first_ns = kept.first_ns;
  block->last_ns = kept.last_ns;
  block->by_op = left.by_op;
  block->by_op[kept.phase][kept.op] = kept.count;
  return block;
}

}  // namespace tracefs
