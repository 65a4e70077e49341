#include "tracefs/replay/prepare.h"

#include <set>
#include <string>
#include <utility>

#include "tracefs/replay/plan_file.h"

namespace tracefs::replay {
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

void Check(const TreeEntry& entry, TargetTree& tree, Prepared* prepared) {
  if (!entry.Knows(TreeEntry::kChecksum) || entry.other_parent != kNoSlot) {
    return;
  }
  ++prepared->checked;
  const Result<uint32_t> now = tree.ChecksumOf(entry);
  if (now.ok() && *now == entry.checksum) return;
  ++prepared->other_contents;
  if (prepared->others.size() < kMostErrors) {
    prepared->others.push_back(entry.name);
  }
}

// `only`: of files of these names in DIR; null: all.
Status PlaceContents(int plan, const std::set<std::string>* only,
                     TargetTree* tree, Prepared* prepared) {
  PlanReader contents(plan, ChunkKind::kInitialData);
  while (true) {
    auto chunk = contents.Next();
    if (!chunk.ok()) return chunk.status();
    if (!*chunk) return {};
    for (size_t at = 0; at < (*chunk)->size();) {
      InitialData data;
      size_t size = 0;
      if (Status s =
              DecodeInitialData(ByteSpan(**chunk).subspan(at), &data, &size);
          !s.ok()) {
        return s;
      }
      at += size;
      if (only != nullptr &&
          (data.parent != kRootSlot || !only->contains(data.name))) {
        continue;
      }
      const Status placed = tree->PlaceData(data);
      if (!placed.ok()) Note(placed, prepared);
    }
  }
}

}  // namespace

Status ForEachInitial(int plan,
                      const std::function<void(const TreeEntry&)>& use) {
  PlanReader entries(plan, ChunkKind::kInitial);
  while (true) {
    auto chunk = entries.Next();
    if (!chunk.ok()) return chunk.status();
    if (!*chunk) return {};
    for (size_t at = 0; at < (*chunk)->size();) {
      TreeEntry entry;
      size_t size = 0;
      if (Status s = DecodeEntry(ByteSpan(**chunk).subspan(at),
                                 /*is_path=*/false, &entry, &size);
          !s.ok()) {
        return s;
      }
      at += size;
      use(entry);
    }
  }
}

Result<Prepared> PrepareTree(int plan, bool make, TargetTree* tree) {
  Prepared prepared;
  bool has_checksums = false;
  std::set<std::string> nameless;
  const auto place = [&](const TreeEntry& entry) {
    has_checksums |= entry.Knows(TreeEntry::kChecksum);
    const bool is_nameless = entry.Knows(TreeEntry::kNameless);
    if (is_nameless) nameless.insert(entry.name);
    Note(tree->Place(entry, make || is_nameless), &prepared);
  };
  if (Status s = ForEachInitial(plan, place); !s.ok()) return s;
  if (make || !nameless.empty()) {
    if (Status s =
            PlaceContents(plan, make ? nullptr : &nameless, tree, &prepared);
        !s.ok()) {
      return s;
    }
  }
  if (!has_checksums) return prepared;
  if (Status s = ForEachInitial(
          plan,
          [&](const TreeEntry& entry) { Check(entry, *tree, &prepared); });
      !s.ok()) {
    return s;
  }
  return prepared;
}

}  // namespace tracefs::replay
