// Pipeline: the running tracers of one mount, as the file system sees them.
//
// Each worker thread has a slot: its open blocks, one a tracer, behind a
// BiasedLock, so that recording takes no lock and no atomic read-modify-write.
// A flusher thread hands on blocks that are older than the flush interval.
// Tracers come and go while operations run: a change publishes a new set and
// then visits every slot once, after which nobody uses the old one.
#ifndef TRACEFS_PIPELINE_PIPELINE_H_
#define TRACEFS_PIPELINE_PIPELINE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "tracefs/base/biased_lock.h"
#include "tracefs/pipeline/event_sink.h"
#include "tracefs/pipeline/tracer.h"

namespace tracefs {

class Pipeline final : public EventSink {
 public:
  // Running at a time; a bit each in Event::sink_keep.
  static constexpr size_t kMaxTracers = 32;

  // Makes no thread before the first Add: a sandbox may come in between.
  explicit Pipeline(std::chrono::milliseconds flush_interval =
                        std::chrono::milliseconds(250));
  // Stops what still runs, as "destroyed".
  ~Pipeline() override;

  // Starts tracers, all of them or, on failure, none: their outputs are open
  // and their headers written when this returns. Events that begin afterwards
  // are seen. Ids must be new.
  Status Add(std::vector<TracerParts> parts);
  Status Add(TracerParts parts);
  // Ends one: all its events are written, then FINAL. Invalid if there is none.
  // `last`: gets what it has come to; may be null.
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

  // Hands on every open block now, down to the outputs. The first failure is
  // returned, after all were tried.
  Status FlushAll();

  // All tracers, those that are suspended too, by id. Never waits for an
  // output. Not from a worker's handler.
  std::vector<TracerStats> Stats() const;

  // Calls `use` with the name of a tracer and what it has counted so far, key
  // by key, for all tracers with counters. Never waits for an output. Not from
  // a worker's handler. The record holds during the call.
  using UseTotal =
      std::function<void(const std::string&, const format::AggregateRecord&)>;
  void ForEachTotal(const UseTotal& use);

  // EventSink:
  uint64_t Enter() override;
  void Leave() override;
  void Park(uint64_t begin_ns) override;
  void Unpark(uint64_t begin_ns) override;
  void Before(Event& event) override;
  void BeforeReply(Event& event) override;
  void AfterReply(Event& event) override;
  bool MustRecordNow(const Event& event) override;
  bool Refuses(Op op) override;
  bool MayRecord(Event& event) const override;
  std::vector<Interested> WhoWants(Op op) const override;

 private:
  struct Set;
  struct Slot;
  class SlotHandle;
  struct Tally;

  Slot& SlotOfThread() const;
  Status Join(Set* next, std::shared_ptr<Tracer> tracer,
              std::shared_ptr<const TracerRules> rules) const;
  Status Find(uint32_t id, const Set* set, size_t* index, bool* running) const;
  void Publish(std::unique_ptr<Set> next);
  void CollectTallies(const Set& old);
  void CollectCounts(const Tracer& tracer, size_t position) const;
  static bool Decide(const TracerRules& rules, bool always, Event& event,
                     Tally& tally);
  static void Assemble(Tracer& tracer, Event& event, BlockBuilder& builder,
                       Tally& tally);
  static void Encode(Tracer& tracer, Event& event, BlockBuilder& builder,
                     Tally& tally);
  std::vector<std::shared_ptr<Slot>> Slots() const;
  void UpdateInterest(const Set& set);
  bool FlushOnce();
  void FlusherLoop();
  uint64_t OldestOpenBegin() const;
  bool HasAllNames(const Slot& slot, const Event& event) const;

  const std::chrono::milliseconds flush_interval_;
  const uint64_t instance_;  // tells pipelines of one process apart

  // Lock order: changes_ before set_mu_ before slots_mu_ before a slot's lock.
  // A tracer's own mutexes come last.
  std::mutex changes_;  // one change of the set, or one flush, at a time
  std::atomic<const Set*> set_;
  // Held for a moment only, never while something is written or waited for.
  mutable std::mutex set_mu_;
  // Guarded by set_mu_; changed with changes_ held too.
  std::shared_ptr<const Set> set_owner_;

  mutable std::mutex slots_mu_;
  mutable std::vector<std::shared_ptr<Slot>> slots_;  // guarded by slots_mu_

  mutable std::mutex parked_mu_;
  std::multiset<uint64_t> parked_;  // begin times; guarded by parked_mu_

  std::mutex flusher_mu_;
  std::condition_variable flusher_wake_;
  bool stopping_ = false;  // guarded by flusher_mu_
  std::thread flusher_;    // started under changes_
};

}  // namespace tracefs

#endif  // TRACEFS_PIPELINE_PIPELINE_H_
