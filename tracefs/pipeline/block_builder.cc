#include "tracefs/pipeline/block_builder.h"

#include <algorithm>

#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

using format::ArgId;
using format::MessageId;

uint64_t Hash(uint64_t x) {
  x *= 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

uint16_t ArgOf(Field f) { return Info(f).arg_id; }

}  // namespace

void Block::Reset() {
  kept.bytes.store(0, std::memory_order_release);
  writer.Clear();
  // Every block begins with its BLOCK message, written when it is closed.
  writer.Advance(format::kBlockInfoBytes);
  events = processes = counted = first_ns = last_ns = 0;
  source = 0;
  by_op = {};
}

BlockBuilder::BlockBuilder(size_t block_bytes, uint32_t source, uint32_t owner)
    : source_(source),
      owner_(owner),
      block_(std::make_unique<Block>(std::max(block_bytes, kMinBlockBytes))),
      paths_(2 * kPathSets) {
  block_->Reset();
  block_->kept.owner = owner_;
}

void BlockBuilder::Commit(const Event& event) {
  Block& b = *block_;
  const uint64_t begin = event.Get(Field::kTime);
  if (survive::Area::OfProcess() != nullptr) [[unlikely]]
    Keep(event);
  if (b.events == 0 || begin < b.first_ns) b.first_ns = begin;
  b.last_ns = std::max(b.last_ns, begin);
  ++b.events;
  ++b.by_op[event.before ? 1 : 0][Index(event.op)];
}

void BlockBuilder::Rollback() {
  format::MessageWriter& w = block_->writer;
  w.Truncate(mark_);
  next_path_id_ = marked_path_id_;
  next_process_id_ = marked_process_id_;
  // Definitions may have gone with it; the rest are forgotten too, which is
  // simple and rare: a block rolls back once, when it is full.
  ForgetDefinitions();
}

uint32_t BlockBuilder::PathId(EventResolver& resolver, uint64_t node,
                              uint32_t version, uint64_t rename_epoch) {
  if (node == 0) return 0;
  if (rename_epoch != rename_epoch_) {
    rename_epoch_ = rename_epoch;
    ForgetDefinitions();
  }
  return DefinePath(resolver, node, version, 0);
}

bool BlockBuilder::HasPath(uint64_t node, uint32_t version,
                           uint64_t rename_epoch) const {
  if (node == 0) return true;
  if (rename_epoch != rename_epoch_) return false;
  const PathEntry* set = &paths_[2 * (Hash(node) % kPathSets)];
  return std::any_of(set, set + 2, [&](const PathEntry& entry) {
    return entry.node == node && entry.version == version &&
           entry.block == generation_;
  });
}

uint32_t BlockBuilder::DefinePath(EventResolver& resolver, uint64_t node,
                                  uint32_t version, int depth) {
  PathEntry* set = &paths_[2 * (Hash(node) % kPathSets)];
  for (int i = 0; i < 2; ++i) {
    if (set[i].node == node && set[i].version == version &&
        set[i].block == generation_) {
      return set[i].id;
    }
  }
  NodeLink link;
  if (depth > kMaxPathDepth || !resolver.LinkOf(node, &link)) return 0;
  uint32_t parent_id = 0;
  if (link.parent != 0) {
    parent_id =
        DefinePath(resolver, link.parent, link.parent_version, depth + 1);
    if (parent_id == 0) return 0;
  }
  format::MessageWriter& w = block_->writer;
  const uint32_t id = next_path_id_++;
  w.Begin(static_cast<uint16_t>(MessageId::kDefPath));
  w.Put<uint32_t>(ArgId::kPathId, id);
  if (parent_id != 0) w.Put<uint32_t>(ArgId::kParentPathId, parent_id);
  w.PutText(ArgOf(Field::kName), link.name.view());
  if (!w.End()) {
    full_ = true;
    return 0;
  }
  // The older entry of a set makes room.
  if (set[0].block == generation_ && set[1].block == generation_) {
    set[0] = set[1];
    set[1] = {node, version, generation_, id};
  } else {
    set[set[0].block == generation_ ? 1 : 0] = {node, version, generation_, id};
  }
  return id;
}

uint32_t BlockBuilder::ProcessId(const CallerInfo& caller,
                                 const CallerDetails* details,
                                 const ProcessFields& fields) {
  ProcessEntry& entry = processes_[Hash(caller.serial) % kProcessSlots];
  const bool detailed = details != nullptr && fields.details();
  const uint64_t known = detailed ? details->number : 0;
  if (entry.serial == caller.serial && entry.block == generation_ &&
      entry.details == known) {
    return entry.id;
  }
  format::MessageWriter& w = block_->writer;
  const uint32_t id = next_process_id_++;
  w.Begin(static_cast<uint16_t>(MessageId::kDefProcess));
  w.Put<uint32_t>(ArgId::kProcessId, id);
  if (fields.pid) {
    w.Put<uint32_t>(ArgOf(Field::kPid), caller.pid);
    w.Put<uint64_t>(ArgId::kStartTime, caller.start_time);
  }
  if (fields.ppid) w.Put<uint32_t>(ArgOf(Field::kPpid), caller.ppid);
  if (fields.sid) w.Put<uint32_t>(ArgOf(Field::kSid), caller.sid);
  if (fields.pgid) w.Put<uint32_t>(ArgOf(Field::kPgid), caller.pgid);
  if (fields.comm) w.PutText(ArgOf(Field::kComm), caller.comm());
  if (detailed) {
    const auto put = [&](bool wanted, Field field) {
      const std::string* const text = details->Find(field);
      if (!wanted || text == nullptr) return;
      w.PutText(ArgOf(field), std::string_view(*text).substr(0, kMaxDetail));
    };
    put(fields.exe, Field::kExe);
    put(fields.cgroup, Field::kCgroup);
    put(fields.tty, Field::kTty);
    put(fields.cmdline, Field::kCmdline);
  }
  if (!w.End()) {
    full_ = true;
    return 0;
  }
  entry = {caller.serial, known, generation_, id};
  return id;
}

std::unique_ptr<Block> BlockBuilder::Take(std::unique_ptr<Block> replacement) {
  replacement->Reset();
  ForgetDefinitions();
  next_path_id_ = next_process_id_ = 1;
  std::swap(block_, replacement);
  block_->kept.owner = owner_;
  replacement->source = source_;
  return replacement;
}

}  // namespace tracefs
