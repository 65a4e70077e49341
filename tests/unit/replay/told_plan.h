// Plans of operations that are told one by one, as a trace would tell them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/event/file_states.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/format/state_message.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/replay/action.h"
#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay::test {

using TraceBuilder = tracefs::test::TraceBuilder;

inline constexpr uint64_t kRootInode = 1;
// Modes.
inline constexpr uint32_t kFile = S_IFREG | 0644;
inline constexpr uint32_t kFolder = S_IFDIR | 0755;

struct Told {
  Event event;
  bool selected = true;
  bool marked = false;
};

// One that lacks nothing.
inline Event Whole(Op op, uint64_t at_us, uint64_t for_us = 1) {
  Event e;
  e.op = op;
  e.Set(Field::kTime, TraceBuilder::kMonotonicNs + at_us * 1000);
  e.Set(Field::kLatency, for_us * 1000);
  e.Set(Field::kTid, 7);
  e.Set(Field::kUid, 0);
  e.Set(Field::kGid, 0);
  e.SetResult(0, 0);
  return e;
}
inline Event Named(Op op, const char* name, uint64_t inode, uint64_t at_us,
                   uint64_t for_us = 1) {
  Event e = Whole(op, at_us, for_us);
  e.Set(Field::kParentInode, kRootInode);
  e.name = name;
  if (inode != 0) e.Set(Field::kInode, inode);
  return e;
}
inline Event Create(const char* name, uint64_t inode, uint64_t at_us,
                    uint64_t for_us = 1) {
  Event e = Named(Op::create_, name, inode, at_us, for_us);
  e.Set(Field::kArgMode, kFile);
  e.Set(Field::kFlags, O_RDWR);
  e.Set(Field::kFh, inode);
  return e;
}
inline Event Write(uint64_t inode, uint64_t at_us, std::string_view bytes) {
  Event e = Whole(Op::write_, at_us);
  e.Set(Field::kInode, inode);
  e.Set(Field::kFh, inode);
  e.Set(Field::kOffset, 0);
  e.Set(Field::kLength, bytes.size());
  e.SetResult(static_cast<int64_t>(bytes.size()), 0);
  e.data = AsBytes(bytes);
  return e;
}
inline Event Read(uint64_t inode, uint64_t at_us, std::string_view bytes) {
  Event e = Write(inode, at_us, bytes);
  e.op = Op::read_;
  return e;
}
inline Event Of(Op op, uint64_t inode, uint64_t at_us) {
  Event e = Whole(op, at_us);
  e.Set(Field::kInode, inode);
  return e;
}
inline Event Looked(const char* name, uint64_t inode, uint64_t at_us,
                    uint32_t mode, uint64_t size = 0, uint64_t links = 1) {
  Event e = Named(Op::lookup_, name, inode, at_us);
  e.Set(Field::kMode, mode);
  e.Set(Field::kSize, size);
  e.Set(Field::kNlink, links);
  return e;
}
inline Event Moved(const char* name, const char* new_name, uint64_t inode,
                   uint64_t at_us) {
  Event e = Named(Op::rename_, name, inode, at_us);
  e.Set(Field::kNewParentInode, kRootInode);
  e.new_name = new_name;
  return e;
}
inline Event Failed(Event e, int error) {
  e.SetResult(-1, error);
  return e;
}

struct Planned {
  Lacks lacks;
  PlanHeader header;
  std::vector<std::string> unknown_files;
  std::vector<std::string> actions;  // "create a", "open b made up"
  // The same whole, and the trees before and after.
  std::vector<Action> whole;
  std::vector<TreeEntry> initial;
  std::vector<TreeEntry> final;
  std::vector<InitialData> data;

  // The first that does this.
  const Action& Of(Op op) const {
    for (const Action& a : whole) {
      if (a.op == op) return a;
    }
    ADD_FAILURE() << "no " << OpName(op);
    static const Action none;
    return none;
  }
  static const TreeEntry& Named(const std::vector<TreeEntry>& entries,
                                std::string_view name) {
    for (const TreeEntry& entry : entries) {
      if (entry.name == name) return entry;
    }
    ADD_FAILURE() << "no " << name;
    static const TreeEntry none;
    return none;
  }

  std::vector<std::vector<std::byte>> chunks;  // what views point into
};

inline std::string Described(const Action& a) {
  std::string text = std::string(Info(a.op).name);
  if (!a.name.empty()) text += " " + std::string(a.name);
  if (a.sequence == 0) text += ", made up";
  if (a.Has(kUntimed) && a.sequence != 0) text += ", not selected";
  if (a.Has(kMarked)) text += ", to be undone";
  if (a.Has(kUnknownBytes)) text += ", of unknown bytes";
  if (a.Has(kRacing)) text += ", racing";
  return text;
}

