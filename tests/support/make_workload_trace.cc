// Writes the trace of a made-up workload, for tests and measurements of what
// sums up traces:
//   make_workload_trace FILE OPERATIONS FILES PROCESSES [SEED [HOST [DAY]]]
// Reads, writes, syncs and failing lookups by processes that come and go, over
// files of a tree; some offsets go on, some jump. The same words make the same
// bytes. HOST is the machine that the trace is said to be of, DAY how many days
// later than others.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "tests/support/trace_builder.h"
#include "tracefs/base/clock.h"

namespace tracefs::test {
namespace {

constexpr uint64_t kPerBlock = 4000;
constexpr const char* kCommands[] = {"make", "cc1plus", "git", "sqlite3",
                                     "=cmd()"};

class Workload {
 public:
  Workload(uint64_t files, uint64_t processes, uint64_t seed)
      : files_(files), processes_(processes), random_(seed) {}

  // Another machine's trace has a serial of its own.
  void SetHost(std::string_view host, uint64_t seed, uint64_t day) {
    trace_.header().Set("host.name", host);
    trace_.header().clock.real_ns += day * 86'400 * kNsPerSecond;
    for (size_t i = 0; i < 8; ++i) {
      trace_.serial()[i] = std::byte(seed >> (8 * i) & 0xff);
    }
    trace_.serial()[8] = std::byte(day & 0xff);
  }

  std::string Make(uint64_t operations) {
    for (uint64_t i = 0; i < operations; ++i) {
      if (i % kPerBlock == 0) Begin(i);
      Add(i);
    }
    if (operations != 0) trace_.EndBlock();
    trace_.Finish();
    return trace_.bytes();
  }

 private:
  void Begin(uint64_t i) {
    if (i != 0) trace_.EndBlock();
    root_ = trace_.DefinePath(0, "");
    folders_.fill(0);
    callers_.fill(0);
  }
  uint64_t Below(uint64_t limit) { return random_() % limit; }

  uint32_t Folder(uint64_t file) {
    uint32_t& path = folders_[file % folders_.size()];
    if (path == 0) {
      path = trace_.DefinePath(root_,
                               "d" + std::to_string(file % folders_.size()));
    }
    return path;
  }
  // Processes live one after the other, some at a time.
  uint32_t Caller(uint64_t i) {
    const uint64_t number =
        (i / kPerBlock * callers_.size() + i % callers_.size()) % processes_;
    uint32_t& id = callers_[i % callers_.size()];
    if (id == 0) {
      CallerInfo caller;
      caller.pid = static_cast<uint32_t>(1000 + number);
      caller.tid = caller.pid;
      caller.ppid = number % 7 == 0
                        ? 1
                        : static_cast<uint32_t>(1000 + number - number % 7);
      caller.start_time = 5000 + number;
      const std::string comm = kCommands[number % std::size(kCommands)];
      comm.copy(caller.comm_bytes.data(), comm.size());
      caller.comm_size = static_cast<uint8_t>(comm.size());
      id = trace_.DefineProcess(caller);
    }
    return id;
  }

  void Add(uint64_t i) {
    // Half of all is done with the first few files.
    const uint64_t file =
        Below(2) == 0 ? Below(std::min<uint64_t>(files_, 20)) : Below(files_);
    const std::string name = "f" + std::to_string(file) +
                             (file % 3 == 0   ? ".h"
                              : file % 3 == 1 ? ".cc"
                                              : "");
    Event event;
    uint64_t kind = Below(100);
    event.op = kind < 40   ? Op::lookup_
               : kind < 70 ? Op::read_
               : kind < 90 ? Op::write_
               : kind < 97 ? Op::getattr_
                           : Op::fsync_;
    now_ns_ += 200 + Below(1500);
    // Nothing happens for a while, now and then.
    if (Below(5000) == 0) now_ns_ += 2'000'000;
    uint64_t took = 500 + Below(3000);
    if (event.op == Op::fsync_) took = 100'000 + Below(3'000'000);
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + now_ns_);
    event.Set(Field::kLatency, took);
    event.Set(Field::kUid, file % 5 == 0 ? 0 : 1000);
    event.Set(Field::kInode, 100 + file);
    References references;
    references.process = Caller(i);
    references.parent = Folder(file);
    event.name = name;
    if (event.op == Op::read_ || event.op == Op::write_) {
      const uint64_t size = uint64_t{512} << Below(6);
      event.Set(Field::kFh, 1 + file % 512);
      uint64_t& next = next_[event.op == Op::read_ ? 0 : 1][file % 512];
      const uint64_t way = Below(10);
      event.Set(Field::kOffset, way < 7 ? next : way == 7 ? 0 : next + 8192);
      event.Set(Field::kLength, size);
      event.SetResult(static_cast<int64_t>(size), 0);
      next = event.Get(Field::kOffset) + size;
    } else if (event.op == Op::lookup_ && Below(3) == 0) {
      event.SetResult(-1, Below(20) == 0 ? 13 : 2);
    } else {
      event.SetResult(0, 0);
    }
    trace_.Add(event, references);
  }

  const uint64_t files_;
  const uint64_t processes_;
  std::mt19937_64 random_;
  TraceBuilder trace_;
  uint64_t now_ns_ = 0;
  uint32_t root_ = 0;
  std::array<uint32_t, 97> folders_{};
  std::array<uint32_t, 8> callers_{};
  std::array<std::array<uint64_t, 512>, 2> next_{};
};

}  // namespace
}  // namespace tracefs::test

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs(
        "usage: make_workload_trace FILE OPERATIONS FILES PROCESSES [SEED "
        "[HOST [DAY]]]\n",
        stderr);
    return 2;
  }
  const auto number = [&](int i) {
    return std::strtoull(argv[i], nullptr, 10);
  };
  if (number(3) == 0 || number(4) == 0) return 2;
  tracefs::test::Workload workload(number(3), number(4),
                                   argc > 5 ? number(5) : 1);
  if (argc > 6) workload.SetHost(argv[6], number(5), argc > 7 ? number(7) : 0);
  std::ofstream out(argv[1], std::ios::binary);
  out << workload.Make(number(2));
  return out.flush() ? 0 : 3;
}
