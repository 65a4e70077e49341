// PlanBuilder: of which bytes of its files a replay has what was recorded. All
// others it makes up, which is said.
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {
namespace {

constexpr size_t kMostUnknownFiles = 1000;  // that are named

}  // namespace

// [begin, end) of the file is not what it was: it has bytes of the trace, or
// some that the plan makes up.
void PlanBuilder::Replaced(NodeId file, uint64_t begin, uint64_t end,
                           bool recorded) {
  Node& node = model_.node(file);
  if (begin >= end || !node.touched) return;
  // Too many pieces: less is known.
  if (node.initial) (void)covered_[file].Add(begin, end);
  if (recorded) {
    const auto made_up = made_up_.find(file);
    if (made_up != made_up_.end()) made_up->second.Remove(begin, end);
  } else if (!made_up_[file].Add(begin, end)) {
    node.lacks_bytes = true;
  }
}

void PlanBuilder::Resized(NodeId file, uint64_t size) {
  Node& node = model_.node(file);
  Grew(file, size);
  if (size < node.size || !KnowsSize(file)) {
    Replaced(file, size, UINT64_MAX, /*recorded=*/true);
  }
  if (size == 0) node.lacks_bytes = false;
  node.size = size;
  node.known |= TreeEntry::kSize;
}

// The file reaches to `begin`, at least: if it did not, what lies between are
// zeros that were not there before.
void PlanBuilder::Grew(NodeId file, uint64_t begin) {
  const Node& node = model_.node(file);
  if (KnowsSize(file) && begin > node.size) {
    Replaced(file, node.size, begin, /*recorded=*/true);
  }
}

bool PlanBuilder::KnowsSize(NodeId id) const {
  const Node& node = model_.node(id);
  return !node.initial || (node.known & TreeEntry::kSize) != 0;
}

// Whether the plan has all of them that were there before, and still are.
bool PlanBuilder::HasInitialBytes(NodeId id, uint64_t begin,
                                  uint64_t end) const {
  const Node& node = model_.node(id);
  if (KnowsSize(id)) end = std::min(end, node.size);
  if (!node.initial || begin >= end) return true;
  const auto covered = covered_.find(id);
  return covered != covered_.end() && covered->second.Covers(begin, end);
}

// Whether a replay gives the file these bytes as they were.
bool PlanBuilder::HasBytes(NodeId id, uint64_t begin, uint64_t end) const {
  const Node& node = model_.node(id);
  if (KnowsSize(id)) end = std::min(end, node.size);
  if (begin >= end) return true;
  if (node.lacks_bytes) return false;
  const auto made_up = made_up_.find(id);
  if (made_up != made_up_.end() && made_up->second.Touches(begin, end)) {
    return false;
  }
  return HasInitialBytes(id, begin, end);
}

bool PlanBuilder::KnowsAttributes(NodeId id) const {
  constexpr uint32_t kBoth = TreeEntry::kMode | TreeEntry::kOwner;
  const Node& node = model_.node(id);
  return !node.initial || (node.known & kBoth) == kBoth;
}

// Whether it can be made as it is, once it is removed.
bool PlanBuilder::CanBeMadeAgain(NodeId id) const {
  const Node& node = model_.node(id);
  if (!KnowsAttributes(id)) return false;
  if (S_ISREG(node.mode)) return HasAllBytes(id);
  return !S_ISLNK(node.mode) || !links_before_.contains(id);
}

// An ACL that nothing tells of.
bool PlanBuilder::MayHaveAcl(NodeId id) const {
  const Node& node = model_.node(id);
  return node.initial && !node.has_xattrs && !S_ISLNK(node.mode);
}

// What a trace says of it is not believed before it is used.
void PlanBuilder::NoteKept(const Observed& seen, Action* a) {
  a->not_kept = seen.Get32(Field::kNotKept);
  if (seen.Has(Field::kKeptMtime)) {
    a->flags |= kHasMtime;
    a->kept_mtime_ns = static_cast<int64_t>(seen.Get(Field::kKeptMtime));
  }
  constexpr uint64_t kMost = INT64_MAX;  // of an offset
  if (!seen.Has(Field::kKeptLength) || seen.Get(Field::kKeptLength) > kMost ||
      seen.Get(Field::kKeptOffset) > kMost ||
      seen.Get(Field::kKeptAt) > kMost) {
    return;
  }
  a->flags |= kWasKept;
  a->kept = seen.Get(Field::kKept);
  a->kept_at = seen.Get(Field::kKeptAt);
  a->kept_offset = seen.Get(Field::kKeptOffset);
  a->kept_length = seen.Get(Field::kKeptLength);
  if (seen.Has(Field::kKeptChecksum)) a->flags |= kKeptCopy;
  a->kept_check = seen.Has(Field::kKeptChecksum)
                      ? seen.Get(Field::kKeptChecksum)
                      : seen.Get(Field::kKeptChanged);
}

void PlanBuilder::LacksBytes(NodeId file, Action* a) const {
  a->flags |= kUnknownBytes;
  if (!KnowsAttributes(file)) a->flags &= ~kWasKept;
}

// What was read, or copied, of a file that was there before: bytes that the
// plan puts there to begin with.
Status PlanBuilder::ReadInitial(const Observed& seen, NodeId file,
                                const Action& action) {
  Node& node = model_.node(file);
  if (!node.initial || !seen.ok()) return {};
  const uint64_t begin = seen.Get(Field::kOffset);
  const uint64_t count = seen.Get(Field::kResult);
  const uint64_t end = begin + count;
  // The end of a file of unknown size.
  if (!KnowsSize(file) && count < seen.Get(Field::kLength) &&
      end >= node.size) {
    node.size = end;
    node.known |= TreeEntry::kSize;
  }
  const auto first = initial_names_.find(file);
  const bool has_name =
      node.first_link != kNoLink || first != initial_names_.end();
  if (!seen.has_data || !has_name) {
    if (!action.Has(kHasHash) || !has_name) NoteSource(file, begin, end);
    return {};
  }
  InitialName at;
  if (first != initial_names_.end()) {
    at = first->second;
  } else {
    const Link& link = model_.link(node.first_link);
    at = {model_.node(link.parent).slot, link.name};
  }
  Status status;
  const auto give = [&](uint64_t from, uint64_t to) {
    if (!status.ok() || out_ == nullptr) return;
    status = out_->AddInitialData(
        {.parent = at.parent,
         .name = at.name,
         .offset = from,
         .bytes = seen.data.subspan(from - begin, to - from)});
  };
  (void)covered_[file].Add(begin, end, give);
  return status;
}

// Bytes were read, or copied, that were there before and are not in the trace.
void PlanBuilder::NoteSource(NodeId file, uint64_t begin, uint64_t end) {
  if (HasInitialBytes(file, begin, end)) return;
  if (model_.node(file).lacks_content) return;
  if (!checked_.contains(file)) ++header_.unknown_sources;
  NoteUnknown(file);
}

void PlanBuilder::NoteUnknown(NodeId id) {
  model_.node(id).lacks_content = true;
  ++lacks_.files_without_content;
  if (unknown_files_.size() >= kMostUnknownFiles) return;
  std::string path;
  if (!model_.PathOf(id, &path)) path = "(a file without a name)";
  unknown_files_.push_back(std::move(path));
}

// Files that are there in the end with contents that the trace does not have.
void PlanBuilder::CollectUnknown() {
  model_.ForEachLink([&](const Link& link) {
    const Node& node = model_.node(link.node);
    if (!node.touched || !S_ISREG(node.mode) || node.lacks_content) return;
    if (!HasInitialBytes(link.node, 0, UINT64_MAX)) NoteUnknown(link.node);
  });
}

}  // namespace tracefs::replay