template <typename Use>
void ForEachIn(int plan, ChunkKind kind,
               std::vector<std::vector<std::byte>>* chunks, const Use& use) {
  PlanReader reader(plan, kind);
  for (auto chunk = reader.Next(); chunk.ok() && *chunk;
       chunk = reader.Next()) {
    chunks->push_back(*std::move(*chunk));
    for (size_t at = 0, size = 0; at < chunks->back().size(); at += size) {
      use(ByteSpan(chunks->back()).subspan(at), &size);
    }
  }
}

// What is told besides operations, before them.
using Besides = std::function<void(TraceBuilder& trace)>;
inline void Tell(TraceBuilder& trace,
                 const std::function<bool(format::MessageWriter&)>& write) {
  std::vector<std::byte> memory(size_t{1} << 16);
  format::MessageWriter out(memory);
  EXPECT_TRUE(write(out));
  trace.AddBytes(AsText(out.bytes()));
}
inline void TellState(TraceBuilder& trace, const FileState& state,
                      std::string_view path_at_end = {}, bool late = false) {
  Tell(trace, [&](format::MessageWriter& out) {
    return format::WriteState(out, state, TraceBuilder::kMonotonicNs, late,
                              !path_at_end.empty(), path_at_end);
  });
}
inline void TellOpen(TraceBuilder& trace, const OpenFile& file) {
  Tell(trace, [&](format::MessageWriter& out) {
    return format::WriteOpenFile(out, file, TraceBuilder::kMonotonicNs);
  });
}

inline Planned Plan(const std::vector<Told>& told,
                    const BuilderOptions& options = {},
                    const Besides& besides = {}) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  if (besides) besides(trace);
  for (const Told& one : told) {
    const auto path = [&](Field f) {
      return one.event.Has(f) && one.event.Get(f) == kRootInode ? root : 0;
    };
    trace.Add(one.event, {.path = path(Field::kInode),
                          .parent = path(Field::kParentInode),
                          .new_parent = path(Field::kNewParentInode),
                          .process = 0});
  }
  trace.EndBlock();
  trace.Finish();
  const std::string bytes = trace.bytes();
  auto writer = PlanWriter::CreateUnnamed("/tmp");
  EXPECT_TRUE(writer.ok());
  PlanBuilder builder(options, &*writer);
  format::TraceMerger merger;
  format::TraceReaderOptions reading;
  reading.state = [&](const format::StateRecord& state) {
    builder.TakeState(state);
  };
  merger.Add(std::make_unique<format::TraceReader>(
      std::make_unique<format::MemorySource>(AsBytes(bytes)),
      std::move(reading)));
  format::Record record;
  for (size_t i = 0; merger.Next(&record) == format::ReadStep::kItem; ++i) {
    EXPECT_TRUE(builder.Take(record, told[i].selected, told[i].marked).ok());
  }
  EXPECT_TRUE(builder.Finish().ok());
  Planned planned{};
  planned.lacks = builder.lacks();
  planned.header = builder.header();
  planned.unknown_files = builder.unknown_files();
  auto plan = writer->Finish(builder.header());
  EXPECT_TRUE(plan.ok());
  planned.chunks.reserve(100);
  ForEachIn(plan->get(), ChunkKind::kActions, &planned.chunks,
            [&](ByteSpan chunk, size_t* size) {
              Action a;
              EXPECT_TRUE(DecodeAction(chunk, &a, size).ok());
              planned.whole.push_back(a);
              planned.actions.push_back(Described(a));
            });
  for (const auto& [kind, entries] :
       {std::pair(ChunkKind::kInitial, &planned.initial),
        {ChunkKind::kFinal, &planned.final}}) {
    ForEachIn(
        plan->get(), kind, &planned.chunks,
        [&, kind = kind, entries = entries](ByteSpan chunk, size_t* size) {
          TreeEntry entry;
          EXPECT_TRUE(
              DecodeEntry(chunk, kind == ChunkKind::kFinal, &entry, size).ok());
          entries->push_back(entry);
        });
  }
  ForEachIn(plan->get(), ChunkKind::kInitialData, &planned.chunks,
            [&](ByteSpan chunk, size_t* size) {
              InitialData data;
              EXPECT_TRUE(DecodeInitialData(chunk, &data, size).ok());
              planned.data.push_back(data);
            });
  return planned;
}

}  // namespace tracefs::replay::test
