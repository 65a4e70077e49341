// What tracers have a mount find out, beside what a request says by itself.
#pragma once

#include <cstdint>
#include <string>

#include "filters/input/filter.h"
#include "tracefs/base/status.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/process_watch.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

enum class Need : uint8_t {
  kCallers,    // who did it
  kAncestors,  // and who began them
  kDetails,    // CallerDetails
  kCalls,      // by which system call
  kProcesses,  // process records
};
inline constexpr size_t kNeedCount = 5;

class NeedSet {
 public:
  bool Has(Need need) const { return (bits_ & BitOf(need)) != 0; }
  void Add(Need need, bool really = true) {
    if (really) bits_ |= BitOf(need);
  }
  void Remove(Need need) { bits_ &= ~BitOf(need); }

 private:
  static uint32_t BitOf(Need need) {
    return uint32_t{1} << static_cast<uint32_t>(need);
  }
  uint32_t bits_ = 0;
};

// Of a tracer: its filter, its drivers and its rules. Of a filter alone.
NeedSet NeedsOf(const TracerPlan& plan);
NeedSet NeedsOf(const Filter& filter);

// Who finds it out. A lease is taken for each tracer; whoever finds something
// out does so while there is one.
class NeedLeases {
 public:
  // All outlive this. Without `watch` somebody else tells of processes, and
  // needs none.
  NeedLeases(ProcessTable& processes, SystemCalls& calls, ProcessWatch* watch)
      : processes_(processes), calls_(calls), watch_(watch) {}

  // Takes what `held` has not yet of what is wanted, or nothing. The error says
  // what `who` ("the filter") asks for.
  Status Take(const NeedSet& wanted, const std::string& who,
              NeedSet* held) const;
  void GiveBack(NeedSet* held) const;

 private:
  Status Start(Need need) const;
  void Stop(Need need) const;

  ProcessTable& processes_;
  SystemCalls& calls_;
  ProcessWatch* const watch_;
};

}  // namespace tracefs
