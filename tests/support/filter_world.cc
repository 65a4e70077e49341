#include "tests/support/filter_world.h"

#include <array>
#include <cerrno>

namespace tracefs::testing {
namespace {

Result<std::optional<uint32_t>> Find(const std::map<std::string, uint32_t>& ids,
                                     const std::string& name) {
  if (name == "broken") return Status::System(EIO, "look up broken");
  const auto found = ids.find(name);
  if (found == ids.end()) return std::optional<uint32_t>();
  return std::optional<uint32_t>(found->second);
}

constexpr uint64_t kSomeNumbers[] = {
    0,    1,     2,       4,          5,          6,          7,
    63,   64,    99,      100,        1000,       4095,       4096,
    4097, 65536, 1048576, 2147483648, 4294967295, 4294967296, UINT64_MAX};

}  // namespace

Result<std::optional<uint32_t>> FakeNames::UserId(
    const std::string& name) const {
  return Find({{"root", 0}, {"alice", 5}, {"bob", 1000}}, name);
}

Result<std::optional<uint32_t>> FakeNames::GroupId(
    const std::string& name) const {
  return Find({{"root", 0}, {"staff", 1}, {"users", 100}}, name);
}

FilterWorld::FilterWorld() {
  const auto caller = [&](std::string_view comm, uint32_t pid) {
    CallerInfo info;
    info.tid = 1000 + static_cast<uint32_t>(callers.size());
    info.pid = pid;
    info.sid = pid / 10;
    info.pgid = pid / 2;
    comm.copy(info.comm_bytes.data(), info.comm_bytes.size());
    info.comm_size = static_cast<uint8_t>(comm.size());
    callers.push_back(info);
  };
  caller("sh", 100);
  caller("make", 200);
  caller("kworker/0:1", 2);
  nodes_ = {
      {1, {0, {}, 4}},
      {2, {1, {"d"}, 4}},
      {3, {1, {"a.c", "b.h"}, 8}},  // two links
      {4, {2, {"Makefile"}, 8}},
      {5, {2, {"e"}, 4}},
      {6, {5, {"a"}, 8}},
      {7, {5, {"x.tar.gz"}, 8}},
      {8, {2, {".profile", "a", "foo.tex"}, 10}},
      {9, {0, {}, 8}},  // no name is known any more
  };
}

void FilterWorld::ResolveCaller(Event& event) {
  ++callers_resolved;
  if (!event.Has(Field::kTid)) return;
  const uint64_t index = event.Get(Field::kTid) - 1000;
  if (index >= callers.size()) return;
  const CallerInfo& info = callers[index];
  event.caller = &info;
  event.Set(Field::kPid, info.pid);
  event.Set(Field::kSid, info.sid);
  event.Set(Field::kPgid, info.pgid);
}

void FilterWorld::ResolveAttributes(Event& event) {
  ++attributes_resolved;
  if (event.node == 0 || event.node == 9) return;
  struct stat st = {};
  st.st_ino = event.node;
  st.st_mode = static_cast<mode_t>(nodes_[event.node].type << 12 |
                                   (event.node % 2 == 0 ? 0644 : 0755));
  st.st_nlink = nodes_[event.node].names.size();
  st.st_size = static_cast<off_t>(event.node * 1000);
  st.st_uid = event.node % 2 == 0 ? 0 : 5;
  st.st_gid = static_cast<gid_t>(event.node % 3);
  event.SetAttributes(st);
}

bool FilterWorld::LinkOf(uint64_t node, NodeLink* link) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  if (node != 1 && found->second.names.empty()) return false;
  link->parent = found->second.parent;
  link->parent_version = 0;
  link->name.Set(node == 1 ? "" : found->second.names[0]);
  return true;
}

void FilterWorld::ForEachName(uint64_t node, void* context,
                              void (*visit)(void* context,
                                            std::string_view name)) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  for (const std::string& name : found->second.names) visit(context, name);
}

