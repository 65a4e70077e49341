// Pipeline: the running tracers of one mount, and what is done to them.
//
// Operations come in through its EventSink; each worker thread records them in
// a slot of its own (thread_slots.h), and a flusher passes on what is old
// enough. Tracers come and go while operations run: a change publishes a new
// set and then visits every slot once, after which the old one is no longer in
// use.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/process_sink.h"
#include "tracefs/pipeline/event_sink.h"
#include "tracefs/pipeline/flusher.h"
#include "tracefs/pipeline/tracer_set.h"

namespace tracefs {

// Which tracer asked to see an operation, for explanations.
struct Interested {
  uint32_t tracer = 0;
  std::string name;    // of the tracer; may be empty
  std::string filter;  // the test its filter makes for the operation
};

class Pipeline final : public EventSink, public ProcessSink {
 public:
  // Tracers running at the same time; a bit each in Event::sink_keep.
  static constexpr size_t kMaxTracers = ThreadSlot::kPositions;

  // Makes no thread before the first Add: a sandbox may be entered in between.
  explicit Pipeline(std::chrono::milliseconds flush_interval =
                        std::chrono::milliseconds(250));
  // Stops what still runs, as "destroyed".
  ~Pipeline();

  // A block of messages for each tracer (Tracer::SubmitMessages). False if one
  // did not take it.
  bool Append(ByteSpan messages);

  // Where tracers that begin, or are resumed, learn which files are open;
  // outlives their begin. Call before the first Add.
  void SetFileStates(FileStates* states) { file_states_ = states; }

  // Starts all tracers or, on failure, none: their outputs are open and their
  // headers written when this returns. Events that begin afterwards are seen.
  // Ids must be new.
  Status Add(std::vector<TracerParts> parts);
  Status Add(TracerParts parts);
  // Ends one: all its events are written, then FINAL. Invalid if there is none.
  // `last`: gets its final statistics; may be null.
  Status Remove(uint32_t id, std::string_view end_reason,
                TracerStats* last = nullptr);
  // Ends all. The first failure is returned, after all were tried.
  Status Stop(std::string_view end_reason,
              std::vector<TracerStats>* last = nullptr);

  // Suspends one: what it has is written, its output stays open, and it sees
  // nothing until it is resumed. Its trace says so. Invalid if there is none.
  // Nothing happens if it is suspended, or runs, already.
  Status Suspend(uint32_t id);
  Status Resume(uint32_t id);
  // Replaces the filter of one, running or suspended; `text` and `dag` are for
  // its trace. An operation that is running meanwhile is judged by either.
  Status SetFilter(uint32_t id, std::unique_ptr<InputFilter> filter,
                   std::string_view text, std::string_view dag);

  // Writes into the trace of a tracer, running or suspended, that one of its
  // rules has fired.
  Status Tell(uint32_t id, const format::AlarmRecord& alarm,
              const format::AlarmValues& values);

  // Writes into all traces, or that of one tracer, that something has changed.
  void Tell(const format::ChangeRecord& change);
  void Tell(uint32_t id, const format::ChangeRecord& change);

  // Passes every open block on to the outputs now. Returns the first failure,
  // after trying all.
  Status FlushAll();

  // Once nothing is recorded any more: what this has goes to where a later
  // daemon has it.
  void KeepAll();

  // All tracers, including suspended ones, by id. Never waits for an output.
  // Not from a worker's handler.
  std::vector<TracerStats> Stats() const;

  // Calls `use` with the name of a tracer and what it has counted so far, key
  // by key, for all tracers with counters. Never waits for an output. Not from
  // a worker's handler. The record holds during the call.
  using UseTotal =
      std::function<void(const std::string&, const format::AggregateRecord&)>;
  void ForEachTotal(const UseTotal& use);

  // The tracers that may record this operation. Not from a worker's handler.
  std::vector<Interested> WhoWants(Op op) const;

  // ProcessSink: into the traces of the running tracers.
  ProcessNeeds Wanted() const override;
  void HoldBack(uint64_t since_ns) override;
  void Take(const ProcessRecord& record) override;
  void NoteOverrun(uint64_t count, uint64_t first_ns,
                   uint64_t last_ns) override;

 private:
  Status SetRunning(uint32_t id, bool run);
  std::shared_ptr<const TracerSet> Tracers() const;
  std::unique_ptr<TracerSet> Next() const;
  void Publish(std::unique_ptr<TracerSet> next);
  uint64_t Oldest() const;

  // Lock order: changes_ before set_mu_ before the slots' before a slot's. A
  // tracer's own mutexes come last.
  std::mutex changes_;  // one change of the set, or one flush, at a time
  // Held for a moment only, never while something is written or waited for.
  mutable std::mutex set_mu_;
  // Guarded by set_mu_; changed with changes_ held too.
  std::shared_ptr<const TracerSet> set_;
  FileStates* file_states_ = nullptr;
  std::atomic<bool> process_records_{false};
  std::atomic<bool> process_environment_{false};
  std::atomic<uint64_t> held_since_{kNothingHeld};
  Flusher flusher_;
};

}  // namespace tracefs
