// A world of files and callers without kernel or file system, and what a
// handler adds to each operation in it: the hot path of tracing, for
// record_bench and record_loop. Mix: the operations of Postmark (lookup,
// create, write, read, flush, release, open, unlink by turns) on 500 files in
// 50 directories by one process. One thread.
#pragma once

#include <iterator>
#include <memory>
#include <utility>

#include "drivers/output/framing.h"
#include "tracefs/base/clock.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"

namespace tracefs {

// Takes all and keeps nothing: the cost of output is measured elsewhere.
class NullDriver final : public OutputDriver {
 public:
  Status Initialize(const TraceIdentity&) override { return Status::Ok(); }
  Status Write(ByteSpan, ByteSpan, const BlockInfo&) override {
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 0; }
};

class ConstantFilter final : public InputFilter {
 public:
  explicit ConstantFilter(bool keep) : keep_(keep) {}
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    if (keep_) needs.constant = Verdict::kKeep;
    return needs;
  }
  Verdict DecideEarly(Event&) const override {
    return keep_ ? Verdict::kKeep : Verdict::kDrop;
  }
  bool Keep(Event&) const override { return keep_; }

 private:
  const bool keep_;
};

// 500 files in 50 directories below a root; callers from the process table.
class World final : public EventResolver {
 public:
  static constexpr uint64_t kDirs = 50;
  static constexpr uint64_t kFiles = 500;

  World() : processes_(std::move(*ProcessTable::Create())) {}

  void ResolveCaller(Event& event) override {
    const CallerInfo* caller =
        processes_->Resolve(static_cast<uint32_t>(event.Get(Field::kTid)),
                            event.Get(Field::kTime), ProcessTable::kOther);
    if (caller == nullptr) return;
    event.caller = caller;
    event.Set(Field::kPid, caller->pid);
    event.Set(Field::kPpid, caller->ppid);
    event.Set(Field::kSid, caller->sid);
    event.Set(Field::kPgid, caller->pgid);
  }
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    link->parent_version = 0;
    link->parent = node == 1 ? 0 : node < 2 + kDirs ? 1 : 2 + node % kDirs;
    link->name.Set(node == 1 ? "" : "file_name_12");
    return true;
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}

 private:
  std::unique_ptr<ProcessTable> processes_;
};

inline constexpr Op kMix[] = {Op::lookup_, Op::create_, Op::write_,
                              Op::read_,   Op::flush_,  Op::release_,
                              Op::open_,   Op::unlink_};

// What OpScope does for an operation that is traced.
inline void HandleOne(EventSink& sink, World& world, uint64_t i, uint32_t tid) {
  const Op op = kMix[i % std::size(kMix)];
  const uint32_t interest = sink.InterestIn(op);
  if (interest == 0) return;
  Recording recording(sink, op, interest);
  Event& e = recording.event;
  e.resolver = &world;
  e.Set(Field::kTid, tid);
  e.Set(Field::kUid, 1000);
  e.Set(Field::kGid, 1000);
  const uint64_t file = 2 + World::kDirs + i / 8 % World::kFiles;
  if (HasName(op)) {
    e.parent = 2 + file % World::kDirs;
    e.name = "file_name_12";
    e.Set(Field::kParentInode, e.parent);
  } else {
    e.Set(Field::kFh, file);
  }
  e.node = file;
  e.Set(Field::kInode, file);
  e.Set(Field::kType, 8);
  e.Set(Field::kFlags, 2);
  if (op == Op::read_ || op == Op::write_) {
    e.Set(Field::kOffset, i);
    e.Set(Field::kLength, 512);
  }
  e.SetResult(0, 0);
  e.Set(Field::kLatency, MonotonicNs() - e.Get(Field::kTime));
  recording.End([] { return 0; });
}

// Adds a tracer with this driver; it keeps every operation or none.
inline Status AddRecorder(Pipeline& pipeline, bool keep,
                          std::shared_ptr<const AssemblyDriver> driver) {
  TracerParts parts;
  parts.id = 1;
  parts.filter = std::make_unique<ConstantFilter>(keep);
  parts.assembly.push_back(std::move(driver));
  parts.output = MakeFraming(std::make_unique<NullDriver>());
  parts.header.clock = ClockPair::Now();
  return pipeline.Add(std::move(parts));
}

}  // namespace tracefs
