#include "tracefs/tools/replay/prepare.h"

#include <utility>

#include "tracefs/replay/plan_file.h"

namespace tracefs {
namespace {

constexpr size_t kMostErrors = 10;

void Note(const Status& status, Prepared* prepared) {
  ++prepared->entries;
  if (status.ok()) return;
  ++prepared->failed;
  if (prepared->errors.size() < kMostErrors) {
    prepared->errors.push_back(status.message());
  }
}

}  // namespace

Result<Prepared> PrepareTree(int plan, bool make, replay::TargetTree* tree) {
  Prepared prepared;
  replay::PlanReader entries(plan, replay::ChunkKind::kInitial);
  while (true) {
    auto chunk = entries.Next();
    if (!chunk.ok()) return chunk.status();
    if (!*chunk) break;
    for (size_t at = 0; at < (*chunk)->size();) {
      replay::TreeEntry entry;
      size_t size = 0;
      if (Status s = replay::DecodeEntry(ByteSpan(**chunk).subspan(at),
                                         /*is_path=*/false, &entry, &size);
          !s.ok()) {
        return s;
      }
      at += size;
      Note(tree->Place(entry, make), &prepared);
    }
  }
  if (!make) return prepared;
  replay::PlanReader contents(plan, replay::ChunkKind::kInitialData);
  while (true) {
    auto chunk = contents.Next();
    if (!chunk.ok()) return chunk.status();
    if (!*chunk) return prepared;
    for (size_t at = 0; at < (*chunk)->size();) {
      replay::InitialData data;
      size_t size = 0;
      if (Status s = replay::DecodeInitialData(ByteSpan(**chunk).subspan(at),
                                               &data, &size);
          !s.ok()) {
        return s;
      }
      at += size;
      const Status placed = tree->PlaceData(data);
      if (!placed.ok()) Note(placed, &prepared);
    }
  }
}

}  // namespace tracefs
