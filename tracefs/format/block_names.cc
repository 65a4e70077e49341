// BlockDecoder: names and paths.
#include <cstring>

#include "tracefs/format/block_decoder.h"

namespace tracefs::format {
namespace {

constexpr int kMaxDepth = 2048;  // as in event.cc

}  // namespace

bool BlockDecoder::LinkOf(uint64_t node, NodeLink* link) {
  if (node == 0 || node > paths_.size()) return false;
  const PathDefinition& path = paths_[node - 1];
  link->parent = path.parent;  // kUndefined is not a node either
  link->parent_version = 0;
  link->name.Set(
      AsText(ByteSpan(block_).subspan(path.name_offset, path.name_size)));
  return true;
}

void BlockDecoder::ForEachName(uint64_t node, void* context,
                               void (*visit)(void* context,
                                             std::string_view name)) {
  NodeLink link;
  if (!LinkOf(node, &link) || link.parent == 0) return;
  visit(context, link.name.view());
}

bool BlockDecoder::ForEachAncestor(Event& event, void* context,
                                   bool (*visit)(void* context, uint32_t pid,
                                                 std::string_view comm)) {
  constexpr int kMaxAncestors = 64;
  constexpr uint32_t kThreadsOfTheKernel =
      2;  // all are below it, it is of none
  uint32_t pid = 0;
  if (event.Has(Field::kPpid)) {
    pid = static_cast<uint32_t>(event.Get(Field::kPpid));
  } else {
    const auto self =
        trace_->processes->find(static_cast<uint32_t>(event.Get(Field::kPid)));
    if (!event.Has(Field::kPid) || self == trace_->processes->end() ||
        self->second.ppid == 0) {
      return false;
    }
    pid = self->second.ppid;
  }
  for (int depth = 0; depth < kMaxAncestors; ++depth) {
    const auto found = trace_->processes->find(pid);
    const bool known = found != trace_->processes->end();
    const std::string_view comm = known ? found->second.comm : "";
    if (!visit(context, pid, comm)) return true;
    if (pid <= 1) return true;
    if (!known) return false;
    if (found->second.ppid == 0) return pid == kThreadsOfTheKernel;
    pid = found->second.ppid;
  }
  return false;
}

std::string_view BlockDecoder::Path(uint64_t path_id, std::string_view name,
                                    PathBuffer& buffer) const {
  char* const begin = buffer.bytes.data();
  char* const end = begin + buffer.bytes.size();
  char* front = end;
  const auto prepend = [&](std::string_view component) {
    if (static_cast<size_t>(front - begin) < component.size() + 1) {
      return false;
    }
    front -= component.size();
    std::memcpy(front, component.data(), component.size());
    *--front = '/';
    return true;
  };
  const auto view = [&] {
    return std::string_view(front, static_cast<size_t>(end - front));
  };
  if (!name.empty() && !prepend(name)) return view();
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (path_id == 0 || path_id > paths_.size()) {
      return depth == 0 ? std::string_view() : view();
    }
    const PathDefinition& path = paths_[path_id - 1];
    if (path.parent == 0) {
      if (front == end) prepend("");
      return view();
    }
    const std::string_view component =
        AsText(ByteSpan(block_).subspan(path.name_offset, path.name_size));
    if (!prepend(component.substr(0, NameBuffer().bytes.size()))) {
      return view();
    }
    path_id = path.parent;
  }
  return view();
}

std::string_view PathOf(const Record& record, PathBuffer& buffer) {
  if (record.HasText(Field::kPath)) return record.Text(Field::kPath);
  const Event& event = record.event;
  if (event.parent != 0) {
    return record.block->Path(event.parent, event.name, buffer);
  }
  if (event.node != 0) return record.block->Path(event.node, {}, buffer);
  return {};
}

std::string_view NewPathOf(const Record& record, PathBuffer& buffer) {
  if (record.HasText(Field::kNewPath)) return record.Text(Field::kNewPath);
  const Event& event = record.event;
  if (event.new_parent == 0) return {};
  return record.block->Path(event.new_parent, event.new_name, buffer);
}

}  // namespace tracefs::format
