// A trace for benchmarks: the operations of a compilation, with every field a
// tracer of full verbosity keeps. 44% lookup, 18% getattr, 14% read, 8% write,
// 8% open, 8% release; paths three to five deep.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"

namespace tracefs::bench {

inline constexpr uint64_t kSampleOperations = 210'000;
inline constexpr uint64_t kOperationsInBlock = 1'500;  // about 256 KiB

inline CallerInfo SampleCaller() {
  CallerInfo caller;
  caller.pid = 31'234;
  caller.ppid = 31'200;
  caller.pgid = caller.sid = 30'999;
  caller.start_time = 88'123'456;
  std::memcpy(caller.comm_bytes.data(), "cc1plus", 7);
  caller.comm_size = 7;
  return caller;
}

// Operation `n`, but for what it is about.
inline Event SampleEvent(uint64_t n) {
  constexpr Op kMix[] = {Op::lookup_, Op::lookup_, Op::getattr_, Op::lookup_,
                         Op::open_,   Op::read_,   Op::lookup_,  Op::getattr_,
                         Op::lookup_, Op::read_,   Op::write_,   Op::release_};
  Event event;
  event.op = kMix[n % std::size(kMix)];
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs + (n + 1) * 1'700);
  event.Set(Field::kLatency, 3'000 + n % 20'000);
  event.Set(Field::kTid, 31'234);
  event.Set(Field::kUid, 1000);
  event.Set(Field::kGid, 1000);
  event.Set(Field::kInode, 5'000'000 + n % 977);
  event.Set(Field::kType, 8);
  event.Set(Field::kMode, S_IFREG | 0644);
  event.Set(Field::kNlink, 1);
  event.Set(Field::kSize, 12'345 + n % 997);
  event.Set(Field::kFuid, 1000);
  event.Set(Field::kFgid, 1000);
  event.Set(Field::kMtime, test::TraceBuilder::kRealNs - n);
  if (event.op == Op::lookup_) event.Set(Field::kParentInode, 4'000'000);
  if (event.op == Op::open_) event.Set(Field::kFlags, O_RDONLY);
  if (event.op == Op::read_ || event.op == Op::write_) {
    event.Set(Field::kOffset, (n % 64) * 4096);
    event.Set(Field::kLength, 4096);
  }
  if (event.op != Op::lookup_ && event.op != Op::getattr_) {
    event.Set(Field::kFh, n / 12);
  }
  event.SetResult(event.op == Op::read_ ? 4096 : 0,
                  event.op == Op::lookup_ && n % 3 == 0 ? ENOENT : 0);
  return event;
}

// The bytes of the trace; made once.
inline const std::string& SampleTrace() {
  static const std::string* const kTrace = [] {
    test::TraceBuilder trace;
    for (uint64_t n = 0; n < kSampleOperations;) {
      const uint32_t process = trace.DefineProcess(SampleCaller());
      const uint32_t root = trace.DefinePath(0, "");
      std::vector<uint32_t> directories;
      std::vector<uint32_t> files;
      uint32_t parent = root;
      for (const char* name : {"build", "src", "components", "network"}) {
        parent = trace.DefinePath(parent, name);
        directories.push_back(parent);
        for (int i = 0; i < 20; ++i) {
          files.push_back(
              trace.DefinePath(parent, "module_" + std::to_string(i) + ".cc"));
        }
      }
      for (uint64_t i = 0; i < kOperationsInBlock; ++i, ++n) {
        Event event = SampleEvent(n);
        test::References references = {.process = process};
        const std::string name = "header_" + std::to_string(n % 50) + ".h";
        if (event.op == Op::lookup_) {
          event.name = name;
          references.parent = directories[n % directories.size()];
        } else {
          references.path = files[n % files.size()];
        }
        trace.Add(event, references);
      }
      trace.EndBlock();
    }
    trace.Finish();
    return new std::string(trace.bytes());
  }();
  return *kTrace;
}

}  // namespace tracefs::bench