Event FilterWorld::Random(Op op, std::mt19937& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Event event;
  event.op = op;
  event.resolver = this;
  const uint64_t fields = Info(op).request_fields;
  for (size_t i = 0; i < kNumericFieldCount; ++i) {
    const auto field = static_cast<Field>(i);
    if ((fields & Bit(field)) == 0 || below(16) == 0) continue;
    uint64_t value = kSomeNumbers[below(std::size(kSomeNumbers))];
    if (Info(field).width < 8) {
      value &= (uint64_t{1} << (8 * Info(field).width)) - 1;
    }
    event.Set(field, value);
  }
  if (event.Has(Field::kTid)) event.Set(Field::kTid, 1000 + below(4));
  if (event.Has(Field::kUid)) {
    constexpr uint64_t kUids[] = {0, 1, 5, 6, 1000, 4294967295};
    event.Set(Field::kUid, kUids[below(std::size(kUids))]);
  }
  if (event.Has(Field::kFlags)) event.Set(Field::kFlags, below(4096));
  constexpr std::array<std::string_view, 8> kOperands = {
      "a", "a.c", "b.h", "foo.tex", ".tex", "x.", "new", "Makefile"};
  // Lookups may fail, and then there is no file.
  event.node = FindsFile(op) && below(3) == 0 ? 0 : 1 + below(9);
  event.present &= ~(Bit(Field::kInode) | Bit(Field::kType));
  if (event.node != 0) {
    event.Set(Field::kInode, event.node);
    if (below(16) != 0) event.Set(Field::kType, nodes_[event.node].type);
  }
  constexpr uint64_t kDirectories[] = {1, 2, 5, 77};
  if (FindsFile(op)) event.parent = kDirectories[below(4)];
  if (HasName(op)) event.name = kOperands[below(kOperands.size())];
  if (op == Op::rename_ || op == Op::link_) {
    event.new_parent = kDirectories[below(4)];
    event.new_name = kOperands[below(kOperands.size())];
  }
  if (op == Op::copy_file_range_) {
    event.new_parent = 1 + below(9);
    event.Set(Field::kInodeOut, event.new_parent);
  }
  if (below(2) == 0) {
    constexpr int kErrors[] = {ENOENT, EIO, EACCES};
    event.SetResult(-1, kErrors[below(3)]);
  } else {
    event.SetResult(static_cast<int64_t>(below(3) * 4096), 0);
  }
  if (below(8) != 0) event.Set(Field::kLatency, below(4) * 1'000'000);
  if (below(2) == 0) event.NeedAttributes();
  attributes_resolved = 0;
  return event;
}

Event FilterWorld::BeforeRun(const Event& event, std::mt19937& random) {
  Event before = event;
  before.present &=
      ~(Bit(Field::kResult) | Bit(Field::kErrno) | Bit(Field::kLatency));
  // Attributes may be there, but old.
  for (const Field field : {Field::kMode, Field::kNlink, Field::kSize,
                            Field::kFuid, Field::kFgid}) {
    before.present &= ~Bit(field);
    if (random() % 4 == 0) before.Set(field, random() % 8);
  }
  before.attributes_resolved = false;
  if (FindsFile(event.op) && random() % 4 != 0) {
    before.node = 0;
    before.present &= ~(Bit(Field::kInode) | Bit(Field::kType));
  }
  return before;
}

void FilterWorld::SetNameBits(const NameTable& table, Event& event) const {
  event.name_generation = table.generation();
  event.name_bits = 0;
  if (!event.name.empty()) event.name_bits |= table.Match(event.name);
  if (!event.new_name.empty()) event.name_bits |= table.Match(event.new_name);
  for (const uint64_t node : {event.node, event.second_file()}) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) continue;
    for (const std::string& name : found->second.names) {
      event.name_bits |= table.Match(name);
    }
  }
}

}  // namespace tracefs::testing
