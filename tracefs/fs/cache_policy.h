// CachePolicy: what the kernel may do by itself, decided from what the tracers
// could record (partial evaluation of their filters) and the visibility. You
// pay only for what you trace.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>
#include <vector>

#include "tracefs/fs/inode_table.h"
#include "tracefs/pipeline/event_sink.h"

namespace tracefs {

// What the kernel may answer by itself, and so what tracers cannot see.
enum class Visibility { kExact, kAuto, kFast };

// How the kernel does reads and writes on an open file.
enum class IoMode {
  kCached,             // through the page cache of the mount
  kDirect,             // each as one request to us
  kPassthrough,        // straight to the backing file, unseen
  kPassthroughDirect,  // as kDirect, on a file that has kPassthrough opens too
};

// Decisions change at once with the tracers, for files opened and looked up
// from then on. Threads: any.
class CachePolicy {
 public:
  CachePolicy(Visibility visibility, const EventSink& sink)
      : visibility_(visibility), sink_(sink) {}

  Visibility visibility() const { return visibility_; }

  // What the connection allows; set before the first operation.
  void SetPassthrough(bool available) { passthrough_ = available; }
  bool passthrough() const { return passthrough_; }
  // Close below does something of its own (NFS, …), or locks are ours.
  void SetFlushNeeded() { flush_needed_ = true; }

  // Seconds for which the kernel may keep a directory entry, the lack of one,
  // or attributes.
  double EntryTimeout() const;
  double NegativeTimeout() const;
  double AttrTimeout(mode_t mode) const;

  // Which data of a file must come to us.
  struct DataInterest {
    bool calls;  // read(2), write(2) and their kin, one by one
    bool pages;  // mapped data, as its pages come in and go out
    bool any() const { return calls || pages; }
  };
  // `event` describes the file; its op and Field::kMapped are changed.
  DataInterest DataOf(Event& event) const;
  // Maps of a passthrough file are maps of the backing file, so it must not
  // pass through where pages are of interest.
  static IoMode ModeFor(DataInterest data, bool passes_through) {
    if (passes_through) {
      return data.any() ? IoMode::kPassthroughDirect : IoMode::kPassthrough;
    }
    return data.any() ? IoMode::kDirect : IoMode::kCached;
  }
  // Whether close(2) must be reported: some tracer records it, or it matters
  // below.
  bool NeedsFlush() const {
    return flush_needed_ || visibility_ == Visibility::kExact ||
           Traced(Op::flush_);
  }
  // Whether readdir may look up what it lists, unseen by tracers.
  bool MayLookUpAhead() const;
  // Whether the kernel may keep listings of directories.
  bool MayCacheListings() const;

  // For people: each choice, what forced it, what it hides.
  struct Choice {
    std::string subject;        // "lookup", "read and write", …
    std::string choice;         // "kept for 10 ms"
    std::vector<Op> forced_by;  // recorded operations that forced it
    std::string hides;          // "" = nothing
  };
  std::vector<Choice> Explain() const;
  // Whether any operation may be recorded.
  bool TracesAny() const;

 private:
  bool Traced(Op op) const {
    return (sink_.InterestIn(op) & EventSink::kRecord) != 0;
  }

  const Visibility visibility_;
  const EventSink& sink_;
  // Set by the thread that serves the first request, read by any.
  std::atomic<bool> passthrough_ = false;
  bool flush_needed_ = false;
};

}  // namespace tracefs
